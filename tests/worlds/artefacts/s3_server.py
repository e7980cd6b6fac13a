"""A real S3 server for tests: SeaweedFS, one process with everything in a directory of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2

from tidemill.artefacts.s3_bucket import BucketAddress
from tidemill.artefacts.s3_signing import S3Credentials, signed_headers
from tidemill.core.clock import Instant

CREDENTIALS = S3Credentials("pool", "a-secret-of-tests", "us-east-1")
BUCKET = "artefacts"
_CONFIGURATION = """{"identities": [{"name": "pool",
 "credentials": [{"accessKey": "pool", "secretKey": "a-secret-of-tests"}],
 "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}"""
_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_PORTS = ("master", "volume", "filer", "s3")


@contextmanager
def s3_server(directory: Path) -> Iterator[str]:
    """Answers its address. Nothing of it is left afterwards."""
    configuration = directory / "s3.json"
    configuration.write_text(_CONFIGURATION)
    ports = _free_ports(2 * len(_PORTS))
    command = [
        str(Path(sys.executable).parent / "weed"), "server", f"-dir={directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-filer", "-s3", f"-s3.config={configuration}", "-s3.iam=false", "-s3.autoCreateBucket=false",
        "-s3.port.iceberg=0", "-s3.port.lance=0",
        "-volume.max=50", "-master.volumeSizeLimitMB=128", "-master.telemetry=false",
        *(f"-{name}.port={port}" for name, port in zip(_PORTS, ports[:4], strict=True)),
        *(f"-{name}.port.grpc={port}" for name, port in zip(_PORTS, ports[4:], strict=True)),
    ]  # fmt: skip
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=directory, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "2"}
        )
    try:
        endpoint = f"http://127.0.0.1:{ports[3]}"
        _make_bucket(endpoint, process, directory / "log")
        yield endpoint
    finally:
        process.kill()
        process.wait()


def place_in(endpoint: str, prefix: str) -> BucketAddress:
    return BucketAddress(endpoint, BUCKET, prefix, CREDENTIALS)


def _make_bucket(endpoint: str, process: "subprocess.Popen[bytes]", log: Path, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while time.monotonic() < until and process.poll() is None:
        with suppress(httpx2.TransportError):
            host = endpoint.removeprefix("http://")
            now = Instant(time.time_ns() // 1000)
            headers = signed_headers(CREDENTIALS, "PUT", host, (f"/{BUCKET}", ""), _NOTHING, now)
            if httpx2.put(f"{endpoint}/{BUCKET}", headers=headers, trust_env=False).status_code in (200, 409):
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2_000:])


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
