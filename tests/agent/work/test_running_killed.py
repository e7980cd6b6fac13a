"""Agents killed with -9 at random moments while they work: nothing is left behind, finished work is delivered once."""

import asyncio
import random
from collections import defaultdict
from pathlib import Path

import pytest

from tests.worlds.agents.agent_machine import OwnersMachine, left_in, until
from tests.worlds.agents.attempt_tasks import declined, files_of, offer, receipts
from tests.worlds.agents.pool_end import PoolEnd
from tests.worlds.sandboxes.sandbox_cell import groups_of_runs, processes
from tidemill.agent.home.home import Home
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.wire.messages import Assignment

PROGRAM = """
import os, subprocess, time
children = [subprocess.Popen(["/usr/bin/sleep", "3600"]) for _ in range({children})]
time.sleep({seconds})
open("out/token", "wb").write(os.urandom(16))
"""
"""Whoever runs it twice has two results: delivering both would be seen. Its children stay if nobody ends them."""


def unanswered(pool: PoolEnd, offers: list[Assignment]) -> list[Assignment]:
    """What a pool offers again on a new link: whatever it has no receipt of, nor was declined."""
    known = {one.attempt_id.bytes for one in receipts(pool.node)}
    return [one for number, one in enumerate(offers) if one.attempt_id not in known and not declined(pool, number)]


def by_attempt(pool: PoolEnd) -> dict[bytes, set[Receipt]]:
    found: dict[bytes, set[Receipt]] = defaultdict(set)
    for receipt in receipts(pool.node):
        found[receipt.attempt_id.bytes].add(receipt)
    return found


def left_behind(machine: OwnersMachine) -> list[str]:
    runs = Home(machine.home).runs
    return [
        *(f"process {pid}" for pid in processes(runs)),
        *(f"run {name}" for name in left_in(runs)),
        *(f"attempt {entry.name}" for entry in (machine.home / "attempts").iterdir()),
        *(f"group {group}" for group in groups_of_runs(runs)),
        *(
            f"mount {line}"
            for line in Path("/proc/mounts").read_text().splitlines()
            if str(machine.home.parent) in line
        ),
    ]


@pytest.mark.needs("bubblewrap")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("lives", [8, pytest.param(50, marks=pytest.mark.soak)])
async def test_agents_killed_at_random_moments_leave_nothing_and_deliver_once(
    pool: PoolEnd, machine: OwnersMachine, lives: int
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    offers: list[Assignment] = []
    pool.offers = lambda: unanswered(pool, offers)
    for _ in range(lives):
        for _ in range(dice.choice([0, 1, 1, 2])):
            program = PROGRAM.format(children=dice.choice([0, 2]), seconds=dice.choice([0, 0, 0.3, 1.5]))
            offers.append(offer(len(offers), program, deadline_s=600))
        pool.loses_acknowledgements = dice.random() < 0.3
        process = await machine.start("run")
        await asyncio.sleep(dice.uniform(0, 2.0))
        process.kill()
        await process.wait()
    pool.loses_acknowledgements = False
    await machine.start("run")
    await until(lambda: not unanswered(pool, offers), f"seed {seed}: everything is answered", 120)
    await until(lambda: not left_behind(machine), f"seed {seed}: nothing is left")
    found = by_attempt(pool)
    twice = [key.hex() for key, different in found.items() if len(different) > 1]
    assert not twice, f"seed {seed}: these attempts have results that differ: {twice}"
    assert all(one.outcome is AttemptOutcome.DONE for different in found.values() for one in different), f"seed {seed}"
    assert all(len(files_of(one)["token"]) == 16 for different in found.values() for one in different)
    assert len(found) >= lives // 4, f"seed {seed}: little was finished"
    ended = [number for number in range(len(offers)) if declined(pool, number)]
    assert all("agent was ended" in declined(pool, number)[0] for number in ended), f"seed {seed}"
