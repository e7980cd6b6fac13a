"""Uploading a file to a pool, so that it can be interrupted at any moment and goes on when it is run again.

A file is hashed first: its digest says whether an upload that was begun earlier is of the same bytes, and the pool
checks it at the end. Which upload goes on is remembered on this machine until it is finished. No more than a piece of
the file is ever in memory.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.core.artefacts.metadata import read_number, write_metadata
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.faults import Fault
from tidemill.host.standard_error import say

ROUTE = "/artefacts/uploads"
PIECE_BYTES = 256 * 1024
PART_BYTES = 64 * 1024 * 1024

_TUS = {"Tus-Resumable": "1.0.0"}
_GONE = {UploadRefusal.UNKNOWN_UPLOAD.code, UploadRefusal.UPLOAD_EXPIRED.code}
_AGAIN = {UploadRefusal.UPLOAD_BUSY.code, UploadRefusal.UPLOAD_OFFSET_WRONG.code}
_TRIES = 8
_PAUSE_MAX_S = 30.0

ProgressListener = Callable[[int], None]
"""Hears how far something is."""


@dataclass(frozen=True)
class FileToUpload:
    """A file on its way, as it was hashed."""

    file: Path
    name: str
    purpose: str
    size_bytes: int
    digest: str


@dataclass(frozen=True)
class UploadState:
    """Where an upload stands; with its artefact if it is finished."""

    offset: int
    artefact_id: str | None


def hash_file(file: Path, told: ProgressListener) -> tuple[str, int]:
    """SHA-256 and size of a file."""
    found, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(4 * PIECE_BYTES):
            found.update(piece)
            size += len(piece)
            told(size)
    return found.hexdigest(), size


class FileUpload:
    """The upload of one file, begun now or earlier."""

    def __init__(self, caller: PoolCaller, sending: FileToUpload, folder: Path | None = None) -> None:
        self._caller = caller
        self._sending = sending
        place = folder or platformdirs.user_state_path("tidemill", appauthor=False) / "uploads"
        said = "\n".join((caller.pool.url, sending.digest, sending.name, sending.purpose))
        self._note = place / hashlib.sha256(said.encode()).hexdigest()

    def run(self, told: ProgressListener) -> str:
        """Send what is missing. Answers the artefact's id."""
        stands = self._begun_earlier() or self._begin()
        if 0 < stands.offset < self._sending.size_bytes:
            say("An upload of this file was begun earlier: it goes on.")
        with self._sending.file.open("rb") as opened:
            while stands.artefact_id is None:
                told(stands.offset)
                stands = self._advanced(opened, stands, told)
        told(self._sending.size_bytes)
        self._note.unlink(missing_ok=True)
        return stands.artefact_id

    def _begun_earlier(self) -> UploadState | None:
        if not self._note.exists():
            return None
        try:
            return self._look()
        except PoolRefused as refused:
            if refused.code not in _GONE:
                raise
        return None

    def _begin(self) -> UploadState:
        sending = self._sending
        headers = {
            **_TUS,
            "Upload-Length": str(sending.size_bytes),
            "Upload-Metadata": write_metadata(name=sending.name, purpose=sending.purpose, sha256=sending.digest),
        }
        answer = self._exchange("POST", ROUTE, headers)
        self._note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._note.with_suffix(f".{os.getpid()}")
        draft.write_text(answer["location"].rpartition("/")[2], "utf-8")
        draft.replace(self._note)
        return _standing(answer)

    def _look(self) -> UploadState:
        return _standing(self._exchange("HEAD", self._path, _TUS))

    def _advanced(self, opened: BinaryIO, stands: UploadState, told: ProgressListener) -> UploadState:
        """Where it stands after the next part, however often the network fails meanwhile."""
        failed: Exception | None = None
        for attempt in range(_TRIES):
            try:
                if failed is not None:
                    time.sleep(min(2.0**attempt, _PAUSE_MAX_S))
                    found = self._look()
                    if found != stands:
                        return found
                return self._sent(opened, stands.offset, told)
            except (Fault, PoolRefused) as error:
                if isinstance(error, PoolRefused) and error.code not in _AGAIN:
                    raise
                failed = error
        assert failed
        raise failed

    def _sent(self, opened: BinaryIO, offset: int, told: ProgressListener) -> UploadState:
        length = min(PART_BYTES, self._sending.size_bytes - offset)
        headers = {
            **_TUS,
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(length),
            "Upload-Offset": str(offset),
        }
        return _standing(self._exchange("PATCH", self._path, headers, lambda: _pieces(opened, offset, length, told)))

    def _exchange(
        self, method: str, path: str, headers: dict[str, str], content: Callable[[], Iterator[bytes]] | None = None
    ) -> dict[str, str]:
        return self._caller.acting(
            lambda token: dict(
                self._caller.pool.exchange(
                    method, path, token=token, headers=headers, content=content() if content else b""
                )
            )
        )

    @property
    def _path(self) -> str:
        return f"{ROUTE}/{self._note.read_text('utf-8')}"


def _standing(headers: dict[str, str]) -> UploadState:
    offset = read_number(headers.get("upload-offset"))
    if offset is None:
        raise Fault("The pool does not say where the upload stands: update this program, or the pool.")
    return UploadState(offset, headers.get("tidemill-artefact"))


def _pieces(opened: BinaryIO, offset: int, length: int, told: ProgressListener) -> Iterator[bytes]:
    opened.seek(offset)
    left = length
    while left:
        piece = opened.read(min(PIECE_BYTES, left))
        if not piece:
            raise Fault("The file became shorter while it was uploaded: leave it alone, and run this again.")
        left -= len(piece)
        yield piece
        told(offset + length - left)
