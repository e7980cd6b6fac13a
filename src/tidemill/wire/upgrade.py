"""How a websocket is opened for a link: the request of the agent and the answer of the pool, as bytes.

Only what a link needs: HTTP/1.1, version 13, our own subprotocol, no extensions. The caller that gathers the header
bounds its size. A header that repeats a field that may occur once is refused.
"""

import hashlib
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

PATH = "/link"
SUBPROTOCOL = "tidemill.link"
UNAVAILABLE = 503

_KEY_BYTES = 16
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_RETRY_AFTER_S = 2
_PHRASES = {400: "Bad Request", 403: "Forbidden", 404: "Not Found", 426: "Upgrade Required", 503: "Service Unavailable"}


@dataclass(frozen=True)
class Rejection:
    """Why a request does not become a link, as an HTTP answer."""

    status: int
    sentence: str


@dataclass(frozen=True)
class UpgradeRequest:
    """A request for a link. Header names are in lower case, and each has all values that were sent."""

    headers: Mapping[str, Sequence[str]]
    key: str

    def values(self, name: str) -> Sequence[str]:
        return self.headers.get(name, ())


_NO_REQUEST = Rejection(400, "This is no request for a link.")
_NO_WEBSOCKET = Rejection(426, "Agents connect here, by a websocket of the link's own kind.")
_NO_PATH = Rejection(404, "There is no link at this address.")


def key_of(nonce: bytes) -> str:
    """The key of a request: a hash of the nonce, since the nonce itself stays secret until the hello."""
    return b64encode(hashlib.sha256(b"tidemill websocket\0" + nonce).digest()[:_KEY_BYTES]).decode()


def upgrade_request(url: str, key: str) -> bytes:
    """What an agent sends first."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    path = urlsplit(url).path or PATH
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
    ).encode()


def read_upgrade_request(header: bytes) -> UpgradeRequest | Rejection:
    """Parse a request for a link, or say why it is none."""
    line, headers = _parse(header)
    method, _, rest = line.partition(" ")
    target, _, version = rest.partition(" ")
    if method != "GET" or version != "HTTP/1.1" or headers is None:
        return _NO_REQUEST
    if target.partition("?")[0] != PATH:
        return _NO_PATH
    key = _only(headers, "sec-websocket-key")
    is_link_request = (
        "upgrade" in _tokens(headers, "connection")
        and _tokens(headers, "upgrade") == ["websocket"]
        and _only(headers, "sec-websocket-version") == "13"
        and SUBPROTOCOL in _tokens(headers, "sec-websocket-protocol")
    )
    return UpgradeRequest(headers, key) if is_link_request and _is_key(key) else _NO_WEBSOCKET


def acceptance(request: UpgradeRequest) -> bytes:
    return (
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {_accept_key(request.key)}\r\nSec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
    ).encode()


def refusal(rejection: Rejection) -> bytes:
    body = f"{rejection.sentence}\n".encode()
    later = f"Retry-After: {_RETRY_AFTER_S}\r\n" if rejection.status == UNAVAILABLE else ""
    header = (
        f"HTTP/1.1 {int(rejection.status)} {_PHRASES.get(rejection.status, 'Refused')}\r\nConnection: close\r\n{later}"
        f"Content-Length: {len(body)}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    )
    return header.encode() + body


def answer_status(header: bytes, key: str) -> int:
    """The status of a pool's answer; 0 if it is unreadable, or accepts something that we did not ask for."""
    line, headers = _parse(header)
    status = line.split(" ")[1] if line.startswith("HTTP/1.1 ") else ""
    if not status.isdecimal() or headers is None:
        return 0
    ours = _only(headers, "sec-websocket-accept"), _only(headers, "sec-websocket-protocol")
    if status == "101" and ours != (_accept_key(key), SUBPROTOCOL):
        return 0
    return int(status)


def _parse(header: bytes) -> tuple[str, dict[str, list[str]] | None]:
    first, *lines = header.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            return first, None
        headers.setdefault(name.lower(), []).append(value.strip())
    return first, headers


def _only(headers: Mapping[str, Sequence[str]], name: str) -> str:
    values = headers.get(name, ())
    return values[0] if len(values) == 1 else ""


def _tokens(headers: Mapping[str, Sequence[str]], name: str) -> list[str]:
    return [token.strip().lower() for value in headers.get(name, ()) for token in value.split(",")]


def _is_key(key: str) -> bool:
    try:
        return len(b64decode(key, validate=True)) == _KEY_BYTES
    except (Error, ValueError):
        return False


def _accept_key(key: str) -> str:
    return b64encode(hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()).decode()
