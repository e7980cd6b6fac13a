"""How fast an upload is beside plain copying on one disk: `python -m tests.worlds.artefacts.upload_throughput
DIRECTORY MIB`."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tests.worlds.artefacts.artefact_stores import NOW, ids, opened
from tidemill.artefacts.local import LocalStore
from tidemill.core.artefacts.artefact import Digest


@dataclass(frozen=True)
class Throughput:
    """Bytes a second: copied by `cp`, copied and synced, uploaded with SHA-256 and syncs, read back."""

    copy: float
    copy_synced: float
    upload: float
    resumed: float
    read: float

    def __str__(self) -> str:
        mib = 1024 * 1024
        return (
            f"cp {self.copy / mib:.0f} MiB/s, cp and sync {self.copy_synced / mib:.0f}, upload {self.upload / mib:.0f} "
            f"(ratio {self.upload / self.copy:.2f}), restarted before its end {self.resumed / mib:.0f}, "
            f"read {self.read / mib:.0f}"
        )


async def measure(place: Path, size_mib: int) -> Throughput:
    """Measure with one file of this size, made of bytes that do not repeat."""
    place.mkdir(parents=True, exist_ok=True)
    source = place / "source"
    _make(source, size_mib)
    size = size_mib * 1024 * 1024
    try:
        copy = size / _timed("cp", str(source), str(place / "copy"))
        (place / "copy").unlink()
        synced = size / _timed("dd", f"if={source}", f"of={place / 'copy'}", "bs=1M", "conv=fsync", "status=none")
        (place / "copy").unlink()
        upload, digest = await _upload(place / "store", source, restart=False)
        resumed, _ = await _upload(place / "again", source, restart=True)
        read = await _read(place / "store", digest)
    finally:
        for left in ("source", "copy"):
            (place / left).unlink(missing_ok=True)
        for left in ("store", "again"):
            shutil.rmtree(place / left, ignore_errors=True)
    return Throughput(copy, synced, size / upload, size / resumed, size / read)


async def file_chunks(
    file: Path, first: int = 0, end: int | None = None, chunk_bytes: int = 256 * 1024
) -> AsyncIterator[bytes]:
    """A file as a server receives it: in chunks."""
    left = (file.stat().st_size if end is None else end) - first
    with file.open("rb") as source:
        source.seek(first)
        while left and (chunk := source.read(min(chunk_bytes, left))):
            left -= len(chunk)
            yield chunk


async def _upload(root: Path, source: Path, *, restart: bool) -> tuple[float, Digest]:
    size = source.stat().st_size
    upload_id = ids().new(NOW)
    begun = time.perf_counter()
    async with opened(root) as store:
        await store.begin(upload_id, size)
        assert await store.append(upload_id, 0, file_chunks(source)) == size
        if not restart:
            return await _finished(store, upload_id, begun)
    async with opened(root) as store:
        return await _finished(store, upload_id, begun)


async def _finished(store: LocalStore, upload_id: UUID, begun: float) -> tuple[float, Digest]:
    digest = await store.finish(upload_id, None, NOW)
    took_s = time.perf_counter() - begun
    assert isinstance(digest, Digest)
    return took_s, digest


async def _read(root: Path, digest: Digest) -> float:
    async with opened(root) as store:
        begun = time.perf_counter()
        reading = await store.open(digest)
        async for _ in reading:
            pass
        await reading.close()
        return time.perf_counter() - begun


def _timed(*command: str) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun


def _make(file: Path, size_mib: int) -> None:
    dice = random.Random(7)
    with file.open("wb") as out:
        for _ in range(size_mib):
            out.write(dice.randbytes(1024 * 1024))
        out.flush()
        os.fsync(out.fileno())  # what is not on the disk yet would be written at the cost of whoever syncs next


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(measure(Path(sys.argv[1]), int(sys.argv[2])))}\n")
