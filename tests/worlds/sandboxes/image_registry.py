"""A small registry of images, as engines ask one: some for everybody, some for a password, some that never come."""

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PASSWORD = "b3duZXI6c2VjcmV0"
"""`owner:secret` in Base64."""
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


class Registry(ThreadingHTTPServer):
    """`private/…` is for whoever has the password; `slow/…` is answered at the end."""

    daemon_threads = True

    def __init__(self, root: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.ending = threading.Event()
        self.asked: list[str] = []
        layer = gzip.compress(root)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Volumes": {"/data": {}}},
            "rootfs": {"type": "layers", "diff_ids": [_digest(root)]},
        }
        self.blobs = {_digest(blob): blob for blob in (layer, json.dumps(config).encode())}
        kinds = ("application/vnd.docker.image.rootfs.diff.tar.gzip", "application/vnd.docker.container.image.v1+json")
        parts = [
            {"mediaType": kind, "size": len(blob), "digest": digest}
            for kind, (digest, blob) in zip(kinds, self.blobs.items(), strict=True)
        ]
        manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": parts[1], "layers": parts[:1]}
        self.manifest = json.dumps(manifest).encode()

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Registry
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if "/slow/" in self.path:
            self.server.ending.wait(60)
        is_open = "/private/" not in self.path and self.path != "/v2/"  # a client learns there that passwords are used
        if not is_open and self.headers.get("Authorization") != f"Basic {PASSWORD}":
            self._send(401, b"{}", {"WWW-Authenticate": 'Basic realm="registry"'})
        elif self.path == "/v2/":
            self._send(200, b"{}", {})
        elif "/manifests/" in self.path:
            told = {"Content-Type": _MANIFEST, "Docker-Content-Digest": _digest(self.server.manifest)}
            self._send(200, self.server.manifest, told)
        elif (blob := self.server.blobs.get(self.path.rpartition("/")[2])) is not None:
            self._send(200, blob, {"Content-Type": "application/octet-stream"})
        else:
            self._send(404, b"{}", {})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def open_registry(root: bytes) -> Iterator[Registry]:
    """A registry in which every name is the image with this root, an archive."""
    registry = Registry(root)
    serving = threading.Thread(target=registry.serve_forever)
    serving.start()
    try:
        yield registry
    finally:
        registry.ending.set()
        registry.shutdown()
        registry.server_close()
        serving.join()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
