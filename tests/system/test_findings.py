"""What a hostile review did to a running pool with a patched agent and accounts of customers, done again.

Two cheap nodes of two owners cheat. An honest owner's node and the pool's own cost more, so the cheaters are asked
first wherever they may work.
"""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from tests.control.jobs.test_jobs import Customer, Shop, uc
from tests.worlds.agents.cheating_agent import CheatingMachine, cheating_machines_in
from tests.worlds.agents.cheats import (
    AddedTime,
    Dawdling,
    LogFlood,
    MadeUpFailure,
    RotatedEmbeddings,
    SlowChallenge,
    WrongResult,
)
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, house_token, join_token
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.accounts.roles import Role
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.result_archives import archive
from tidemill.core.trust.owner_record import AttemptCounts
from tidemill.store.trust import owner_records

pytestmark = pytest.mark.needs("bubblewrap")

ANSWER = archive({PurePosixPath("answer"): b"42"})
PROGRAM = "open('out/answer', 'w').write('42')"
HOUR_S = 3_600
CORES_MAX = 256
"""A task of one core has at least this share of a machine."""
MIB = 1024 * 1024


@dataclass
class Owner:
    """Somebody with one machine."""

    person: Person | None
    machine: CheatingMachine
    price: int

    @property
    def node_id(self) -> str:
        return self.machine.node_id


@dataclass
class Scene:
    """A pool, its four nodes, and a customer."""

    running: Running
    people: People
    shop: Shop
    first: Owner
    second: Owner
    honest: Owner
    house: Owner

    @property
    def owners(self) -> list[Owner]:
        return [self.first, self.second, self.honest, self.house]

    def open(self, *owners: Owner) -> Customer:
        """Somebody with money, in a pool where these nodes work, and nobody cheats yet."""
        for owner in self.owners:
            owner.machine.cheat()
            rules = {"work": "run" if owner in owners else "drain", "price": owner.price}
            path = f"/api/v1/nodes/{owner.node_id}/rules"
            answer = self.running.put(path, headers=self.running.operator, json=rules)
            assert answer.status_code == 200, answer.text
        customer = self.shop.customer(1_000)
        until(lambda: self.selling(customer) == len(owners), "these nodes work, and no others")
        return customer

    def selling(self, customer: Customer) -> int:
        status = self.running.get("/api/v1/marketplace/cluster/status", headers=customer.headers).json()
        return int(status["nodes"])

    def record(self, owner: Owner) -> AttemptCounts:
        """What is known of an owner's attempts."""
        assert owner.person
        return self.people.run(self._record(owner.person.id))

    async def _record(self, owner_id: UUID) -> AttemptCounts:
        async with self.people.database.connection() as connection:
            return await owner_records.find(connection, owner_id)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with (
        reachable_directory() as home,
        pool_in(home, **MANY, **LIGHT) as pool,
        cheating_machines_in(home, "first", "second", "honest", "house") as machines,
    ):
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            persons: list[Person | None] = [people.person(Role.PROVIDER) for _ in range(3)]
            owners = [
                Owner(person, machine, price)
                for person, machine, price in zip([*persons, None], machines, (2, 2, 20, 40), strict=True)
            ]
            for owner in owners:
                token = join_token(running, people, owner.person) if owner.person else house_token(running, people)
                owner.machine.join(running.url, token)
            owners[1].machine.cheat(SlowChallenge(0.5))
            for owner in owners:
                owner.machine.start()
            made = Scene(running, people, Shop(running, people), *owners)
            observer = made.shop.customer()
            until(lambda: made.selling(observer) == 4, lambda: "\n".join(one.said() for one in machines))
            yield made
        assert '"bug"' not in running.said()


def script(program: str = PROGRAM, seconds: int = 5, **more: Any) -> dict[str, Any]:
    return {"kind": "script", "parameters": {"program": program, "seconds": seconds, **more}}


def product(side: int = 96) -> dict[str, Any]:
    parameters = {"m": side, "n": side, "k": side, "element": "int8", "seed": time.time_ns() % 10**9}
    return {"kind": "matmul", "parameters": parameters}


def begun(customer: Customer, order: dict[str, Any], **more: Any) -> str:
    job = customer.order(order, **more)
    confirmed = customer.post(f"/{job['id']}/confirm")
    assert confirmed.status_code == 200, confirmed.text
    job_id: str = job["id"]
    return job_id


def attempts(customer: Customer, job_id: str) -> list[dict[str, Any]]:
    """What became of every attempt, the oldest first."""
    items: list[dict[str, Any]] = customer.get(f"/{job_id}/resources").json()["items"]
    return sorted(items, key=lambda one: str(one["offered_at"]))


def of(owner: Owner, tried: list[dict[str, Any]]) -> dict[str, Any]:
    """The only attempt of an owner's node."""
    [found] = [one for one in tried if one["node_id"] == owner.node_id]
    return found


def spent_uc(customer: Customer, before_uc: int, job: dict[str, Any]) -> int:
    """What a job took from its customer, which is what it says that it cost."""
    taken_uc = before_uc - customer.available_uc
    assert taken_uc == uc(job["spent"])
    return taken_uc


@pytest.mark.parametrize("expected", [True, False], ids=["expected", "repeated"])
def test_c1_a_node_that_adds_a_week_to_its_receipt_is_paid_what_the_pool_saw(scene: Scene, expected: bool) -> None:
    ann = scene.open(scene.first, scene.house)
    scene.first.machine.cheat(AddedTime(700_000))
    more = {"expected": [hashlib.sha256(ANSWER).hexdigest()]} if expected else {}
    before_uc, began = ann.available_uc, time.monotonic()
    job_id = begun(ann, script(seconds=3_000), **more)
    ended, took_s = ann.over(job_id), time.monotonic() - began
    paid = of(scene.first, attempts(ann, job_id))
    assert (ended["state"], paid["verdict"]) == ("completed", "pass")
    most_uc = scene.first.price * 1_000_000 * took_s / HOUR_S
    assert 0 < uc(paid["paid"]) < most_uc < uc(ended["quote"]["high"]) / 50
    assert spent_uc(ann, before_uc, ended) < 1.1 * most_uc + 2
    assert "only" in paid["reason"], "the doubt is told with the verdict"


def test_c2_two_strangers_with_the_same_failure_fail_nobodys_job(scene: Scene) -> None:
    ann = scene.open(*scene.owners)
    before = [scene.record(owner) for owner in (scene.first, scene.second)]
    for owner in (scene.first, scene.second):
        owner.machine.cheat(MadeUpFailure())
    job_ids = [begun(ann, order) for order in (product(), script(), product(), script())]
    ended = [ann.over(job_id) for job_id in job_ids]
    assert [job["state"] for job in ended] == ["completed"] * 4
    for job_id in job_ids:
        paid = [one for one in attempts(ann, job_id) if uc(one["paid"]) > 0]
        assert [one["node_id"] for one in paid] in ([scene.honest.node_id], [scene.house.node_id])
    after = [scene.record(owner) for owner in (scene.first, scene.second)]
    told = sum(new.crashed - old.crashed for new, old in zip(after, before, strict=True))
    tried = [one for job_id in job_ids for one in attempts(ann, job_id)]
    liars = {scene.first.node_id, scene.second.node_id}
    assert told == sum(one["node_id"] in liars for one in tried) > 0, "each made-up failure is in their record"


def test_c2_two_strangers_with_the_same_wrong_result_do_not_outvote_the_house(scene: Scene) -> None:
    ann = scene.open(scene.first, scene.second, scene.house)
    for owner in (scene.first, scene.second):
        owner.machine.cheat(WrongResult())
    job_id = begun(ann, script())
    ended, tried = ann.over(job_id), attempts(ann, job_id)
    assert ended["state"] == "completed"
    assert [one["verdict"] for one in tried[:-1]] == ["fail"] * (len(tried) - 1)
    assert (tried[-1]["node_id"], tried[-1]["verdict"]) == (scene.house.node_id, "pass")
    [result] = ann.get(f"/{job_id}/result").json()["items"]
    assert result["sha256"] == hashlib.sha256(ANSWER).hexdigest()


def test_h1_who_reads_the_result_in_the_log_and_cancels_pays_for_the_time(scene: Scene) -> None:
    ann = scene.open(scene.first, scene.house)
    before_uc = ann.available_uc
    job_id = begun(
        ann, script("import time\ntime.sleep(0.3)\nprint('the answer is 42', flush=True)\ntime.sleep(60)", seconds=100)
    )
    until(lambda: "the answer is 42" in printed(scene, job_id), "the log has it")
    assert ann.post(f"/{job_id}/cancel").status_code == 200
    ended, attempt = ann.over(job_id), of(scene.first, attempts(ann, job_id))
    assert (ended["state"], attempt["state"]) == ("cancelled", "cancelled")
    assert (
        scene.first.price * 1_000_000 * 0.1 / HOUR_S
        < uc(attempt["paid"])
        < spent_uc(ann, before_uc, ended)
        <= uc(ended["quote"]["high"])
    )


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_h1_who_expects_something_wrong_pays_and_reads_no_log(scene: Scene, is_right: bool) -> None:
    ann = scene.open(scene.first, scene.house)
    before_uc, before = ann.available_uc, scene.record(scene.first)
    program = f"import time\nprint('the answer is 42', flush=True)\ntime.sleep(0.3)\n{PROGRAM}"
    expected = hashlib.sha256(ANSWER if is_right else b"").hexdigest()
    job_id = begun(ann, script(program), expected=[expected])
    until(lambda: "the answer is 42" in printed(scene, job_id), "it has printed")
    shown = ann.get(f"/{job_id}/logs").json()["items"]
    assert not shown or ann.get(f"/{job_id}").json()["ended_at"]
    ended = ann.over(job_id)
    texts = [piece["text"] for piece in ann.get(f"/{job_id}/logs").json()["items"]]
    assert (ended["state"], texts) == (("completed", ["the answer is 42"]) if is_right else ("failed", []))
    assert spent_uc(ann, before_uc, ended) > 0
    assert scene.record(scene.first) == before._replace(verified=before.verified + is_right), "nobody is blamed"


def test_h1_what_no_house_node_could_ever_repeat_is_refused_before_it_runs(scene: Scene) -> None:
    """It was sold with a warning, its log was read, and a day later the money went back. A house node that only rests
    comes back: work for it is sold."""
    ann = scene.open(scene.first)
    before_uc = ann.available_uc
    job = ann.order(script("print('the answer is 42', flush=True)", memory_mib=10**6))
    refused = ann.post(f"/{job['id']}/confirm")
    assert (refused.status_code, refused.json()["code"]) == (409, "uncheckable")
    assert (job["quote"]["can_confirm"], job["quote"]["why_not"]) == (False, JobRefusal.UNCHECKABLE.sentence)
    assert ann.available_uc == before_uc
    rests = ann.order(script())["quote"]
    assert (rests["can_confirm"], rests["can_be_checked"]) == (True, False)


def test_h1_whose_own_program_exits_with_3_pays_for_the_time(scene: Scene) -> None:
    ann = scene.open(scene.first, scene.house)
    before_uc, before = ann.available_uc, scene.record(scene.first)
    job_id = begun(ann, script("import sys, time\ntime.sleep(0.3)\nsys.exit(3)"))
    ended = ann.over(job_id)
    attempt = of(scene.first, attempts(ann, job_id))
    assert (ended["state"], uc(attempt["paid"]) > 0) == ("failed", True)
    assert 0 < spent_uc(ann, before_uc, ended) <= uc(ended["quote"]["high"])
    assert scene.record(scene.first) == before, "nobody is blamed"


def test_h1_who_calls_off_what_failed_while_the_house_is_awaited_pays_for_the_time(scene: Scene) -> None:
    """The result is in the log, the program has failed, and nobody has told yet whose fault that is."""
    ann = scene.open(scene.first)
    before_uc, before = ann.available_uc, scene.record(scene.first)
    job_id = begun(ann, script("import sys, time\nprint('the answer is 42', flush=True)\ntime.sleep(0.5)\nsys.exit(3)"))
    until(lambda: [one["state"] for one in attempts(ann, job_id)] == ["judged"], "it has failed, and waits")
    assert "the answer is 42" in printed(scene, job_id)
    assert ann.post(f"/{job_id}/cancel").status_code == 200
    assert ann.over(job_id)["state"] == "cancelled"
    assert spent_uc(ann, before_uc, ann.over(job_id)) > scene.first.price * 1_000_000 * 0.5 / HOUR_S / CORES_MAX
    assert scene.record(scene.first) == before, "nobody is blamed"


def test_h1_whose_program_works_only_once_pays_for_the_time(scene: Scene) -> None:
    """It prints its result, and fails from then on, so that no house node can repeat it."""
    ann = scene.open(scene.first, scene.house)
    before_uc, before = ann.available_uc, scene.record(scene.first)
    once = f"import sys, time\nif time.time() > {time.time() + 2.5}: sys.exit(3)\nprint('the answer is 42', flush=True)"
    job_id = begun(ann, script(f"{once}\ntime.sleep(2.7)\n{PROGRAM}"))
    ended = ann.over(job_id)
    attempt = of(scene.first, attempts(ann, job_id))
    assert (ended["state"], attempt["verdict"]) == ("failed", "review")
    least_uc = scene.first.price * 1_000_000 * 2.5 / HOUR_S / CORES_MAX
    assert spent_uc(ann, before_uc, ended) > uc(attempt["paid"]) > least_uc
    assert scene.record(scene.first) == before, "nobody is blamed"


def test_c2_two_strangers_who_miss_what_is_expected_fail_nobodys_job(scene: Scene) -> None:
    """A product, whose code is ours: their second result called the order faulty, and both were paid."""
    ann = scene.open(scene.first, scene.second, scene.house)
    order = product()
    known = begun(ann, order)
    assert ann.over(known)["state"] == "completed"
    [result] = ann.get(f"/{known}/result").json()["items"]
    for owner in (scene.first, scene.second):
        owner.machine.cheat(WrongResult())
    job_id = begun(ann, order, expected=[result["sha256"]])
    ended, tried = ann.over(job_id), attempts(ann, job_id)
    assert ended["state"] == "completed"
    assert [one["node_id"] for one in tried if uc(one["paid"])] == [scene.house.node_id]
    assert len(tried) == 3


def test_h1_whose_program_writes_random_output_pays_and_marks_no_honest_node(scene: Scene) -> None:
    ann = scene.open(scene.first, scene.house)
    before_uc, before = ann.available_uc, scene.record(scene.first)
    job_id = begun(ann, script("import os\nopen('out/answer', 'wb').write(os.urandom(64))"))
    ended = ann.over(job_id)
    attempt = of(scene.first, attempts(ann, job_id))
    assert ended["state"] == "failed"
    assert (attempt["verdict"], uc(attempt["paid"]) > 0) == ("review", True)
    assert 0 < spent_uc(ann, before_uc, ended) <= uc(ended["quote"]["high"])
    assert scene.record(scene.first) == before, "nobody is blamed"


def test_h3_a_machine_that_seems_slow_earns_no_more_for_the_same_product(scene: Scene) -> None:
    """The second machine slept in its challenge; it takes long, too, and asks for a tenth of the price."""
    ann = scene.open(scene.honest)
    job_id = begun(ann, product(512))
    assert ann.over(job_id)["state"] == "completed"
    honest_uc = uc(of(scene.honest, attempts(ann, job_id))["paid"])
    ann = scene.open(scene.second)
    scene.second.machine.cheat(Dawdling(1.0))
    job_id = begun(ann, product(512))
    assert ann.over(job_id)["state"] == "completed"
    assert 0 < uc(of(scene.second, attempts(ann, job_id))["paid"]) <= honest_uc


def test_h4_a_node_that_tells_the_same_lines_without_end_fills_no_disk(scene: Scene) -> None:
    ann = scene.open(scene.first)
    scene.first.machine.cheat(LogFlood(batches=60))
    job_id = begun(ann, product())
    assert ann.over(job_id)["state"] == "completed"
    assert MIB < len(printed(scene, job_id)) <= 2 * MIB, "14 MB were told"


def test_m6_embeddings_that_are_turned_a_little_do_not_pass(scene: Scene) -> None:
    """By 0.29 rad, which left a cosine of 0.958: above what passes for generated text."""
    ann = scene.open(scene.first, scene.house)
    scene.first.machine.cheat(RotatedEmbeddings(0.29))
    job_id = begun(ann, {"kind": "embed", "parameters": {"texts": ["a mill", "the tide", "a wheel"]}})
    ended, tried = ann.over(job_id), attempts(ann, job_id)
    assert ended["state"] == "completed"
    turned = of(scene.first, tried)
    assert (turned["verdict"], uc(turned["paid"])) == ("fail", 0)
    assert (tried[-1]["node_id"], tried[-1]["verdict"]) == (scene.house.node_id, "pass")


def test_m7_a_larger_share_of_a_machine_costs_more_and_a_tiny_task_at_least_its_start(scene: Scene) -> None:
    ann = scene.open(scene.first)
    node = f"/api/v1/nodes/{scene.first.node_id}"
    machine = scene.running.get(node, headers=scene.running.operator).json()["machine"]
    one = uc(ann.order(script(seconds=600))["quote"]["high"])
    cores = uc(ann.order(script(seconds=600, cores=machine["cores"]))["quote"]["high"])
    memory = uc(ann.order(script(seconds=600, memory_mib=machine["memory_mib"] * 3 // 4))["quote"]["high"])
    assert cores > 0.95 * machine["cores"] * one > one
    assert memory > 1.4 * one
    job_id = begun(ann, product(2))
    assert ann.over(job_id)["state"] == "completed"
    assert uc(of(scene.first, attempts(ann, job_id))["paid"]) >= 100, "the least that an attempt pays"


def printed(scene: Scene, job_id: str) -> str:
    return "\n".join(
        row["text"] for row in scene.people.rows(f"SELECT text FROM attempt_log WHERE job_id = '{job_id}'")
    )
