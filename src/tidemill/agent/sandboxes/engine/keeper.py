"""Removes every container and image of one agent from an engine: at the agent's start, and when the agent is gone.

An engine keeps containers running when the agent that started them dies. So this program waits beside the agent and,
however the agent ends, removes everything with its mark. It imports the standard library alone.
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
"""The engine may still carry out a call that the agent made just before its end."""
TIMEOUT_S = 30.0


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("engine", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(self._path)


def remove_all(path: str, mark: str) -> int:
    """Remove containers, then images, with this mark. Returns how many there were."""
    paths = [*_marked(path, mark)]
    for item_path in paths:
        _ask(path, "DELETE", f"{item_path}?force=true&v=true")
    return len(paths)


def _marked(path: str, mark: str) -> Iterator[str]:
    named = quote(json.dumps({"label": [f"{LABEL}={mark}"]}))
    for container in _ask(path, "GET", f"/containers/json?all=true&filters={named}") or []:
        yield f"/containers/{container['Id']}"
    for image in _ask(path, "GET", "/images/json") or []:
        tags = image.get("RepoTags") or []
        yield from (f"/images/{tag}" for tag in tags if tag.startswith(f"{REPOSITORY}/{mark}/"))


def _ask(path: str, method: str, api_path: str) -> Any:
    connection = _SocketConnection(path)
    try:
        connection.request(method, f"/v1.40{api_path}")
        answer = connection.getresponse()
        content = answer.read()
        return json.loads(content) if answer.status == http.client.OK and method == "GET" else None
    finally:
        connection.close()


def main() -> None:
    """Wait until the agent's end of our input closes. Ignore signals to the agent, which reach us as well."""
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
