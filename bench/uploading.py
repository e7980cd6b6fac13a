"""What bringing a large artefact to a pool costs beside copying the file on the same disk.

`upload_ratio` is the time of a copy that is on the disk, `cp` and then `sync` of the new file, over that of an upload
through the pool's own route, as an agent sends a result: received, hashed, made durable and held under its digest.
`cp` alone leaves its copy in memory, which no upload does; beside it the figure is `upload_ratio_in_memory`.
`upload_memory_mib` is by how much the process that receives grew. All files are new, and nothing waits to be written
when a measurement begins.
"""

import os
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
from auth import API, UNLIMITED, credentials, set_up
from pools import pool_of_its_own

MIB = 1024 * 1024
TUS = {"Tus-Resumable": "1.0.0"}


def upload_figures(size_mib: int, turns: int = 3) -> dict[str, float]:
    """The best of some turns, each of which copies first and then uploads."""
    with pool_of_its_own(UNLIMITED) as pool:
        set_up(pool)
        bearer, _ = credentials(pool.url)
        found = [_turn(pool.home, pool.port, bearer, pool.pid, size_mib) for _ in range(turns)]
    synced_s, cached_s, uploaded_s = (min(times) for times in zip(*(times for times, _ in found), strict=True))
    return {
        "upload_ratio": round(synced_s / uploaded_s, 2),
        "upload_ratio_in_memory": round(cached_s / uploaded_s, 2),
        "upload_memory_mib": round(max(grown_mib for _, grown_mib in found), 1),
    }


def _turn(home: Path, port: int, token: str, pid: int, size_mib: int) -> tuple[tuple[float, float, float], float]:
    source, copy = home / "source", home / "copy"
    with source.open("wb") as file:
        for _ in range(size_mib):
            file.write(os.urandom(MIB))
    os.sync()
    cached_s = _timed("cp", str(source), str(copy))
    synced_s = cached_s + _timed("sync", str(copy))
    copy.unlink()
    os.sync()
    memory = _Memory(pid)
    began = time.perf_counter()
    _upload(f"http://127.0.0.1:{port}", token, source)
    uploaded_s = time.perf_counter() - began
    source.unlink()
    return (synced_s, cached_s, uploaded_s), memory.grown_mib()


def _timed(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


def _upload(url: str, token: str, source: Path) -> None:
    size = source.stat().st_size
    about = {**TUS, "Authorization": f"Bearer {token}"}
    metadata = f"filename {b64encode(b'large').decode()},purpose {b64encode(b'input').decode()}"
    begun = httpx2.post(
        f"{url}{API}/artefacts/uploads", headers={**about, "Upload-Length": str(size), "Upload-Metadata": metadata}
    ).raise_for_status()
    told = {**about, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
    location = f"{url}{httpx2.URL(begun.headers['location']).path}"
    sent = httpx2.patch(location, headers={**told, "Content-Length": str(size)}, content=_pieces(source), timeout=600)
    sent.raise_for_status()
    assert sent.headers["upload-offset"] == str(size), sent.headers


def _pieces(source: Path) -> Iterator[bytes]:
    with source.open("rb", buffering=0) as file:
        while piece := file.read(MIB):
            yield piece


class _Memory:
    """How much more a process holds than at the start, at the most."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._first = self._most = self._process.memory_info().rss
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()

    def grown_mib(self) -> float:
        self._over.set()
        self._watch.join()
        return (self._most - self._first) / MIB

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self._most = max(self._most, self._process.memory_info().rss)
