"""Processes that are killed and disks that are full: what was confirmed is there, and what is left is swept."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from uuid import UUID

import pytest

from tests.tidy.source import ROOT
from tests.worlds.artefacts.artefact_stores import LATER, NOW, KnownSets, chunks, digest_of, files, get, opened
from tests.worlds.artefacts.uploader import content_of
from tests.worlds.forks import module
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import UploadRefusal

Promises = tuple[dict[UUID, int], set[Digest]]


async def test_what_was_confirmed_survives_ten_kills(tmp_path: Path) -> None:
    await _kill(tmp_path / "artefacts", times=10)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_what_was_confirmed_survives_five_hundred_kills(tmp_path: Path) -> None:
    await _kill(tmp_path / "artefacts", times=500)


async def _kill(root: Path, times: int) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    uploads_seen = contents_seen = 0
    for number in range(times):
        where = f"seed {seed}, kill {number}"
        at, held = killed_uploaders([str(root)], dice.uniform(0, 0.15))
        uploads_seen += len(at)
        contents_seen += len(held)
        _expect_whole(root, where)
        async with opened(root) as store:
            await expect_kept(store, at, held, where)
            await go_on(store, at, where)
            await store.sweep(LATER, KnownSets())
        assert files(root) == set(), where
        assert os.listdir(root / "uploads") == [], where
    assert uploads_seen
    assert contents_seen


def killed_uploaders(place: Sequence[str], after_s: float) -> Promises:
    """What two processes in one place said until they were killed."""
    with ExitStack() as files:
        outputs = [files.enter_context(TemporaryFile("r+")) for _ in range(2)]
        processes = [module("tests.worlds.artefacts.uploader", *place, said=output.fileno()) for output in outputs]
        while not all(os.fstat(output.fileno()).st_size for output in outputs):
            assert all(process.returncode is None for process in processes), "an uploader could not begin"
            time.sleep(0.001)
        time.sleep(after_s)
        for process in processes:
            process.kill()
        for process in processes:
            assert process.wait_here() == -signal.SIGKILL
        for output in outputs:
            output.seek(0)
        return _promises([line.split() for output in outputs for line in output if line[-1] == "\n"])


def _promises(said: list[list[str]]) -> Promises:
    gone = {UUID(whom) for what, whom, _ in said if what == "gone"}
    lost = {Digest(whom) for what, whom, _ in said if what == "lost"}
    at: dict[UUID, int] = {}
    for what, whom, more in said:
        if what == "at" and UUID(whom) not in gone:
            at[UUID(whom)] = int(more)
    return at, {Digest(whom) for what, whom, _ in said if what == "held"} - lost


def _expect_whole(root: Path, where: str) -> None:
    for file in (root / "content").rglob("*"):
        if file.is_file():
            assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name, where


async def expect_kept(store: ArtefactStore, at: dict[UUID, int], held: set[Digest], where: str) -> None:
    for digest in held:
        assert await store.size(digest) is not None, where
    for upload_id, offset in at.items():
        stands_at = await store.offset(upload_id)
        assert isinstance(stands_at, int), where
        assert stands_at >= offset, where


async def go_on(store: ArtefactStore, uploads: dict[UUID, int], where: str, *, in_parts: bool = False) -> None:
    """Every upload that was confirmed can be brought to its end."""
    for upload_id in uploads:
        content = content_of(upload_id, in_parts=in_parts)
        stands_at: int | UploadRefusal = UploadRefusal.UPLOAD_OFFSET_WRONG
        while stands_at is UploadRefusal.UPLOAD_OFFSET_WRONG:  # a server may still do what a killed process has asked
            at = await store.offset(upload_id)
            assert isinstance(at, int), where
            stands_at = await store.append(upload_id, at, chunks(content[at:]))
        assert stands_at == len(content), where
        assert await store.finish(upload_id, digest_of(content), NOW) == digest_of(content), where
        assert await get(store, digest_of(content)) == content, where


def test_files_that_may_not_grow_stop_uploads_which_go_on_when_they_may(tmp_path: Path) -> None:
    _filled_disk("limit", tmp_path / "artefacts")


def test_bytes_that_did_not_fit_are_no_part_of_the_digest(tmp_path: Path) -> None:
    _filled_disk("cut", tmp_path / "artefacts")


@pytest.mark.needs("root")
@pytest.mark.parametrize("how", ["disk", "reserve"])
def test_a_full_disk_stops_uploads_which_go_on_when_there_is_space(tmp_path: Path, how: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = {"disk": "8m", "reserve": "200m"}[how]
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("this root may not mount")
    try:
        _filled_disk(how, disk / "artefacts")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _filled_disk(how: str, root: Path) -> None:
    command = [sys.executable, "-m", "tests.worlds.artefacts.filled_store", how, str(root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
