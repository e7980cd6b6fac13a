"""Transfers of artefacts between this machine and its pool, resumed where they broke off, for hours if need be.

A lost link, a busy pool and a wrong clock are passing troubles: a transfer waits, ever longer, and tries each of the
pool's addresses in turn. A final refusal is answered at once. Memory holds one piece at a time, and only bytes that the
other side has lost are sent or fetched twice.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeVar
from uuid import UUID

import httpx2
import structlog

from tidemill.agent.link.pool_http import FinalRefusal, NodeHttpClient, PassingFailure
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.artefacts.metadata import read_number, write_metadata
from tidemill.core.artefacts.ranges import etag
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.pace import Backoff
from tidemill.core.refusals import Refusal
from tidemill.host.clocks import steady
from tidemill.host.private_files import replace_private_file

log = structlog.get_logger()

T = TypeVar("T")

UPLOADS = "/api/v1/artefacts/uploads"
_BY_DIGEST = "/api/v1/artefacts/by-digest"
_TUS = {"Tus-Resumable": "1.0.0"}
_ARTEFACT = "Tidemill-Artefact"
_NOTE_MAX = 4096
_PIECE_BYTES = 1024 * 1024
_PACE_S = 60.0
_PACE_BYTES = 64 * 1024
_WRONG_MAX = 3
_BEGIN_AGAIN = frozenset({404, 410, 422})
_PASSING = frozenset({404, 408, 409, 410, 413, 422, 423, 425, 429, 460})
"""Answers that may pass after asking how far the upload is, or after beginning it again."""


@dataclass(frozen=True)
class TransferPatience:
    """How long to wait between tries, and for how long to go on when nothing moves."""

    pause: Backoff
    give_up_s: float


class TransferFault(Fault):
    """An artefact could not be brought here or to the pool."""

    code = "transfer_failed"


PATIENCE = TransferPatience(Backoff(first_s=1, most_s=300), give_up_s=6 * 3600.0)


class Transfers:
    """All transfers of an agent. `urls` returns the pool's current addresses."""

    def __init__(
        self,
        urls: Callable[[], tuple[str, ...]],
        trust: ssl.SSLContext,
        write_pass: Callable[[Instant], str],
        notes: Path,
        dice: Random,
        patience: TransferPatience = PATIENCE,
    ) -> None:
        self._pool = NodeHttpClient(urls, trust, write_pass)
        self._notes = _UploadNotes(notes)
        self._dice = dice
        self._patience = patience

    async def close(self) -> None:
        await self._pool.close()

    def distrust(self) -> None:
        """The bytes were wrong: ask at the pool's next address."""
        self._pool.turn()

    async def download(self, digest: Digest, size_bytes: int, into: int) -> None:
        """Append the missing bytes of an artefact to an open file. The caller checks whether they are right."""

        async def once() -> bool | None:
            at = os.fstat(into).st_size
            if at > size_bytes:
                os.ftruncate(into, 0)
                at = 0
            if at < size_bytes:
                await self._fetch(digest, size_bytes, into, at)
            return True if os.fstat(into).st_size == size_bytes else None

        answer = await self._try_until_done(once, lambda: os.fstat(into).st_size)
        if isinstance(answer, Refusal):
            raise TransferFault(f"The pool does not give {digest}: {answer.sentence}")

    async def upload(self, path: Path, purpose: Purpose, attempt_id: UUID, digest: Digest) -> UUID | Refusal:
        """Send a file to the pool. Resumes an earlier try, also that of an earlier process."""
        status = await asyncio.to_thread(os.stat, path)
        outgoing = _Outgoing(path, status.st_size, purpose, attempt_id, digest)
        upload = _Upload(self._pool, self._notes, outgoing)
        answer = await self._try_until_done(upload.once, lambda: upload.stands_at)
        self._notes.forget(attempt_id)
        return answer

    async def _try_until_done(self, once: Callable[[], Awaitable[T | None]], moved: Callable[[], int]) -> T | Refusal:
        """Try until it is done or refused. A fault if nothing has moved for too long."""
        failures, wrong, before, moved_at = 0, 0, moved(), steady()
        while True:
            try:
                done = await once()
            except FinalRefusal as refused:
                return refused.refusal
            except PassingFailure as passing:
                cause, wait_s = str(passing), passing.retry_s
                wrong += isinstance(passing, _WrongBytes)
                if wrong >= _WRONG_MAX:
                    raise TransferFault(cause) from None
            else:
                if done is not None:
                    return done
                cause, wait_s = "more is to come", None
            if moved() > before:
                failures, before, moved_at = 0, moved(), steady()
            failures += 1
            pause_s = max(wait_s or 0.0, self._patience.pause.after(failures, self._dice.random()))
            if (steady() - moved_at) / SECOND + pause_s > self._patience.give_up_s:
                raise TransferFault(f"The pool was tried for too long. {cause}")
            log.info("transfer waits", cause=cause, again_s=round(pause_s, 1))
            await asyncio.sleep(pause_s)

    async def _fetch(self, digest: Digest, size_bytes: int, into: int, at: int) -> None:
        headers = {"Range": f"bytes={at}-", "If-Range": etag(digest)} if at else {}
        async with self._pool.streamed("GET", f"{_BY_DIGEST}/{digest}/content", headers) as answer:
            if answer.status_code == 416:
                os.ftruncate(into, 0)
            self._pool.expect(answer, {200, 206}, passing=frozenset({416}))
            at = at if answer.status_code == 206 else 0
            if _first_byte(answer, at, size_bytes) != at:
                os.ftruncate(into, 0)
                self._pool.turn()
                raise _WrongBytes(f"What the pool has under {digest} has another length, or another range came.")
            os.ftruncate(into, at)
            await _receive(answer, into, at, size_bytes)


class _WrongBytes(PassingFailure):
    """The pool sent wrong bytes. Another try may help, but only a few are made."""


@dataclass(frozen=True)
class _Outgoing:
    path: Path
    size_bytes: int
    purpose: Purpose
    attempt_id: UUID
    digest: Digest

    @property
    def metadata(self) -> str:
        return write_metadata(purpose=self.purpose, sha256=self.digest.text, attempt=str(self.attempt_id))


class _UploadNotes:
    """Where this machine's uploads are in the pool, so that a restarted agent resumes them: a small file for each.

    A note that is lost or damaged costs an upload from the start, and nothing else.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, attempt_id: UUID, digest: Digest) -> str | None:
        """The upload's path at the pool, if these bytes were being uploaded."""
        try:
            noted = json.loads(self._file(attempt_id).read_bytes()[:_NOTE_MAX])
            return str(noted["location"]) if noted["digest"] == digest.text else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, attempt_id: UUID, digest: Digest, location: str) -> None:
        with suppress(OSError):  # a full disk must not keep a result from the pool
            self._directory.mkdir(mode=0o700, exist_ok=True)
            replace_private_file(self._file(attempt_id), json.dumps({"digest": digest.text, "location": location}))

    def forget(self, attempt_id: UUID) -> None:
        with suppress(OSError):
            self._file(attempt_id).unlink(missing_ok=True)

    def _file(self, attempt_id: UUID) -> Path:
        return self._directory / f"{attempt_id}.json"


class _Upload:
    """One result on its way."""

    def __init__(self, pool: NodeHttpClient, notes: _UploadNotes, outgoing: _Outgoing) -> None:
        self.stands_at = 0
        self._pool = pool
        self._notes = notes
        self._outgoing = outgoing
        self._location = notes.read(outgoing.attempt_id, outgoing.digest)
        self._wrong = 0

    async def once(self) -> UUID | None:
        """Send as much as possible. The artefact's id when all is sent; None if there is more to do."""
        if self._location is None:
            return await self._begin()
        done = await self._look()
        if done is None and self._location is not None and self.stands_at < self._outgoing.size_bytes:
            done = await self._send()
        return done

    async def _begin(self) -> UUID | None:
        headers = {**_TUS, "Upload-Length": str(self._outgoing.size_bytes), "Upload-Metadata": self._outgoing.metadata}
        answer = await self._pool.ask("POST", UPLOADS, headers)
        self._pool.expect(answer, {201}, passing=frozenset({408, 409, 423, 425, 429}))
        location = httpx2.URL(answer.headers.get("location", "")).path
        if not location.startswith(f"{UPLOADS}/"):
            raise PassingFailure("The pool did not say where the upload is.")
        self._location = location
        self._notes.write(self._outgoing.attempt_id, self._outgoing.digest, location)
        return _artefact(answer) or await self._send()

    async def _look(self) -> UUID | None:
        assert self._location
        answer = await self._pool.ask("HEAD", self._location, _TUS)
        return self._read_progress(answer, {200})

    async def _send(self) -> UUID | None:
        """Send all missing bytes in one HTTP request. If it breaks off, the pool keeps what came."""
        assert self._location
        remaining_bytes = self._outgoing.size_bytes - self.stands_at
        headers = {
            **_TUS,
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(remaining_bytes),
            "Upload-Offset": str(self.stands_at),
        }
        answer = await self._pool.ask(
            "PATCH", self._location, headers, _pieces(self._outgoing.path, self.stands_at, remaining_bytes)
        )
        return self._read_progress(answer, {204})

    def _read_progress(self, answer: httpx2.Response, expected: set[int]) -> UUID | None:
        if answer.status_code in _BEGIN_AGAIN:
            self._location, self.stands_at = None, 0
            self._notes.forget(self._outgoing.attempt_id)
            self._wrong += answer.status_code == 422
        if self._wrong >= _WRONG_MAX:
            raise FinalRefusal(UploadRefusal.UPLOAD_DIGEST_WRONG)
        self._pool.expect(answer, expected, passing=_PASSING)
        offset = read_number(answer.headers.get("upload-offset"))
        if offset is None or offset > self._outgoing.size_bytes:
            raise PassingFailure("The pool did not say where the upload stands.")
        self.stands_at = offset
        return _artefact(answer)


def _artefact(answer: httpx2.Response) -> UUID | None:
    try:
        return UUID(answer.headers[_ARTEFACT]) if _ARTEFACT in answer.headers else None
    except ValueError:
        raise PassingFailure("The pool did not say which artefact the upload has become.") from None


def _first_byte(answer: httpx2.Response, at: int, size_bytes: int) -> int | None:
    """Where an answer's bytes begin; None if the artefact does not have the expected size."""
    if answer.status_code == 200:
        return 0 if answer.headers.get("content-length") == str(size_bytes) else None
    fits = answer.headers.get("content-range") == f"bytes {at}-{size_bytes - 1}/{size_bytes}"
    return at if fits else None


async def _receive(answer: httpx2.Response, into: int, at: int, size_bytes: int) -> None:
    """Write what comes, also what came before a break. Give up on a pool that sends next to nothing."""
    pace_at, pace_from = steady(), at
    gathered = bytearray()
    try:
        async for piece in answer.aiter_raw():
            gathered += piece
            if at + len(gathered) > size_bytes:
                gathered.clear()
                os.ftruncate(into, 0)
                raise _WrongBytes("More came than there should be.")
            if len(gathered) >= _PIECE_BYTES:
                await asyncio.to_thread(_write, into, bytes(gathered), at)
                at += len(gathered)
                gathered.clear()
            if (steady() - pace_at) / SECOND > _PACE_S:
                if at + len(gathered) - pace_from < _PACE_BYTES:
                    raise PassingFailure("The pool sends next to nothing.")
                pace_at, pace_from = steady(), at + len(gathered)
    finally:
        _write(into, bytes(gathered), at)


def _write(into: int, piece: bytes, at: int) -> None:
    remaining = memoryview(piece)
    while remaining:
        written_bytes = os.pwrite(into, remaining, at)
        at += written_bytes
        remaining = remaining[written_bytes:]


async def _pieces(path: Path, at: int, remaining_bytes: int) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(os.open, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while remaining_bytes:
            piece = await asyncio.to_thread(os.pread, file, min(_PIECE_BYTES, remaining_bytes), at)
            if not piece:
                raise TransferFault(f"{path.name} is shorter than it was.")
            at, remaining_bytes = at + len(piece), remaining_bytes - len(piece)
            yield piece
    finally:
        os.close(file)
