"""A pool for one benchmark: a home and a port of its own, started and stopped as a user would."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_START_S = 60
_STOP_S = 60


@dataclass(frozen=True)
class BenchPool:
    """`setup_token` is for the first operator."""

    home: Path
    port: int
    pid: int
    setup_token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"


@contextmanager
def pool_of_its_own(settings: Mapping[str, str] | None = None) -> Iterator[BenchPool]:
    """Settings are variables of the environment; nothing else of ours is taken from there."""
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-", dir="/var/tmp") as home:
        os.chmod(home, 0o711)  # as root the server runs as another user
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        environment |= {"TIDEMILL_HOME": home, "TIDEMILL_PORT": str(port), **(settings or {})}
        process, token = _started(environment, Path(home) / "said.txt")
        try:
            yield BenchPool(Path(home), port, process.pid, token)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=_STOP_S)


def _started(environment: Mapping[str, str], said: Path) -> tuple[subprocess.Popen[str], str]:
    with said.open("w") as out:
        command = [Path(sys.executable).with_name("tidemill"), "up"]
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + _START_S
    while not (token := re.search(r"/setup#([\w-]+)", said.read_text())):
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            raise SystemExit(f"the pool did not start: {said.read_text()}")
        time.sleep(0.1)
    return process, token[1]
