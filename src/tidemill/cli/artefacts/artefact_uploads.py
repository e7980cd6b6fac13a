"""Uploads a file to a pool. It can be interrupted at any moment, and resumes when it is run again.

The file is hashed first: the digest shows whether an earlier upload has the same bytes, and the pool checks it at the
end. This machine remembers the upload until it is finished. Only one piece of the file is in memory at a time.
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
"""Is called with the number of bytes done."""


@dataclass(frozen=True)
class FileToUpload:
    """A file to upload, with its size and digest."""

    file: Path
    name: str
    purpose: str
    size_bytes: int
    digest: str


@dataclass(frozen=True)
class UploadState:
    """How far an upload is, and its artefact if it is finished."""

    offset: int
    artefact_id: str | None


def hash_file(file: Path, progress: ProgressListener) -> tuple[str, int]:
    """SHA-256 and size of a file."""
    hasher, size = hashlib.sha256(), 0
    with file.open("rb") as opened:
        while piece := opened.read(4 * PIECE_BYTES):
            hasher.update(piece)
            size += len(piece)
            progress(size)
    return hasher.hexdigest(), size


class FileUpload:
    """The upload of one file, begun now or earlier."""

    def __init__(self, caller: PoolCaller, sending: FileToUpload, folder: Path | None = None) -> None:
        self._caller = caller
        self._sending = sending
        notes = folder or platformdirs.user_state_path("tidemill", appauthor=False) / "uploads"
        identity = "\n".join((caller.pool.url, sending.digest, sending.name, sending.purpose))
        self._note = notes / hashlib.sha256(identity.encode()).hexdigest()

    def run(self, progress: ProgressListener) -> str:
        """Send the missing bytes. Returns the artefact's id."""
        state = self._resume() or self._begin()
        if 0 < state.offset < self._sending.size_bytes:
            say("An upload of this file was begun earlier: it goes on.")
        with self._sending.file.open("rb") as opened:
            while state.artefact_id is None:
                progress(state.offset)
                state = self._send_next_part(opened, state, progress)
        progress(self._sending.size_bytes)
        self._note.unlink(missing_ok=True)
        return state.artefact_id

    def _resume(self) -> UploadState | None:
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
        return _state_of(answer)

    def _look(self) -> UploadState:
        return _state_of(self._exchange("HEAD", self._path, _TUS))

    def _send_next_part(self, opened: BinaryIO, state: UploadState, progress: ProgressListener) -> UploadState:
        """Send the next part, again if the network fails. Returns how far the upload is then."""
        failed: Exception | None = None
        for attempt in range(_TRIES):
            try:
                if failed is not None:
                    time.sleep(min(2.0**attempt, _PAUSE_MAX_S))
                    current = self._look()
                    if current != state:
                        return current
                return self._send_part(opened, state.offset, progress)
            except (Fault, PoolRefused) as error:
                if isinstance(error, PoolRefused) and error.code not in _AGAIN:
                    raise
                failed = error
        assert failed
        raise failed

    def _send_part(self, opened: BinaryIO, offset: int, progress: ProgressListener) -> UploadState:
        length = min(PART_BYTES, self._sending.size_bytes - offset)
        headers = {
            **_TUS,
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(length),
            "Upload-Offset": str(offset),
        }
        return _state_of(
            self._exchange("PATCH", self._path, headers, lambda: _pieces(opened, offset, length, progress))
        )

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


def _state_of(headers: dict[str, str]) -> UploadState:
    offset = read_number(headers.get("upload-offset"))
    if offset is None:
        raise Fault("The pool does not say where the upload stands: update this program, or the pool.")
    return UploadState(offset, headers.get("tidemill-artefact"))


def _pieces(opened: BinaryIO, offset: int, length: int, progress: ProgressListener) -> Iterator[bytes]:
    opened.seek(offset)
    remaining = length
    while remaining:
        piece = opened.read(min(PIECE_BYTES, remaining))
        if not piece:
            raise Fault("The file became shorter while it was uploaded: leave it alone, and run this again.")
        remaining -= len(piece)
        yield piece
        progress(offset + length - remaining)
