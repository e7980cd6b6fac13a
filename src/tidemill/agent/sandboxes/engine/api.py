"""A client of an engine's API, as Docker defined it, over its local socket. It has only what a sandbox needs."""

import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from tidemill.agent.sandboxes.interface import OutputStream, SandboxFault

VERSION = "v1.40"
TIMEOUT_S = 60.0
CHUNK_BYTES = 65536
FRAME = struct.Struct(">BxxxI")
"""Before each piece of output: which stream it is from, and its length."""
STREAMS = {1: OutputStream.OUTPUT, 2: OutputStream.ERRORS}


class EngineFault(SandboxFault):
    """The engine does not do what it was asked. `status` is its answer's, or 0 when there was none."""

    code = "engine_unusable"

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class CannotStart(EngineFault):
    """A program that is not there, or not one: the task's own fault, in the engine's words."""

    code = "program_cannot_start"


class EngineApi:
    def __init__(self, path: Path) -> None:
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        self._client = httpx2.AsyncClient(transport=transport, base_url=f"http://engine/{VERSION}", timeout=TIMEOUT_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, body: Any = None, patient: bool = False, **parameters: str) -> Any:
        """The engine's answer; None if it is empty. A patient call has no deadline."""
        timeout = None if patient else TIMEOUT_S
        try:
            answer = await self._client.request(method, path, json=body, params=parameters, timeout=timeout)
        except httpx2.HTTPError as fault:
            raise EngineFault(f"The container engine does not answer: {fault!r}.") from fault
        _check(answer.status_code, answer.content)
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else None

    async def send(self, path: str, file: Path | None, **parameters: str) -> None:
        """Make a call that answers one line for each step. Any line may say what went wrong."""
        content = None if file is None else _pieces(file)
        try:
            async with self._client.stream("POST", path, content=content, params=parameters, timeout=None) as answer:
                lines = [line async for line in answer.aiter_lines() if line.strip()]
        except httpx2.HTTPError as fault:
            raise EngineFault(f"The container engine does not answer: {fault!r}.") from fault
        _check(answer.status_code, "\n".join(lines[-1:]).encode())
        if wrong := [step["error"] for step in map(json.loads, lines) if "error" in step]:
            raise EngineFault(str(wrong[0]), answer.status_code)

    @asynccontextmanager
    async def attached(self, container: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """What a container prints, from before its start."""
        parameters = {"stream": "true", "stdout": "true", "stderr": "true"}
        path = f"/containers/{container}/attach"
        async with self._client.stream("POST", path, params=parameters, timeout=None) as answer:
            if answer.status_code >= httpx2.codes.BAD_REQUEST:  # Podman prepares the start here already
                raise CannotStart(_words(await answer.aread()), answer.status_code)
            yield answer.aiter_raw()


async def tell_apart(chunks: AsyncIterator[bytes], hear: Callable[[OutputStream, bytes], None]) -> None:
    """Pass output on as it comes, by its stream, without waiting for a whole frame: frames may have any length."""
    waiting, left_bytes, stream = b"", 0, OutputStream.OUTPUT
    async for chunk in chunks:
        waiting += chunk
        while waiting and (left_bytes or len(waiting) >= FRAME.size):
            if not left_bytes:
                number, left_bytes = FRAME.unpack_from(waiting)
                stream, waiting = STREAMS.get(number, OutputStream.ERRORS), waiting[FRAME.size :]
            if piece := waiting[:left_bytes]:
                hear(stream, piece)
            waiting, left_bytes = waiting[len(piece) :], left_bytes - len(piece)


def _check(status: int, content: bytes) -> None:
    if status >= httpx2.codes.BAD_REQUEST:
        raise EngineFault(_words(content), status)


def _words(content: bytes) -> str:
    """The engine's words about a failure."""
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content[:500].decode(errors="replace")


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(CHUNK_BYTES):
            yield piece
