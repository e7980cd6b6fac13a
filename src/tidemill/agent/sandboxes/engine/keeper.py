"""Removes every container and image of one agent from an engine: at the agent's start, and when the agent is gone.

An engine keeps containers running whatever becomes of who started them. So this program waits beside the agent and,
at the agent's end, however that came, removes what has its mark. It imports the standard library alone.
"""

import http.client
import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

LABEL = "tidemill.agent"
REPOSITORY = "tidemill.local"
ROUNDS, BETWEEN_S = 8, 0.25
"""A request that the agent had just made may still be carried out after its end."""
TIMEOUT_S = 30.0


class _Local(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def remove_all(path: str, mark: str) -> int:
    """Remove containers, then images, with this mark. How many were found."""
    found = [*_marked(path, mark)]
    for place in found:
        _ask(path, "DELETE", f"{place}?force=true&v=true")
    return len(found)


def _marked(path: str, mark: str) -> Iterator[str]:
    named = quote(json.dumps({"label": [f"{LABEL}={mark}"]}))
    for container in _ask(path, "GET", f"/containers/json?all=true&filters={named}") or []:
        yield f"/containers/{container['Id']}"
    for image in _ask(path, "GET", "/images/json") or []:
        tags = image.get("RepoTags") or []
        yield from (f"/images/{tag}" for tag in tags if tag.startswith(f"{REPOSITORY}/{mark}/"))


def _ask(path: str, method: str, place: str) -> Any:
    connection = _Local(path)
    try:
        connection.request(method, f"/v1.40{place}")
        answer = connection.getresponse()
        content = answer.read()
        return json.loads(content) if answer.status == http.client.OK and method == "GET" else None
    finally:
        connection.close()


def main() -> None:
    """Wait until the agent's end of our input closes. Signals that mean the agent come to us as well."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    path, mark = sys.argv[1:3]
    while sys.stdin.buffer.read(1):
        pass
    for _ in range(ROUNDS):
        remove_all(path, mark)
        time.sleep(BETWEEN_S)


if __name__ == "__main__":
    main()
