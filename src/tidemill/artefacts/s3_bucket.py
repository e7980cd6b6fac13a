"""A bucket of an S3-compatible server: whole objects, uploads in parts, and lists. Nothing here knows of artefacts.

Errors of the network or the server are retried a few times, because every request here may be repeated; an error that
stays is a fault with a sentence for the operator. An object that does not exist is None.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit
from xml.etree import ElementTree as Xml

import httpx2

from tidemill.artefacts.s3_signing import S3Credentials, path_text, query_text, signed_headers
from tidemill.artefacts.threads import Threads
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault
from tidemill.core.pace import Backoff

_TRIES = 5
_BACKOFF = Backoff(first_s=0.2, most_s=5)
_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
_CONNECTIONS = httpx2.Limits(max_connections=64, max_keepalive_connections=16)
_PASSING = frozenset({429, 500, 502, 503, 504})
_IN_THREAD_BYTES = 64 * 1024
_NOTHING_SHA256 = hashlib.sha256(b"").hexdigest()
_ADVICE = {
    "NoSuchBucket": "make the bucket that artefacts.s3_bucket names",
    "InvalidAccessKeyId": "check artefacts.s3_access_key",
    "SignatureDoesNotMatch": "check artefacts.s3_secret_key and artefacts.s3_region",
    "AccessDenied": "check artefacts.s3_access_key and artefacts.s3_secret_key, and let the key read, write, list and "
    "delete in the bucket",
    "RequestTimeTooSkewed": "set this machine's clock",
}


@dataclass(frozen=True)
class BucketAddress:
    """Where a bucket is. Every key of ours begins with the prefix."""

    endpoint: str
    bucket: str
    prefix: str
    credentials: S3Credentials


@dataclass(frozen=True)
class ListedObject:
    """An object in a list."""

    key: str
    size_bytes: int


@dataclass(frozen=True)
class UploadedPart:
    """A part that the server has. Its tag changes with its bytes."""

    number: int
    size_bytes: int
    tag: str


class ServerRefused(ArtefactFault):
    """The server of the bucket refused a request."""

    code = "artefact_server_refused"

    def __init__(self, host: str, status: int, word: str) -> None:
        answered = f"{status} {word}".strip()
        super().__init__(f"{host} answered {answered}: {_ADVICE.get(word, 'look at the server')}.")
        self.status = status
        self.word = word


class Bucket:
    """One bucket, and the connections to it."""

    def __init__(self, address: BucketAddress, threads: Threads) -> None:
        self._address = address
        self._threads = threads
        self._host = urlsplit(address.endpoint).netloc
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT, limits=_CONNECTIONS, trust_env=False)

    async def close(self) -> None:
        await self._client.aclose()

    async def put(self, key: str, body: bytes) -> None:
        await self._ask("PUT", key, body=body)

    async def get(self, key: str) -> bytes | None:
        answer = await self._ask("GET", key, missing=True)
        return None if answer is None else answer.content

    async def has(self, key: str) -> bool:
        return await self.size(key) is not None

    async def size(self, key: str) -> int | None:
        answer = await self._ask("HEAD", key, missing=True)
        return None if answer is None else int(answer.headers["content-length"])

    async def delete(self, key: str) -> None:
        """Delete an object. Repeating this, or deleting a missing object, changes nothing."""
        await self._ask("DELETE", key, missing=True)

    async def read(self, key: str, first: int, end: int) -> httpx2.Response | None:
        """An answer whose body is still unread, and which the caller closes."""
        headers = {"range": f"bytes={first}-{end - 1}"}
        answer = await self._ask("GET", key, headers=headers, missing=True, stream=True)
        if answer is not None and answer.status_code != 206:
            await answer.aclose()
            raise ArtefactFault(f"{self._host} does not answer ranges of bytes: use a server that does.")
        return answer

    async def list(self, prefix: str) -> AsyncIterator[ListedObject]:
        """Every object whose key has this prefix, page by page."""
        query = {"list-type": "2", "prefix": self._address.prefix + prefix}
        while True:
            page = _parsed(await self._required("GET", "", query=query))
            for element in page.iter("Contents"):
                yield ListedObject(
                    _text(element, "Key").removeprefix(self._address.prefix), int(_text(element, "Size"))
                )
            if page.findtext("IsTruncated") != "true":
                return
            query["continuation-token"] = _text(page, "NextContinuationToken")

    async def names(self, prefix: str) -> dict[str, int]:
        """The rest of each key after the prefix, with the sizes: for lists that are never long."""
        return {listed.key.removeprefix(prefix): listed.size_bytes async for listed in self.list(prefix)}

    async def begin_parts(self, key: str) -> str:
        """The server's name for an upload in parts."""
        return _text(_parsed(await self._required("POST", key, query={"uploads": ""})), "UploadId")

    async def put_part(self, key: str, upload: str, number: int, body: bytes) -> UploadedPart | None:
        """Send a part. None if the upload no longer exists."""
        query = {"partNumber": str(number), "uploadId": upload}
        answer = await self._ask("PUT", key, query=query, body=body, missing=True)
        return None if answer is None else UploadedPart(number, len(body), answer.headers["etag"])

    async def parts(self, key: str, upload: str) -> Sequence[UploadedPart] | None:
        """The parts in order; None if the upload no longer exists."""
        parts: list[UploadedPart] = []
        query = {"uploadId": upload}
        while True:
            answer = await self._ask("GET", key, query=query, missing=True)
            if answer is None:
                return None
            page = _parsed(answer)
            parts += (
                UploadedPart(int(_text(element, "PartNumber")), int(_text(element, "Size")), _text(element, "ETag"))
                for element in page.iter("Part")
            )
            if page.findtext("IsTruncated") != "true":
                return sorted(parts, key=lambda part: part.number)
            query["part-number-marker"] = _text(page, "NextPartNumberMarker")

    async def join_parts(self, key: str, upload: str, parts: Sequence[UploadedPart]) -> bool:
        """Make one object of exactly these parts. False if one has changed, or another process has joined them."""
        listed = "".join(f"<Part><PartNumber>{p.number}</PartNumber><ETag>{p.tag}</ETag></Part>" for p in parts)
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        try:
            answer = await self._ask("POST", key, query={"uploadId": upload}, body=body, missing=True)
        except ServerRefused as refused:
            if refused.word in ("InvalidPart", "InvalidPartOrder"):
                return False
            raise
        # Joining may take so long that the server begins with a 200 and tells of an error behind it.
        return answer is not None and _local(_parsed(answer).tag) == "CompleteMultipartUploadResult"

    async def drop_parts(self, key: str, upload: str) -> None:
        await self._ask("DELETE", key, query={"uploadId": upload}, missing=True)

    async def uploads_in_parts(self, prefix: str) -> AsyncIterator[tuple[str, str]]:
        """The key and the server's name of each upload in parts that is under way."""
        query = {"uploads": "", "prefix": self._address.prefix + prefix}
        while True:
            page = _parsed(await self._required("GET", "", query=query))
            for element in page.iter("Upload"):
                yield _text(element, "Key").removeprefix(self._address.prefix), _text(element, "UploadId")
            if page.findtext("IsTruncated") != "true":
                return
            query["key-marker"] = _text(page, "NextKeyMarker")
            query["upload-id-marker"] = _text(page, "NextUploadIdMarker")

    async def _required(self, method: str, key: str, query: Mapping[str, str]) -> httpx2.Response:
        answer = await self._ask(method, key, query=query)
        assert answer is not None
        return answer

    async def _ask(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        missing: bool = False,
        stream: bool = False,
    ) -> httpx2.Response | None:
        """The server's answer; None if the object is missing and `missing` allows that."""
        body_sha256 = await self._sha256(body)
        names = (self._address.bucket, self._address.prefix + key) if key else (self._address.bucket,)
        target = (path_text(*names), query_text(query or {}))
        for tried in range(1, _TRIES + 1):
            try:
                return await self._send(method, target, headers or {}, body, body_sha256, stream=stream)
            except ServerRefused as refused:
                if missing and refused.status == 404 and refused.word != "NoSuchBucket":
                    return None
                if refused.status not in _PASSING:
                    raise
                fault: ArtefactFault = refused
            except httpx2.TransportError as error:
                fault = ArtefactFault(f"{self._host} cannot be reached ({error}): check artefacts.s3_endpoint.")
            if tried == _TRIES:
                raise fault
            await asyncio.sleep(_BACKOFF.after(tried, 0.0))
        raise AssertionError("the last try answers or raises")

    async def _send(
        self,
        method: str,
        target: tuple[str, str],
        extra_headers: Mapping[str, str],
        body: bytes,
        body_sha256: str,
        *,
        stream: bool,
    ) -> httpx2.Response:
        now = Instant(time.time_ns() // 1000)  # the server compares it with its own
        signed = signed_headers(self._address.credentials, method, self._host, target, body_sha256, now)
        path, query = target
        url = f"{self._address.endpoint.rstrip('/')}{path}{'?' if query else ''}{query}"
        request = self._client.build_request(method, url, headers={**signed, **extra_headers}, content=body)
        answer = await self._client.send(request, stream=stream)
        if answer.status_code < 300:
            return answer
        try:
            await answer.aread()
        finally:
            await answer.aclose()
        raise ServerRefused(self._host, answer.status_code, _word(answer))

    async def _sha256(self, body: bytes) -> str:
        if len(body) < _IN_THREAD_BYTES:
            return hashlib.sha256(body).hexdigest() if body else _NOTHING_SHA256
        return await self._threads.run(lambda: hashlib.sha256(body).hexdigest())


def _word(answer: httpx2.Response) -> str:
    """The server's word for the error; answers to HEAD have none."""
    unsaid = "AccessDenied" if answer.status_code == 403 else ""
    try:
        return _parsed(answer).findtext("Code") or unsaid
    except ArtefactFault:
        return unsaid


def _parsed(answer: httpx2.Response) -> Xml.Element:
    """The answer's XML without its namespaces, which servers do not agree on."""
    try:
        root = Xml.fromstring(answer.content)  # noqa: S314  # the operator's own server, and expat bounds entities
    except Xml.ParseError:
        raise ArtefactFault(f"{answer.url.host} does not answer as S3 does: check artefacts.s3_endpoint.") from None
    for element in root.iter():
        element.tag = _local(element.tag)
    return root


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _text(element: Xml.Element, name: str) -> str:
    text = element.findtext(name)
    if text is None:
        raise ArtefactFault(f"The server's answer has no {name}: it does not answer as S3 does.")
    return text
