"""An upload as a client makes it, request by request, over a real socket."""

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2

from tests.worlds.pools.pool import Running

UPLOADS = "/api/v1/artefacts/uploads"
VERSION = {"Tus-Resumable": "1.0.0"}
BYTES = {"Content-Type": "application/offset+octet-stream"}


def metadata(**said: str) -> str:
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in said.items())


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def checksum(content: bytes, algorithm: str = "sha1") -> dict[str, str]:
    found = hashlib.new(algorithm, content, usedforsecurity=False).digest()
    return {"Upload-Checksum": f"{algorithm} {base64.b64encode(found).decode()}"}


@dataclass
class Client:
    """Somebody who uploads to a pool."""

    running: Running
    shown: dict[str, str]

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = {**self.shown, **options.pop("headers", {})}
        return httpx2.request(
            method, self.running.url + path, headers=headers, verify=self.running.verify, timeout=60, **options
        )

    def begin(self, length: int | str, content: bytes = b"", headers: dict[str, str] | None = None, **said: str) -> Any:
        told = {**VERSION, "Upload-Length": str(length), "Upload-Metadata": metadata(**({"name": "a"} | said))}
        return self.ask("POST", UPLOADS, content=content, headers={**told, **(headers or {})})

    def begun(self, length: int, **said: str) -> str:
        answer = self.begin(length, **said)
        assert answer.status_code == 201, answer.text
        path: str = answer.headers["location"]
        return path

    def add(self, path: str, offset: int | str, content: Any, **headers: str) -> httpx2.Response:
        told = {**VERSION, **BYTES, "Upload-Offset": str(offset), **headers}
        return self.ask("PATCH", path, content=content, headers=told)

    def look(self, path: str) -> httpx2.Response:
        return self.ask("HEAD", path, headers=VERSION)

    def put(self, content: bytes, **said: str) -> UUID:
        """All of it at once."""
        answer = self.begin(len(content), content, BYTES, **said)
        assert answer.status_code == 201, answer.text
        return UUID(answer.headers["tidemill-artefact"])

    def content(self, artefact_id: UUID, **headers: str) -> httpx2.Response:
        return self.ask("GET", f"/api/v1/artefacts/{artefact_id}/content", headers=headers)

    def by_digest(self, digest: str, method: str = "GET", **headers: str) -> httpx2.Response:
        return self.ask(method, f"/api/v1/artefacts/by-digest/{digest}/content", headers=headers)

    def half_sent(self, path: str, length: int, part: bytes, **headers: str) -> socket.socket:
        """A PATCH that announces more than it sends, and waits."""
        lines = {**self.shown, **VERSION, **BYTES, "Upload-Offset": "0", "Content-Length": str(length), **headers}
        head = f"PATCH {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        sending = socket.create_connection(("127.0.0.1", self.running.port), timeout=20)
        sending.sendall(head.encode() + b"\r\n" + part)
        return sending


@contextmanager
def fed_steadily(sending: socket.socket) -> Iterator[list[int]]:
    """Meanwhile some bytes are sent now and then, so that the connection is not cut for its silence. Answers how many,
    each time."""
    sent: list[int] = []
    over = threading.Event()

    def feed() -> None:
        while not over.wait(0.3):
            sending.sendall(b"x" * 5000)
            sent.append(5000)

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        yield sent
    finally:
        over.set()
        feeding.join()


def problem(answer: httpx2.Response) -> str:
    return str(json.loads(answer.text)["code"])
