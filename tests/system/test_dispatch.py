"""Dispatch through HTTP and the wire: whatever nodes and control processes do, each task is done once and paid once."""

import itertools
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest

from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.databases.dispatch_world import result_of
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import people_of
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tests.worlds.pools.wire_agents import WireAgent
from tests.worlds.pools.work_pools import QUICK, Hands, activate, attempt_of, door_of, hands
from tidemill.wire.messages import Assignment

NODES = 4
SIDE = 24
LARGE = 64
"""The side of products that may be uploaded, and that a receipt just holds."""

_seeds = itertools.count(1_000, 100)


@dataclass
class Stage:
    """Two control processes, four nodes in the test's hands, and a customer."""

    pool: Pool
    shop: Shop
    hands: Hands
    ann: Customer

    def order(self, tasks: int = 1, side: int = SIDE, **more: Any) -> tuple[str, int]:
        """A confirmed job, and the seed of its first task."""
        seed = next(_seeds)
        parameters = {"m": side, "n": side, "k": side, "element": "int8", "seed": seed}
        if side == LARGE:
            more["expected"] = [sha256(result_of(seed + number, side)).hexdigest() for number in range(tasks)]
        job = self.ann.order({"kind": "matmul", "parameters": parameters, "tasks": tasks}, **more)
        confirmed = self.ann.post(f"/{job['id']}/confirm")
        assert confirmed.status_code == 200, confirmed.text
        return job["id"], seed

    def attempts(self, job_id: str) -> dict[str, dict[str, Any]]:
        items = self.ann.get(f"/{job_id}/resources").json()["items"]
        return {one["attempt_id"]: one for one in items}

    def state(self, job_id: str, offer: Assignment) -> str:
        return str(self.attempts(job_id)[str(attempt_of(offer))]["state"])

    def paid(self, job_id: str) -> list[str]:
        """Which attempts of a job were paid."""
        return [name for name, one in self.attempts(job_id).items() if float(one["paid"]) > 0]

    def time_is_up(self, offer: Assignment) -> None:
        """As if the deadline had passed: a real one takes half a minute at the least."""
        self.shop.people.rows(f"UPDATE lease SET due_us = -1 WHERE attempt_id = '{attempt_of(offer)}'")

    def grants(self, offer: Assignment) -> int:
        """What a node may still do for an attempt."""
        return len(self.shop.people.rows(f"SELECT FROM artefact_grant WHERE attempt_id = '{attempt_of(offer)}'"))

    def is_settled(self, job_id: str) -> None:
        """Nothing is left of a job that is over: no money held, no task open, no node busy with it."""
        (row,) = self.shop.people.rows(
            "SELECT h.amount_uc, h.captured_uc, h.released_uc, j.spent_uc, "
            "(SELECT count(*) FROM lease WHERE job_id = j.id) AS leases, "
            "(SELECT count(*) FROM task_queue WHERE job_id = j.id) AS waiting, "
            "(SELECT coalesce(sum(amount_uc), 0) FROM transfer WHERE hold_id = h.id) AS captured "
            f"FROM job AS j JOIN hold AS h ON h.id = j.hold_id WHERE j.id = '{job_id}'"
        )
        assert row["captured_uc"] + row["released_uc"] == row["amount_uc"]
        assert row["captured_uc"] == row["spent_uc"] == row["captured"]
        assert (row["leases"], row["waiting"]) == (0, 0)

    def placing(self) -> Running:
        """The process that places."""
        (row,) = self.shop.people.rows(
            "SELECT p.pid FROM duty AS d JOIN process AS p ON p.id = d.holder WHERE d.name = 'placing'"
        )
        (found,) = [one for one in self.pool.running if _pid(one) == row["pid"]]
        return found


def _pid(running: Running) -> int:
    return running.process.pid


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with reachable_directory() as home, pool_in(home, **QUICK) as pool:
        first = pool.up()
        first.until_ready()
        second = pool.control()
        first.set_up()
        second.until_ready()
        with people_of(first) as people:
            shop = Shop(first, people)
            with hands(home, door_of([first, second], people, NODES), range(NODES)) as made:
                people.run(activate(home, NODES))
                yield Stage(pool, shop, made, shop.customer(100))
        for one in pool.running:
            assert '"bug"' not in one.said()


def test_what_one_node_declines_goes_to_another(stage: Stage) -> None:
    job_id, seed = stage.order()
    first, declined = stage.hands.offer(seed)
    stage.hands.do(lambda: first.decline(declined))
    second, offer = stage.hands.offer(seed, but=[first])
    stage.hands.deliver(second, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.state(job_id, declined) == "declined"
    assert stage.paid(job_id) == [str(attempt_of(offer))]
    stage.is_settled(job_id)


def test_whoever_accepts_twice_may_still_decline(stage: Stage) -> None:
    job_id, seed = stage.order()
    first, declined = stage.hands.offer(seed)
    stage.hands.do(lambda: first.accept(declined))
    until(lambda: stage.state(job_id, declined) == "accepted", "it is written down")
    stage.hands.do(lambda: (first.accept(declined), first.decline(declined)))
    second, offer = stage.hands.offer(seed, but=[first])
    stage.hands.deliver(second, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.state(job_id, declined) == "declined"


def test_what_is_late_goes_to_another_and_a_late_receipt_counts_until_another_has_delivered(stage: Stage) -> None:
    job_id, seed = stage.order()
    late, overdue = stage.hands.offer(seed)
    stage.time_is_up(overdue)
    second, offer = stage.hands.offer(seed, but=[late])
    assert stage.state(job_id, overdue) == "expired"
    stage.hands.deliver(late, overdue)
    until(lambda: stage.hands.is_stopped(second, offer), "the other is called off")
    stage.hands.deliver(second, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.paid(job_id) == [str(attempt_of(overdue))]
    assert stage.state(job_id, offer) == "cancelled"
    stage.is_settled(job_id)


def test_a_late_receipt_counts_no_more_once_another_has_delivered(stage: Stage) -> None:
    job_id, seed = stage.order()
    late, overdue = stage.hands.offer(seed)
    stage.time_is_up(overdue)
    second, offer = stage.hands.offer(seed, but=[late])
    stage.hands.deliver(second, offer)
    until(lambda: stage.state(job_id, offer) in ("submitted", "judged"), "it is delivered")
    stage.hands.deliver(late, overdue)
    stage.hands.deliver(second, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.paid(job_id) == [str(attempt_of(offer))]
    assert stage.state(job_id, overdue) == "expired"
    stage.is_settled(job_id)


def test_failures_and_wrong_results_of_strangers_end_no_task_of_our_kinds(stage: Stage) -> None:
    before_uc = stage.ann.available_uc
    job_id, seed = stage.order()
    tried: list[WireAgent] = []
    for wrong in (False, True, False):
        who, offer = stage.hands.offer(seed, but=tried)
        failure = None if wrong else "The machine is too small."
        stage.hands.do(
            lambda who=who, offer=offer, wrong=wrong, failure=failure: (  # type: ignore[misc]
                who.deliver(who.receipt(offer, wrong=wrong, failure=failure))
            )
        )
        tried.append(who)
    assert stage.ann.get(f"/{job_id}").json()["state"] == "running"
    assert stage.ann.post(f"/{job_id}/cancel").status_code == 200
    ended = stage.ann.over(job_id)
    assert (ended["state"], ended["spent"], ended["held"]) == ("cancelled", "0", "0")
    assert stage.ann.available_uc == before_uc
    assert stage.paid(job_id) == []
    stage.is_settled(job_id)


def test_a_job_that_is_called_off_pays_what_was_verified_and_nothing_else(stage: Stage) -> None:
    before_uc = stage.ann.available_uc
    job_id, seed = stage.order(tasks=3)
    held = [stage.hands.offer(seed + number) for number in range(3)]
    stage.hands.deliver(*held[0])
    until(lambda: stage.ann.get(f"/{job_id}").json()["progress"]["completed"] == 1, "one is verified")
    assert stage.ann.post(f"/{job_id}/cancel").status_code == 200
    until(lambda: all(stage.hands.is_stopped(*one) for one in held[1:]), "the others are told to stop")
    for one in held[1:]:
        stage.hands.deliver(*one)
    ended = stage.ann.over(job_id)
    assert (ended["state"], ended["progress"]["completed"], ended["progress"]["cancelled"]) == ("cancelled", 1, 2)
    assert stage.paid(job_id) == [str(attempt_of(held[0][1]))]
    assert before_uc - stage.ann.available_uc == round(float(ended["spent"]) * 1_000_000) > 0
    stage.is_settled(job_id)


def test_whoever_is_called_off_may_upload_nothing_more(stage: Stage) -> None:
    job_id, seed = stage.order(side=LARGE)
    _, offer = stage.hands.offer(seed)
    assert stage.grants(offer) == 1
    assert stage.ann.post(f"/{job_id}/cancel").status_code == 200
    assert stage.ann.over(job_id)["state"] == "cancelled"
    assert stage.grants(offer) == 0


def test_whoever_is_overtaken_may_upload_nothing_more(stage: Stage) -> None:
    job_id, seed = stage.order(side=LARGE)
    late, overdue = stage.hands.offer(seed)
    stage.time_is_up(overdue)
    _, offer = stage.hands.offer(seed, but=[late])
    assert stage.grants(offer) == 1
    stage.hands.deliver(late, overdue)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.grants(offer) == 0


def test_the_tasks_of_a_lost_node_go_to_others(stage: Stage) -> None:
    job_id, seed = stage.order()
    lost, held = stage.hands.offer(seed)
    stage.hands.do(lambda: stage.hands.crowd.send_away(lost))
    second, offer = stage.hands.offer(seed, but=[lost], within_s=25)
    stage.hands.deliver(second, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert stage.state(job_id, held) == "lost"
    stage.hands.do(lambda: stage.hands.crowd.call_back(lost))
    until(lambda: lost.is_linked, "it is back")
    stage.is_settled(job_id)


def test_the_switch_of_placement_stops_placing_and_nothing_else(stage: Stage) -> None:
    begun_id, begun_seed = stage.order()
    who, begun = stage.hands.offer(begun_seed)
    _switched(stage, "stop")
    job_id, seed = stage.order()
    stage.hands.deliver(who, begun)
    assert stage.ann.over(begun_id)["state"] == "completed"
    time.sleep(1)
    assert stage.ann.get(f"/{job_id}").json()["progress"]["waiting"] == 1
    _switched(stage, "start")
    stage.hands.deliver(*stage.hands.offer(seed))
    assert stage.ann.over(job_id)["state"] == "completed"


def _switched(stage: Stage, how: str) -> None:
    running = stage.shop.running
    path = f"/api/v1/admin/switches/placement/{how}"
    answer = running.post(path, headers=running.operator, json={"reason": "a test"})
    assert answer.status_code == 200, answer.text


def test_when_the_process_that_places_is_killed_another_goes_on_within_seconds(stage: Stage) -> None:
    killed = stage.placing()
    (other,) = [one for one in stage.pool.running if one is not killed]
    killed.end(signal.SIGKILL)
    stage.ann.shop.running = other
    began = time.monotonic()
    job_id, seed = stage.order()
    who, offer = stage.hands.offer(seed)
    took_s = time.monotonic() - began
    stage.hands.deliver(who, offer)
    assert stage.ann.over(job_id)["state"] == "completed"
    assert took_s < 8, took_s
    stage.is_settled(job_id)
