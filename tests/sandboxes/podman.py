"""Podman's real engine with a storage of its own, for tests that speak Docker's API to it."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.places import reachable_directory

SETTINGS = """
[containers]
default_ulimits=["nofile=1024:1024","nproc=4096:4096"]
netns="none"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
"""


@contextmanager
def podman_service() -> Iterator[Path]:
    """The socket of a service that ends, with all that it has, after the test."""
    with reachable_directory() as home:
        (home / "containers.conf").write_text(SETTINGS)
        own = ["--root", str(home / "root"), "--runroot", str(home / "run"), "--tmpdir", str(home / "tmp")]
        podman = ["podman", *own, "--storage-driver", "vfs"]
        variables = {**os.environ, "CONTAINERS_CONF": str(home / "containers.conf")}
        line = [*podman, "system", "service", "--time=0", f"unix://{home}/socket"]
        with (home / "log").open("wb") as log:
            service = subprocess.Popen(line, env=variables, cwd=home, stdout=log, stderr=log)
        try:
            _await_socket(home / "socket", service)
            yield home / "socket"
        finally:
            subprocess.run([*podman, "rm", "--all", "--force"], env=variables, capture_output=True, check=False)
            service.terminate()
            service.wait(20)
            with suppress(OSError):
                shutil.rmtree(home / "root", ignore_errors=True)


def _await_socket(path: Path, service: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert service.poll() is None, (path.parent / "log").read_text()
        assert time.monotonic() < until, "podman did not start"
        time.sleep(0.05)
