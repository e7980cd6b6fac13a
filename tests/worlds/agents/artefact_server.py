"""A pool's artefacts as an agent meets them, in this process: the routes' shape, and every way of misbehaving.

It follows tus and ranges as the pool does; `Misbehaviour` says what goes wrong the next times. The real pool is met in
tests/system and tests/control.
"""

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from uuid import UUID, uuid4

UPLOADS = "/api/v1/artefacts/uploads"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


class Counted:
    """Bytes of which only the number is kept."""

    def __init__(self) -> None:
        self._size = 0

    def __iadd__(self, piece: bytes) -> "Counted":
        self._size += len(piece)
        return self

    def __len__(self) -> int:
        return self._size


@dataclass
class Server:
    """What it has, what it was asked, and what it does wrong: each a list that is used up from its front."""

    contents: dict[str, bytes] = field(default_factory=dict)
    uploads: "dict[str, bytearray | Counted]" = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    artefacts: dict[str, UUID] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    sent_bytes: int = 0
    received_bytes: int = 0
    answers: list[tuple[int, dict[str, str], dict[str, str]]] = field(default_factory=list)
    cut_after: list[int] = field(default_factory=list)
    hang_up_after: list[int] = field(default_factory=list)
    replaced: list[bytes] = field(default_factory=list)
    ahead_s: float = 0.0
    checks: bool = True
    piece_pause_s: float = 0.0
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, BrokenPipeError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(_request(head), reader, writer)
        writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(request)
        if self.answers:
            status, headers, problem = self.answers.pop(0)
            await _skip(request, reader)
            await self._send(writer, status, headers, json.dumps(problem).encode(), request)
        elif not self._is_let_in(request):
            problem = {"code": "pass_over", "detail": "This pass is over."}
            await self._send(writer, 401, {}, json.dumps(problem).encode(), request)
        elif request.path.startswith(UPLOADS):
            await self._upload(request, reader, writer)
        else:
            await self._content(request, writer)

    def _is_let_in(self, request: Request) -> bool:
        """Passes are written here as `until-<µs>`; the real ones are read by the pool's own code in its tests."""
        until_us = int(request.headers["authorization"].removeprefix("Node until-"))
        left_s = until_us / 1e6 - (time.time() + self.ahead_s)
        return 0 < left_s <= 600

    async def _content(self, request: Request, writer: asyncio.StreamWriter) -> None:
        digest = request.path.split("/")[-2]
        content = self.contents.get(digest)
        if content is None:
            problem = {"code": "unknown_artefact", "detail": "You have no such artefact."}
            await self._send(writer, 404, {}, json.dumps(problem).encode(), request)
            return
        if self.replaced:
            content = self.replaced.pop(0)
        first = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        headers = {"ETag": f'"{digest}"'}
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        await self._send(writer, 206 if first else 200, headers, content[first:], request)

    async def _upload(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = request.path.removeprefix(f"{UPLOADS}/")
        if request.method == "POST":
            name = str(uuid4())
            self.uploads[name], self.lengths[name] = (
                bytearray() if self.checks else Counted(),
                int(request.headers["upload-length"]),
            )
            said = dict(part.split(" ") for part in request.headers["upload-metadata"].split(","))
            self.expected[name] = base64.b64decode(said["sha256"]).decode()
            await self._send(writer, 201, {"Location": f"{UPLOADS}/{name}", **self._standing(name)}, b"", request)
        elif name not in self.uploads:
            await self._send(writer, 404, {}, b'{"code": "unknown_upload", "detail": "Gone."}', request)
        elif request.method == "HEAD":
            await self._send(writer, 200, self._standing(name), b"", request)
        else:
            await self._patch(name, request, reader, writer)

    async def _patch(
        self, name: str, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if int(request.headers["upload-offset"]) != len(self.uploads[name]):
            await _skip(request, reader)
            await self._send(writer, 409, {}, b'{"code": "upload_offset_wrong", "detail": "No."}', request)
            return
        left = int(request.headers["content-length"])
        most = self.hang_up_after.pop(0) if self.hang_up_after else left
        while left and most > 0:
            piece = await reader.readexactly(min(65_536, left))
            self.uploads[name] += piece
            self.received_bytes += len(piece)
            left, most = left - len(piece), most - len(piece)
        if left:
            writer.transport.abort()
            return
        came = self.uploads[name]
        if isinstance(came, bytearray) and hashlib.sha256(came).hexdigest() != self.expected[name]:
            del self.uploads[name]
            await self._send(writer, 422, {}, b'{"code": "upload_digest_wrong", "detail": "No."}', request)
            return
        await self._send(writer, 204, self._standing(name), b"", request)

    def _standing(self, name: str) -> dict[str, str]:
        told = {"Upload-Offset": str(len(self.uploads[name]))}
        if len(self.uploads[name]) == self.lengths[name]:
            told["Tidemill-Artefact"] = str(self.artefacts.setdefault(name, uuid4()))
        return told

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes, request: Request
    ) -> None:
        date = formatdate(time.time() + self.ahead_s, usegmt=True)
        told = {"Content-Length": str(len(body)), "Date": date, **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode())
        if request.method == "HEAD" or status == 204:
            return
        cut = self.cut_after.pop(0) if self.cut_after and status in (200, 206) else None
        body = body if cut is None else body[:cut]
        for at in range(0, len(body), 65_536):
            writer.write(body[at : at + 65_536])
            await writer.drain()
            self.sent_bytes += len(body[at : at + 65_536])
            if self.piece_pause_s:
                await asyncio.sleep(self.piece_pause_s)
        if cut is not None:
            await asyncio.sleep(0.05)
            writer.close()
            raise ConnectionResetError


@asynccontextmanager
async def artefact_server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=1024 * 1024)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


async def _skip(request: Request, reader: asyncio.StreamReader) -> None:
    await reader.readexactly(int(request.headers.get("content-length", "0")))


def _request(head: bytes) -> Request:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Request(method, path, headers)
