"""Chaos: agents, control processes and PostgreSQL are killed, paused and cut off while customers order and call off.

Whatever happens, every task ends, none is paid twice, nothing stays reserved, no money is lost, and what is told of it
is true. `TIDEMILL_CHAOS_SEED` repeats a plan of faults.
"""

import os
import secrets
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.control.jobs.test_jobs import Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.chaos import CROWDS, EACH, Chaos, crowds_in, processes_in
from tests.worlds.pools.chaos_checks import faulty_lines, spent_uc, told_wrongly, unsound, wrongs
from tests.worlds.pools.chaos_crowd import Mood
from tests.worlds.pools.chaos_customer import ChaosCustomer
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import until
from tests.worlds.pools.wire_agents import CORES
from tidemill.core.accounts.roles import Role, Scope
from tidemill.store.embedded import attach

SETTLED_S = 60
CREDITS = 100_000
SEED = "TIDEMILL_CHAOS_SEED"


@pytest.mark.timeout(300)
def test_twenty_faults_lose_no_task_and_no_money() -> None:
    _survives(20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_faults_lose_no_task_and_no_money() -> None:
    _survives(1_000)


def _survives(faults: int) -> None:
    seed = int(os.environ.get(SEED, secrets.randbits(32)))
    sys.stderr.write(f"{SEED}={seed}\n")
    random = Random(seed)
    with (
        reachable_directory() as home,
        processes_in(home) as slots,
        people_of(slots[0].running) as people,
        crowds_in(home, slots, people, random) as crowds,
    ):
        ann = Shop(slots[0].running, people).customer(CREDITS)
        key = people.key(ann.person, Role.CUSTOMER, Scope.JOBS_READ, Scope.JOBS_WRITE)
        ordering = ChaosCustomer([slot.running.port for slot in slots], key.bearer, Random(seed))
        chaos = Chaos(slots, crowds, people, random)
        before_uc = ann.available_uc
        ordering.start()
        try:
            chaos.run(faults)
            chaos.recover()
        finally:
            ordering.stop()
        assert ordering.trouble == []
        chaos.calm()
        _settled(people, chaos)
        _every_node_has_all_of_itself_to_give(chaos, ordering)
        _settled(people, chaos)
        assert wrongs(people) == {}
        assert people.run(unsound(attach(home))) == []
        assert told_wrongly(ordering) == []
        assert before_uc - ann.available_uc == spent_uc(ordering) > 0
        _went_well(chaos)
        _tell(people, chaos, ordering)


def _settled(people: People, chaos: Chaos) -> None:
    """Nothing is open any more, and nobody is to be told to stop."""
    left = "SELECT count(*) FROM (SELECT task_id FROM task_queue UNION ALL SELECT task_id FROM lease) AS o"
    began = time.monotonic()
    until(lambda: people.rows(left)[0][0] == 0, lambda: _left(people, chaos), SETTLED_S)
    until(lambda: people.rows("SELECT count(*) FROM call_off")[0][0] == 0, "everybody was told to stop", 30)
    chaos.done.append(f"settled in {time.monotonic() - began:.0f} s")


def _every_node_has_all_of_itself_to_give(chaos: Chaos, ordering: ChaosCustomer) -> None:
    """As many tasks as the nodes have processors are at work at once: nothing of a node is taken for anything else."""
    for crowd in chaos.crowds:
        crowd.feel(Mood.STILL)
    nodes = CROWDS * EACH
    job_id = ordering.order(nodes * CORES)
    count = f"SELECT count(*) AS leases, count(DISTINCT node_id) AS nodes FROM lease WHERE job_id = '{job_id}'"

    def is_full() -> bool:
        (row,) = chaos.people.rows(count)
        return (row["leases"], row["nodes"]) == (nodes * CORES, nodes)

    until(is_full, lambda: f"{chaos.people.rows(count)} {_left(chaos.people, chaos)}", 40)
    for crowd in chaos.crowds:
        crowd.feel(Mood.CALM)
    chaos.begin_anew()
    until(lambda: ordering.ask("GET", f"/{job_id}").json()["state"] == "completed", "all of it is done", 40)


def _went_well(chaos: Chaos) -> None:
    """No process said anything that the faults do not explain, and each of them stops in order."""
    for slot in chaos.slots[1:]:
        assert slot.running.end(signal.SIGTERM) == 0
    assert [line for slot in chaos.slots for line in faulty_lines(slot.said())] == []
    assert [Path(crowd.home / "said").read_text() for crowd in chaos.crowds] == [""] * CROWDS


def _left(people: People, chaos: Chaos) -> str:
    """Whatever may say why something is still open."""
    asked = (
        "SELECT l.*, p.process_id, p.offline_since FROM lease AS l JOIN presence AS p ON p.node_id = l.node_id LIMIT 3",
        "SELECT * FROM task_queue LIMIT 3",
        "SELECT nodes, looked, soon, counts FROM waiting_for",
        "SELECT n.life, p.process_id, p.offline_since, count(*) FROM node AS n JOIN presence AS p ON p.node_id = n.id "
        "GROUP BY 1, 2, 3",
        "SELECT passed_at IS NOT NULL AS passed, refused, count(*) FROM node_challenge GROUP BY 1, 2",
    )
    found = [[dict(row) for row in people.rows(sql)] for sql in asked]
    return f"{found} after {chaos.done}: {[slot.said()[-500:] for slot in chaos.slots]}"


def _tell(people: People, chaos: Chaos, ordering: ChaosCustomer) -> None:
    """What a run was, for whoever looks."""
    attempts = {row[0]: row[1] for row in people.rows("SELECT state, count(*) FROM attempt GROUP BY state")}
    ends = {row[0]: row[1] for row in people.rows("SELECT ended, count(*) FROM task GROUP BY ended")}
    told = (Counter(chaos.done), f"{ordering.asked} requests, {ordering.again} again", attempts, ends)
    sys.stderr.write("\n".join(str(one) for one in told) + "\n")
