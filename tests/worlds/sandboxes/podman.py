"""Podman's real engine with a storage of its own, for tests that speak Docker's API to it."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.worlds.places import reachable_directory

SETTINGS = """
[containers]
default_ulimits=["nofile=1024:1024","nproc=4096:4096"]
netns="none"
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
"""


PASSWORDS = ".docker/config.json"
"""Where a user of Podman may have them, from the home directory."""
REGISTRY = '[[registry]]\nlocation = "{registry}"\ninsecure = true\n'


@contextmanager
def podman_service(registry: str = "", passwords: str = "{}") -> Iterator[Path]:
    """The socket of a service that ends, with all that it has, after the test.

    It fetches from one registry without TLS, for which its owner has these passwords.
    """
    with reachable_directory() as home:
        (home / "containers.conf").write_text(SETTINGS)
        (home / "registries.conf").write_text(REGISTRY.format(registry=registry) if registry else "")
        (home / "unpacking").mkdir()
        (home / PASSWORDS).parent.mkdir()
        (home / PASSWORDS).write_text(passwords)
        own = ["--root", str(home / "root"), "--runroot", str(home / "run"), "--tmpdir", str(home / "tmp")]
        podman = ["podman", *own, "--storage-driver", "vfs"]
        variables = {
            **os.environ,
            "CONTAINERS_CONF": str(home / "containers.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(home / "registries.conf"),
            "HOME": str(home),
            "TMPDIR": str(home / "unpacking"),  # what an interrupted load leaves goes with the rest
        }
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
