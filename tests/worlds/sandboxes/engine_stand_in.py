"""A stand-in for a container engine, for what a real one does only at rare moments."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class EngineStandIn:
    """Answers calls on a local socket, one after the other on each connection."""

    async def answer(self, method: str, target: str) -> tuple[int, object]:
        """The status and the body, for a method and a path with its query."""
        raise NotImplementedError

    @asynccontextmanager
    async def serving(self, socket: Path) -> AsyncIterator[None]:
        async with await asyncio.start_unix_server(self._serve, socket):
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if b"chunked" in head.lower():
                    await reader.readuntil(b"\r\n0\r\n\r\n")
                method, target, _ = head.decode().split(" ", 2)
                status, body = await self.answer(method, target)
                said = json.dumps(body).encode()
                writer.write(f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\n".encode())
                writer.write(f"content-length: {len(said)}\r\n\r\n".encode() + said)
        except asyncio.IncompleteReadError:
            writer.close()
