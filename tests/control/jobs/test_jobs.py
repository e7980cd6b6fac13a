"""Jobs through the API of a real pool: ordered, quoted, confirmed, called off; and whoever tries to cheat."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tests.worlds.pools.tus import Client, problem
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.ledger import AccountKind, LedgerAccount
from tidemill.core.money import micro_credits
from tidemill.store.clock import read_clock
from tidemill.store.ledger import ledger

JOBS = "/api/v1/marketplace/jobs"
SEED = {
    "type": "ml_training",
    "framework": "pytorch",
    "dataset_size": "500GB",
    "model_params": "70B",
    "priority": "high",
    "max_budget": 1000,
}
MATMUL: dict[str, Any] = {
    "kind": "matmul",
    "parameters": {"m": 2048, "n": 2048, "k": 2048, "element": "int8", "seed": 7},
}


@dataclass
class Shop:
    """A pool without nodes, and its customers."""

    running: Running
    people: People

    def customer(self, balance: int = 100) -> "Customer":
        """Somebody with so many credits."""
        person = self.people.person(Role.CUSTOMER)
        if balance:
            self.people.deposit(person, balance * 1_000_000)
        return Customer(self, person, self.people.session(person).bearer)


@dataclass
class Customer:
    shop: Shop
    person: Person
    headers: dict[str, str]

    def post(self, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        return self.shop.running.post(JOBS + path, headers={**self.headers, **headers}, json=body)

    def get(self, path: str, **query: str) -> httpx2.Response:
        return self.shop.running.get(JOBS + path, headers=self.headers, params=query)

    def order(self, body: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        made = self.post("", {**(body or MATMUL), **more})
        assert made.status_code == 201, made.text
        found: dict[str, Any] = made.json()
        return found

    def refused(self, body: Any) -> tuple[int, str]:
        answer = self.post("", body)
        return answer.status_code, answer.json()["code"]

    def over(self, job_id: str) -> dict[str, Any]:
        """A job once it has ended: whoever else sweeps at the same time may do it for us."""
        until(lambda: self.get(f"/{job_id}").json()["ended_at"] is not None, "the job is over")
        found: dict[str, Any] = self.get(f"/{job_id}").json()
        return found

    @property
    def available_uc(self) -> int:
        return self.shop.people.run(self._available())

    async def _available(self) -> int:
        async with self.shop.people.database.connection() as connection:
            return await ledger.available_uc(connection, account_of(self.person))


def account_of(person: Person) -> LedgerAccount:
    return LedgerAccount(AccountKind.CUSTOMER, person.id)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with reachable_directory() as home, pool_in(home, **MANY, TIDEMILL_MARKET_QUOTE_VALID_S="5s") as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            yield Shop(running, people)
        assert '"bug"' not in running.said()


def uc(amount: str) -> int:
    found = micro_credits(amount)
    assert isinstance(found, int)
    return found


def test_a_job_is_quoted_confirmed_seen_in_the_queue_called_off_and_refunded(shop: Shop) -> None:
    ann = shop.customer()
    before_uc = ann.available_uc
    job = ann.order(name="a product", max_budget="1.5")
    assert (job["state"], job["name"], job["max_budget"], job["held"]) == ("quoted", "a product", "1.5", "0")
    quote = ann.get(f"/{job['id']}/quote").json()
    assert quote == job["quote"]
    assert quote["can_confirm"]
    assert 0 < uc(quote["low"]) <= uc(quote["high"])
    assert sum(uc(line["high"]) for line in quote["lines"]) == uc(quote["high"])
    assert [line["what"] for line in quote["lines"]] == ["work", "commission", "verification"]
    confirmed = ann.post(f"/{job['id']}/confirm", {"at_most": quote["high"]})
    assert confirmed.status_code == 200, confirmed.text
    assert confirmed.json()["state"] == "queued"
    assert confirmed.json()["held"] == quote["high"]
    assert confirmed.json()["progress"]["waiting"] == 1
    assert ann.available_uc == before_uc - uc(quote["high"])
    assert ann.get(f"/{job['id']}/result").json()["code"] == "result_not_ready"
    queue = shop.running.get("/api/v1/marketplace/queue", headers=ann.headers).json()
    assert queue["waiting"]["normal"] >= 1
    assert ann.post(f"/{job['id']}/cancel").status_code == 200
    ended = ann.over(job["id"])
    assert (ended["state"], ended["held"], ended["spent"]) == ("cancelled", "0", "0")
    assert ann.available_uc == before_uc
    results = ann.get(f"/{job['id']}/result").json()
    assert [(one["task"], one["state"]) for one in results["items"]] == [(0, "cancelled")]
    assert ann.get(f"/{job['id']}/resources").json()["items"] == []
    assert ann.get(f"/{job['id']}/logs").json() == {"items": [], "has_more": False, "after": ""}
    told = [event["kind"] for event in shop.running.events() if event["subject"] == f"job:{job['id']}"]
    assert told == ["job.quoted", "job.confirmed", "job.ended"]


def test_the_example_of_the_marketplace_is_quoted_as_it_stands_and_cannot_be_confirmed(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order(SEED)
    quote = job["quote"]
    assert (quote["kind"], quote["size"], quote["devices"]) == ("training", "heavy", 14)
    assert 0 < quote["hours_low"] < quote["hours_high"]
    assert any("No runner" in sentence for sentence in quote["reasoning"])
    assert not quote["can_confirm"]
    answer = ann.post(f"/{job['id']}/confirm")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_runner")
    assert ann.post(f"/{job['id']}/cancel").json()["state"] == "cancelled"


def test_a_budget_below_the_upper_end_is_refused_and_can_be_raised(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order(max_budget="0.000001")
    assert not job["quote"]["can_confirm"]
    answer = ann.post(f"/{job['id']}/confirm")
    assert (answer.status_code, answer.json()["code"]) == (409, "budget_too_small")
    assert ann.post(f"/{job['id']}/extend", {"max_budget": "0.0000001"}).status_code == 422
    assert ann.post(f"/{job['id']}/extend", {"max_budget": "0.000001"}).json()["code"] == "budget_not_larger"
    assert ann.post(f"/{job['id']}/extend", {"max_budget": "5"}).json()["max_budget"] == "5"
    assert ann.post(f"/{job['id']}/confirm").status_code == 200
    assert ann.post(f"/{job['id']}/extend", {"max_budget": "6"}).json()["code"] == "budget_held"


def test_time_can_be_added_and_its_money_stays_held(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order(deadline="1h")
    assert ann.post(f"/{job['id']}/extend", {"hours": 1}).json()["code"] == "job_not_confirmed"
    before = ann.post(f"/{job['id']}/confirm").json()["deadline_at"]
    assert ann.post(f"/{job['id']}/extend", {}).json()["code"] == "nothing_to_extend"
    assert ann.post(f"/{job['id']}/extend", {"hours": 2}).json()["deadline_at"] > before
    assert ann.post(f"/{job['id']}/extend", {"hours": 24 * 89.9}).json()["code"] == "deadline_too_far"
    held = ann.get(f"/{job['id']}").json()["held"]
    assert ann.post(f"/{job['id']}/extend", {"hours": 24 * 40}).json()["held"] == held
    assert ann.post(f"/{job['id']}/extend", {"hours": -1}).status_code == 422
    ann.post(f"/{job['id']}/cancel")
    assert ann.post(f"/{job['id']}/extend", {"hours": 1}).json()["code"] == "job_over"


def test_whoever_has_no_money_confirms_nothing(shop: Shop) -> None:
    bob = shop.customer(balance=0)
    job = bob.order()
    answer = bob.post(f"/{job['id']}/confirm")
    assert (answer.status_code, answer.json()["code"]) == (402, "insufficient_funds")
    assert bob.get(f"/{job['id']}").json()["state"] == "quoted"


def test_many_who_confirm_at_once_are_held_once(shop: Shop) -> None:
    ann = shop.customer()
    job, before_uc = ann.order(), ann.available_uc
    with ThreadPoolExecutor(8) as several:
        answers = list(several.map(lambda _: ann.post(f"/{job['id']}/confirm").status_code, range(8)))
    assert sorted(answers) == [200, *[409] * 7]
    assert ann.available_uc == before_uc - uc(job["quote"]["high"])


def test_a_confirmation_that_is_sent_again_with_its_key_has_one_effect(shop: Shop) -> None:
    ann = shop.customer()
    first = ann.post("", MATMUL, **{"Idempotency-Key": "order-1"})
    again = ann.post("", MATMUL, **{"Idempotency-Key": "order-1"})
    assert first.json()["id"] == again.json()["id"]
    path = f"/{first.json()['id']}/confirm"
    answers = [ann.post(path, **{"Idempotency-Key": "confirm-1"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[1].headers["Idempotency-Replayed"] == "true"


def test_many_who_order_at_once_are_all_answered(shop: Shop) -> None:
    several = [shop.customer() for _ in range(4)]
    with ThreadPoolExecutor(40) as crowd:
        done = list(crowd.map(lambda number: several[number % 4].post("", MATMUL).status_code, range(120)))
    assert set(done) == {201}


def test_whoever_confirms_and_calls_off_at_once_loses_nothing(shop: Shop) -> None:
    ann = shop.customer()
    before_uc = ann.available_uc
    for _ in range(5):
        job = ann.order()
        with ThreadPoolExecutor(2) as both:
            done = [both.submit(ann.post, f"/{job['id']}/{what}") for what in ("confirm", "cancel")]
            statuses = {one.result().status_code for one in done}
        assert statuses <= {200, 409}
        assert ann.over(job["id"])["state"] == "cancelled"
    assert ann.available_uc == before_uc


def test_anothers_job_does_not_exist(shop: Shop) -> None:
    ann, eve = shop.customer(), shop.customer()
    job = ann.order()["id"]
    for path in ("", "/quote", "/logs", "/resources", "/result"):
        assert eve.get(f"/{job}{path}").json()["code"] == "unknown_job", path
    for path, body in (("/confirm", None), ("/cancel", None), ("/extend", {"max_budget": 7})):
        assert eve.post(f"/{job}{path}", body).json()["code"] == "unknown_job", path
    assert eve.get("").json()["items"] == []
    assert [one["id"] for one in ann.get("").json()["items"]] == [job]
    assert eve.get("", owner=str(ann.person.id)).json()["items"] == []


def test_an_expired_quote_cannot_be_confirmed_and_is_made_anew(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order()["id"]
    time.sleep(5.1)
    assert not ann.get(f"/{job}").json()["quote"]["can_confirm"]
    assert ann.post(f"/{job}/confirm").json()["code"] == "quote_expired"
    assert ann.get(f"/{job}/quote").json()["can_confirm"]
    assert ann.post(f"/{job}/confirm", {"at_most": "0.000001"}).json()["code"] == "price_above_confirmed"
    assert ann.post(f"/{job}/confirm").status_code == 200


def test_a_key_with_a_cap_confirms_no_more_than_that(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order()
    high_uc = uc(job["quote"]["high"])
    key = shop.people.key(ann.person, Role.CUSTOMER, Scope.JOBS_READ, Scope.JOBS_WRITE, spending_cap_uc=2 * high_uc - 1)
    program = Customer(shop, ann.person, key.bearer)
    assert program.post(f"/{job['id']}/confirm").status_code == 200
    second = program.post(f"/{program.order()['id']}/confirm")
    assert (second.status_code, second.json()["code"]) == (402, "spending_cap_reached")
    reader = Customer(shop, ann.person, shop.people.key(ann.person, Role.CUSTOMER, Scope.JOBS_READ).bearer)
    assert reader.post("", MATMUL).json()["code"] == "scope_missing"
    assert reader.get(f"/{job['id']}").status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        {},
        [],
        {"kind": "matmul"},
        {"kind": ["matmul"]},
        {"kind": "mining", "parameters": {}},
        {**MATMUL, "surprise": 1},
        {**MATMUL, "max_budget": -1},
        {**MATMUL, "max_budget": 0},
        {**MATMUL, "max_budget": "1e999"},
        {**MATMUL, "max_budget": 10**30},
        {**MATMUL, "max_budget": "0.0000001"},
        {**MATMUL, "tasks": 10_000},
        {**MATMUL, "tasks": "9..2"},
        {**MATMUL, "tasks": 1.5},
        {**MATMUL, "tasks": -3},
        {**MATMUL, "memory": "1e999GB"},
        {**MATMUL, "memory": "..1MB"},
        {**MATMUL, "hourly": "free"},
        {**MATMUL, "deadline": "1s"},
        {**MATMUL, "deadline": "999999999999h"},
        {**MATMUL, "priority": "urgent"},
        {**MATMUL, "name": "a\u0000b"},
        {**MATMUL, "inputs": {"a": "not an id"}},
        {**MATMUL, "inputs": {"../a": "0190a000-0000-7000-8000-000000000000"}},
        {**MATMUL, "expected": ["00"]},
        {"kind": "matmul", "parameters": {**MATMUL["parameters"], "m": 10**40}},
        {"kind": "script", "parameters": {"seconds": 5, "program": "a = '\u0000'"}},
        {"kind": "script", "parameters": {"seconds": 5, "program": "pass"}, "tasks": 3},
        {"kind": "script", "parameters": {"seconds": 5, "program": "pass", "arguments": ["a" * 4096] * 20}},
        {**SEED, "model_params": "1e999"},
        {**SEED, "dataset_size": "-5GB"},
        {**SEED, "dataset_size": "999999999999999TB"},
        {**SEED, "type": ["ml_training"]},
        {**SEED, "kind": "matmul"},
    ],
)
def test_what_cannot_be_an_order_is_refused_with_a_sentence(shop: Shop, asked: Any) -> None:
    answer = shop.customer(balance=0).post("", asked)
    assert answer.status_code == 422, answer.text
    assert len(answer.json()["detail"]) > 20


def test_numbers_beyond_all_bounds_in_json_are_refused(shop: Shop) -> None:
    eve = shop.customer(balance=0)
    for written in ("1e999", "-1e999", "NaN", "Infinity", "1" * 400):
        body = f'{{"kind": "matmul", "max_budget": {written}, "parameters": {{}}}}'
        answer = shop.running.post(JOBS, headers={**eve.headers, "Content-Type": "application/json"}, content=body)
        assert answer.status_code in (400, 422), (written, answer.text)


def test_an_input_of_somebody_else_is_none(shop: Shop) -> None:
    inputs = dict.fromkeys(("a", "b"), "0190a000-0000-7000-8000-000000000000")
    asked = {"kind": "matmul", "parameters": {"m": 8, "n": 8, "k": 8, "element": "int8"}, "inputs": inputs}
    assert shop.customer(balance=0).refused(asked) == (404, "unknown_artefact")


def test_what_a_job_needs_cannot_be_deleted_until_it_is_over(shop: Shop) -> None:
    ann, eve = shop.customer(), shop.customer()
    keeper = Client(shop.running, ann.headers)
    artefact_id = keeper.put(b"print('hello')")
    inputs = {"program": str(artefact_id)}
    asked = {"kind": "script", "parameters": {"seconds": 5}, "inputs": inputs, "expected": ["00" * 32]}
    assert eve.refused(asked) == (404, "unknown_artefact")
    job = ann.order(asked)["id"]
    assert ann.post(f"/{job}/confirm").status_code == 200
    assert problem(keeper.ask("DELETE", f"/api/v1/artefacts/{artefact_id}")) == "artefact_in_use"
    ann.post(f"/{job}/cancel")
    ann.over(job)
    assert keeper.ask("DELETE", f"/api/v1/artefacts/{artefact_id}").status_code == 200
    again = ann.post("", asked)
    assert again.json()["code"] == "unknown_artefact"


def test_an_input_that_is_gone_when_a_job_is_confirmed_is_told(shop: Shop) -> None:
    ann = shop.customer()
    keeper = Client(shop.running, ann.headers)
    artefact_id = keeper.put(b"print('hello again')")
    inputs = {"program": str(artefact_id)}
    asked = {"kind": "script", "parameters": {"seconds": 5}, "inputs": inputs, "expected": ["00" * 32]}
    job = ann.order(asked)["id"]
    assert keeper.ask("DELETE", f"/api/v1/artefacts/{artefact_id}").status_code == 200
    before_uc = ann.available_uc
    assert ann.post(f"/{job}/confirm").json()["code"] == "unknown_artefact"
    assert ann.available_uc == before_uc


def test_a_thousand_tasks_are_one_job(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order(tasks=1_000)
    assert job["quote"]["tasks"] == 1_000
    assert ann.post(f"/{job['id']}/confirm").json()["progress"]["waiting"] == 1_000
    assert ann.post(f"/{job['id']}/cancel").status_code == 200
    until(lambda: ann.get(f"/{job['id']}").json()["progress"]["cancelled"] == 1_000, "the whole job is swept")


def test_logs_are_followed_until_the_job_is_over(shop: Shop) -> None:
    ann = shop.customer()
    job = ann.order()["id"]
    ann.post(f"/{job}/confirm")
    shop.people.run(_print(shop.people, job, "hello", "world"))
    until(lambda: len(ann.get(f"/{job}/logs").json()["items"]) == 2, "no open transaction could still add lines before")
    page = ann.get(f"/{job}/logs", limit="1").json()
    assert ([one["text"] for one in page["items"]], page["has_more"]) == (["hello"], True)
    rest = ann.get(f"/{job}/logs", after=page["after"]).json()
    assert [one["text"] for one in rest["items"]] == ["world"]
    assert ann.get(f"/{job}/logs", after="nonsense").json()["code"] == "cursor_malformed"
    ann.post(f"/{job}/cancel")
    headers = {**ann.headers, "Accept": "text/event-stream"}
    followed = shop.running.get(f"{JOBS}/{job}/logs", headers=headers).text
    assert followed.count('"text":"') == 2
    assert followed.endswith("event: end\ndata: {}\n\n")


async def _print(people: People, job_id: str, *texts: str) -> None:
    async with people.database.connection() as connection:
        now = await read_clock(connection)
        for text in texts:
            await connection.execute(
                "INSERT INTO attempt_log (id, job_id, attempt_id, task, stream, text, at, generation) "
                "SELECT $1, $2, $1, 0, 'out', $3, $4, generation FROM pool",
                people.ids.new(now),
                UUID(job_id),
                text,
                now,
            )


def test_the_market_is_shown_though_nobody_sells(shop: Shop) -> None:
    ann = shop.customer(balance=0)
    status = shop.running.get("/api/v1/marketplace/cluster/status", headers=ann.headers).json()
    assert (status["nodes"], status["devices"]) == (0, 0)
    prices = shop.running.get("/api/v1/marketplace/pricing", headers=ann.headers).json()
    assert (prices["commission"], prices["default_hourly"], prices["items"]) == ("10%", "0.2", [])
    assert shop.running.get("/api/v1/marketplace/pricing").json() == prices, "and to strangers"
