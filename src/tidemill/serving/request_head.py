"""What the head of a request says about its size, its host and its body, checked once it is complete.

Beside it: the answers that are given before the application has a request. The connection is closed with them. They are
problems like all others (RFC 9457), with a stable code and a sentence that says what to do.
"""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from tidemill.core.settings.sections.edge import HttpSettings

_FRAMING_BYTES = 4
"""A colon, a space and the end of the line."""

_FIELDS_MAX = 100
"""More headers than any client sends."""


class EarlyAnswer:
    """One answer, made once: whoever sends many wrong requests shall cost little."""

    __slots__ = ("code", "content", "status")

    def __init__(self, status: HTTPStatus, code: str, sentence: str) -> None:
        self.status, self.code = status, code
        problem = {
            "type": f"/problems/{code}",
            "title": f"{status.phrase}.",
            "status": status.value,
            "code": code,
            "detail": sentence,
        }
        body = json.dumps(problem)
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            "content-type: application/problem+json",
            f"content-length: {len(body)}",
            *(["retry-after: 1"] if status is HTTPStatus.SERVICE_UNAVAILABLE else []),
            "connection: close",
        ]
        self.content = "\r\n".join([*lines, "", body]).encode()


MALFORMED = EarlyAnswer(
    HTTPStatus.BAD_REQUEST, "request_malformed", "This is no request of HTTP/1.1: send it as RFC 9112 says."
)
HOST_UNCLEAR = EarlyAnswer(
    HTTPStatus.BAD_REQUEST, "host_unclear", "A request names its host exactly once: send one Host header."
)
HEADERS_TOO_LARGE = EarlyAnswer(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "headers_too_large",
    "The headers are larger, or more, than the pool accepts: send fewer and shorter ones.",
)
TOO_SLOW = EarlyAnswer(
    HTTPStatus.REQUEST_TIMEOUT, "request_timeout", "The request did not come in time: send it whole, and at once."
)
DISPLACED = EarlyAnswer(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "connection_displaced",
    "Too many connections wait for their callers, and this one had waited longest: send a request at once, whole.",
)


class RequestHead(NamedTuple):
    """`size_bytes` is without spaces that nobody needs; `announced_bytes` is the body's length, if it is said."""

    size_bytes: int
    fields: int
    hosts: int
    announced_bytes: int
    is_chunked: bool


def read_head(url: bytes, headers: Sequence[tuple[bytes, bytes]]) -> RequestHead:
    """Names are in lower case; the parser has made sure that a length is a number."""
    size_bytes, hosts, announced_bytes, is_chunked = len(url), 0, 0, False
    for name, value in headers:
        size_bytes += len(name) + len(value) + _FRAMING_BYTES
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            announced_bytes = int(value)
        elif name == b"transfer-encoding":
            is_chunked = True
    return RequestHead(size_bytes, len(headers), hosts, announced_bytes, is_chunked)


def objection_to(head: RequestHead, rules: HttpSettings, *, needs_host: bool) -> EarlyAnswer | None:
    """Why a request is refused for its head: HTTP/1.1 needs one host, and an older request may leave it out."""
    if head.size_bytes > rules.header_limit_bytes or head.fields > _FIELDS_MAX:
        return HEADERS_TOO_LARGE
    if head.hosts > 1 or (needs_host and not head.hosts):
        return HOST_UNCLEAR
    return None
