"""Sends an artefact's bytes: the whole or one range, piece by piece, with at most one piece in memory.

Anybody may have uploaded the bytes, so a browser is told to save them and to run nothing in them.
"""

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidemill.artefacts.store import ArtefactStore, ContentReader
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.ranges import asked_range, etag, has_bytes
from tidemill.core.artefacts.refusals import ArtefactRefusal


async def content(request: Request, store: ArtefactStore, digest: Digest, name: str) -> Response:
    """The answer to GET or HEAD of an artefact's bytes."""
    size_bytes = await store.size(digest)
    if size_bytes is None:
        raise RouteRefused(ArtefactRefusal.UNKNOWN_ARTEFACT)
    headers = _headers(digest, name)
    if has_bytes(digest, request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    byte_range = asked_range(digest, size_bytes, request.headers.get("range"), request.headers.get("if-range"))
    if isinstance(byte_range, ArtefactRefusal):
        raise RangeRefused(size_bytes)
    first, end = byte_range or (0, size_bytes)
    headers["Content-Length"] = str(end - first)
    if byte_range:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{size_bytes}"
    status = 206 if byte_range else 200
    if request.method == "HEAD" or first == end:
        return Response(status_code=status, headers=headers)
    return _StreamedContent(unless_refused(await store.open(digest, first, end)), status, headers)


class RangeRefused(RouteRefused):
    """No such range; the answer says how much there is."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(ArtefactRefusal.RANGE_NOT_THERE, headers={"Content-Range": f"bytes */{size_bytes}"})


class _StreamedContent(Response):
    """Sends while the client reads. Plain ASGI, so that the file is closed however it ends."""

    def __init__(self, reading: ContentReader, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status_code=status, headers=headers)
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._reading:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._reading.close()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(digest: Digest, name: str) -> dict[str, str]:
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%' else "_" for c in name)
    return {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attach; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "private, no-cache",
        "Accept-Ranges": "bytes",
        "ETag": etag(digest),
    }
