"""A spool whose agent is killed, or whose disk is full: what was said to be kept is there, once and in order."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tidy.source import ROOT
from tests.worlds.agents import spool_writer
from tests.worlds.agents.spool_reports import number_in
from tests.worlds.forks import fork
from tidemill.link.dialled.spool import Spool

MOST_BYTES = 64 * 1024 * 1024
KILLS = 50


async def test_what_was_kept_survives_fifty_kills_in_order_and_once(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    file = tmp_path / "spool.sqlite"
    first, promised = 1, dict[int, int]()
    for kill in range(KILLS):
        kept, safe = _killed_writer(file, first, dice.uniform(0, 0.08))
        promised.update(kept)
        first = max([*promised.values(), first]) + 1_000
        found = await _waiting(file)
        at_least = {number: mark for number, mark in promised.items() if number > safe}
        assert at_least.items() <= found.items(), f"seed {seed}, kill {kill}"
        assert list(found) == list(range(min(found, default=0), min(found, default=0) + len(found)))
        marks = [mark for mark in found.values() if mark >= 0]
        assert marks == sorted(set(marks)), f"seed {seed}, kill {kill}: not in order, or not once"
        promised = at_least
    assert len(promised) or first > KILLS * 1_000


def _killed_writer(file: Path, first: int, after_s: float) -> tuple[dict[int, int], int]:
    """What a process said it had kept until it was killed, by number, and up to where it may have forgotten."""
    heard, told = os.pipe()
    process = fork(spool_writer.begin, file, first, streams=(0, told, 2))
    os.close(told)
    with open(heard, "rb") as out:
        begun = out.readline()
        assert begun, "the writer could not begin"
        time.sleep(after_s)
        process.kill()
        said = [line.split() for line in [begun, *out.read().splitlines(keepends=True)] if line[-1:] == b"\n"]
    process.wait_here()
    kept = {int(number): int(mark) for what, number, mark in said if what == b"kept"}
    return kept, max((int(number) for what, number, _ in said if what == b"safe"), default=0)


async def _waiting(file: Path) -> dict[int, int]:
    spool = await Spool.open(file, MOST_BYTES)
    assert spool.set_aside is None
    found: dict[int, int] = {}
    after = spool.first_number - 1
    while page := await spool.read(after, 1_000_000):
        found.update((number, number_in(report)) for number, report in page)
        after = page[-1][0]
    assert after == spool.last_number
    await spool.close()
    return found


def test_a_file_that_may_not_grow_refuses_reports_and_goes_on_when_it_may(tmp_path: Path) -> None:
    _filled_disk("limit", tmp_path / "spool.sqlite")


@pytest.mark.needs("root")
def test_a_full_disk_refuses_reports_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("this root may not mount")
    try:
        (disk / "ballast").write_bytes(b"x" * 2_000_000)
        _filled_disk("disk", disk / "spool.sqlite")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_where_log_lines_no_longer_fit_a_receipt_of_the_same_moment_is_kept(tmp_path: Path) -> None:
    _filled_disk("receipt", tmp_path / "spool.sqlite")


def _filled_disk(how: str, file: Path) -> None:
    command = [sys.executable, "-m", "tests.worlds.agents.filled_spool", how, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
