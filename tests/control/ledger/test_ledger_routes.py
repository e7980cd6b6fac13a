"""The operators' ledger over HTTP: pages, statements, adjustments by two operators, freezing."""

import asyncio
import csv
import io
import itertools
import json
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import httpx2
import psutil
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Running, pool_in
from tests.worlds.pools.two_operators import Operator, two_operators
from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.accounts.roles import name_of_account
from tidemill.core.clock import DAY, Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, Adjustment, Hold, LedgerAccount, Transfer
from tidemill.core.money import micro_credits
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.ledger import adjustments, ledger

API = "/api/v1/ledger"
SETTINGS = {
    "TIDEMILL_HTTP_PAGE_LIMIT_MAX": "40",
    "TIDEMILL_HTTP_PAGE_LIMIT_DEFAULT": "3",
    "TIDEMILL_DATABASE_CONNECTIONS_MAX": "2",
}
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")
NOBODY = UUID(int=9)
ANN = name_of_account(UUID(int=10))
IDS = Ids(secrets.randbits)

_owners = itertools.count(1)


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool:
        running = pool.up()
        running.set_up()
        yield running


@pytest.fixture(scope="module")
def operators(up: Running) -> tuple[Operator, Operator]:
    return two_operators(up)


@pytest.fixture
async def customer(up: Running) -> LedgerAccount:
    """A customer of the test's own."""
    account = LedgerAccount(AccountKind.CUSTOMER, UUID(int=next(_owners)))
    connection = await connect(attach(up.home).program)
    await ledger.open_accounts(connection, [account, BANK], await read_clock(connection))
    await connection.close()
    return account


async def deposit(up: Running, customer: LedgerAccount, causes: Sequence[str], amount_uc: int = 1_500_000) -> list[str]:
    """One transfer from the bank a cause. Answers their ids, newest first."""
    connection = await connect(attach(up.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        entries = [
            Transfer(IDS.new(now), BANK.id, customer.id, amount_uc, "credit", "deposit", cause) for cause in causes
        ]
        outcomes = await ledger.post(connection, entries, IDS, now)
    await connection.close()
    assert {outcome.refusal for outcome in outcomes} == {None}
    return [str(entry.id) for entry in reversed(entries)]


async def proposed_by_ann(up: Running, debit: LedgerAccount, credit: LedgerAccount, amount: str) -> UUID:
    amount_uc = micro_credits(amount)
    assert isinstance(amount_uc, int)
    connection = await connect(attach(up.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        asked = Adjustment(IDS.new(now), debit.id, credit.id, amount_uc, "credit", "by hand", ANN, now)
        assert await adjustments.propose_adjustment(connection, asked, OperatorWord(ANN, now), IDS) == asked
    await connection.close()
    return asked.id


def get(up: Running, path: str, **headers: str) -> httpx2.Response:
    return up.get(API + path, headers={**up.operator, **headers})


def post(up: Running, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    return up.post(API + path, json=body, headers={**up.operator, **headers})


def proposal(debit: LedgerAccount, credit: LedgerAccount, /, **changes: Any) -> dict[str, Any]:
    sides = {"debit": str(debit.id), "credit": str(credit.id)}
    return {**sides, "amount": "2.5", "reason": "lost payment 17", **changes}


def pages(up: Running, path: str) -> list[dict[str, Any]]:
    """A whole list, by its cursor."""
    items: list[dict[str, Any]] = []
    after, more = "", True
    while more:
        page = get(up, f"{path}{'&' if '?' in path else '?'}limit=2{after}").json()
        assert len(page["items"]) == 2 if page["has_more"] else len(page["items"]) <= 2
        items += page["items"]
        after, more = f"&after={page['after']}", page["has_more"]
    assert get(up, f"{path}{'&' if '?' in path else '?'}{after[1:]}").json()["items"] == []
    return items


async def test_an_account_shows_its_balance_now_and_then(up: Running, customer: LedgerAccount) -> None:
    await deposit(up, customer, ["invoice:1"], 12_500_001)
    connection = await connect(attach(up.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        hold = Hold(IDS.new(now), customer.id, 500_000, "credit", Instant(now + DAY), "job:1")
        await ledger.post(connection, [hold], IDS, now)
    await connection.close()
    shown = get(up, f"/accounts/{customer.id}").json()
    assert shown == {
        "id": str(customer.id),
        "kind": "customer",
        "owner": str(customer.owner_id),
        "address": None,
        "name": "",
        "currency": "credit",
        "frozen": False,
        "posted": "12.500001",
        "held": "0.5",
        "available": "12.000001",
        "posted_then": None,
    }
    assert get(up, f"/accounts/{customer.id}?at=2020-01-01T00:00:00Z").json()["posted_then"] == "0"
    assert get(up, f"/accounts/{customer.id}?at=9999-12-31T23:59:59-12:00").json()["posted_then"] == "12.500001"
    assert get(up, f"/accounts/{customer.id}?at=0001-01-01T00:00:00%2B14:00").json()["posted_then"] == "0"
    (held,) = get(up, f"/holds?account={customer.id}").json()["items"]
    assert (held["id"], held["amount"], held["captured"], held["currency"]) == (str(hold.id), "0.5", "0", "credit")


async def test_the_past_that_is_archived_is_gone(up: Running, customer: LedgerAccount) -> None:
    connection = await connect(attach(up.home).owner)
    await connection.execute(
        "INSERT INTO ledger_archive (month, archived_at, number, end_id, last_at, file, sha256, entries)"
        " VALUES ('2020-01', '2020-03-01Z', 0, first_id_at('2020-02-01Z'), '2020-02-01Z', 'none', 'none', 0)"
    )
    try:
        past = get(up, f"/accounts/{customer.id}?at=2020-01-15T00:00:00Z")
        assert (past.status_code, past.json()["code"]) == (410, "archived")
        assert get(up, f"/accounts/{customer.id}?at=2020-02-15T00:00:00Z").status_code == 200
    finally:
        await connection.execute("DELETE FROM ledger_archive")
        await connection.close()


async def test_every_list_comes_in_pages(up: Running, customer: LedgerAccount) -> None:
    made = await deposit(up, customer, [f"invoice:{number}" for number in range(5)])
    lines = pages(up, f"/accounts/{customer.id}/statement")
    assert [line["id"] for line in lines] == made
    assert [line["number"] for line in lines] == sorted((line["number"] for line in lines), reverse=True)
    assert {(line["amount"], line["currency"], line["counterpart"]) for line in lines} == {
        ("1.5", "credit", str(BANK.id))
    }
    assert {line["amount"] for line in pages(up, f"/accounts/{BANK.id}/statement")[:5]} == {"-1.5"}

    connection = await connect(attach(up.home).program)
    owner_id = UUID(int=next(_owners) + 1000)
    kinds = (AccountKind.CUSTOMER, AccountKind.PROVIDER_LOCKED, AccountKind.STAKE_ASSIGNED, AccountKind.STAKE_UNLOCKING)
    owned = [LedgerAccount(kind, owner_id) for kind in kinds]
    await ledger.open_accounts(connection, owned, await read_clock(connection))
    async with connection.transaction():
        now = await read_clock(connection)
        places = [Hold(IDS.new(now), customer.id, 1, "credit", Instant(now + DAY), "job") for _ in range(5)]
        await ledger.post(connection, places, IDS, now)
    await connection.close()
    listed = pages(up, f"/accounts?owner={owner_id}")
    assert [one["id"] for one in listed] == sorted(str(account.id) for account in owned)
    assert {one["kind"] for one in pages(up, "/accounts?kind=customer")} == {"customer"}
    assert str(BANK.id) in {one["id"] for one in pages(up, "/accounts")}
    few = get(up, f"/holds?account={customer.id}&limit=4").json()
    assert (len(few["items"]), few["has_more"]) == (4, True)
    assert get(up, f"/holds?account={customer.id}&limit=5").json()["has_more"] is False

    asked = [str(await proposed_by_ann(up, BANK, customer, "1")) for _ in range(5)]
    assert [one["id"] for one in pages(up, "/adjustments?state=proposed")][:5] == asked[::-1]
    assert get(up, "/adjustments").json()["has_more"] is True


async def test_a_whole_statement_is_csv_that_a_spreadsheet_cannot_run(up: Running, customer: LedgerAccount) -> None:
    hostile = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", 'a "quoted", text', "two\nlines"]
    await deposit(up, customer, [*hostile, *(f"invoice:{number}" for number in range(100))])
    by_name = get(up, f"/accounts/{customer.id}/statement.csv")
    by_accept = get(up, f"/accounts/{customer.id}/statement", Accept="text/csv")
    assert by_name.content == by_accept.content
    assert by_name.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attach" in by_name.headers["content-disposition"]
    assert "content-length" not in by_name.headers
    rows = list(csv.DictReader(io.StringIO(by_name.text, newline="")))
    assert [row["cause"] for row in rows[100:]] == [
        "two\nlines",
        'a "quoted", text',
        *(f"'{cause}" for cause in reversed(hostile[:6])),
    ]
    lines = pages(up, f"/accounts/{customer.id}/statement")
    assert [(int(row["number"]), row["id"], row["amount"]) for row in rows] == [
        (line["number"], line["id"], line["amount"]) for line in lines
    ]
    assert {row["currency"] for row in rows} == {"credit"}
    spent = list(csv.DictReader(io.StringIO(get(up, f"/accounts/{BANK.id}/statement.csv").text)))
    assert spent[0]["amount"] == "-1.5", "a number is left as it is"
    assert get(up, f"/accounts/{NOBODY}/statement.csv").status_code == 404


def stalled_reader(up: Running, customer: LedgerAccount) -> socket.socket:
    """Asks for a whole statement and reads no more than the first line of the answer."""
    request = (
        f"GET {API}/accounts/{customer.id}/statement.csv HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: {up.operator['Authorization']}\r\n\r\n"
    )
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(20)
    reader.connect(("127.0.0.1", up.port))
    reader.sendall(request.encode())
    assert reader.recv(15) == b"HTTP/1.1 200 OK"
    return reader


async def test_readers_that_stall_keep_no_connection_and_miss_nothing(up: Running, customer: LedgerAccount) -> None:
    for _ in range(10):
        await deposit(up, customer, ["x" * 2_000] * 1_000)
    stalled = [stalled_reader(up, customer) for _ in range(3)]  # one more than there are connections
    await asyncio.sleep(1)
    began = time.monotonic()
    assert get(up, f"/accounts/{customer.id}").status_code == 200
    assert time.monotonic() - began < 5

    psutil.Process(int((up.home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])).kill()
    with stalled[0].makefile("rb") as answer:
        whole = answer.read()
    assert whole.endswith(b"\r\n0\r\n\r\n"), "the answer was finished, though the database died in the middle"
    assert whole.count(str(BANK.id).encode()) == 10_000
    for reader in stalled:
        reader.close()
    up.until_ready()


def test_a_proposal_is_kept_once_and_its_proposer_cannot_approve_it(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    ann, _ = operators
    asked, key = proposal(BANK, customer), {"Idempotency-Key": "adjust-1", **ann.bearer}
    first = post(up, "/adjustments", asked, **key)
    again = post(up, "/adjustments", asked, **key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"
    made = first.json()
    assert (made["amount"], made["currency"]) == ("2.5", "credit")
    assert (made["state"], made["proposed_by"], made["decided_by"]) == ("proposed", ann.name, None)
    assert [one["debit"] for one in pages(up, "/adjustments") if one["credit"] == str(customer.id)] == [str(BANK.id)]
    other = post(up, "/adjustments", proposal(BANK, customer, amount="3"), **key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")

    alone = post(up, f"/adjustments/{made['id']}/approve", **ann.bearer)
    assert (alone.status_code, alone.json()["code"]) == (403, "second_operator_needed")
    assert get(up, f"/accounts/{customer.id}").json()["posted"] == "0"
    taken_back = post(up, f"/adjustments/{made['id']}/reject")
    assert (taken_back.status_code, taken_back.json()["state"]) == (200, "rejected")
    late = post(up, f"/adjustments/{made['id']}/approve", **ann.bearer)
    assert (late.status_code, late.json()["code"]) == (409, "already_decided")


async def test_a_second_operators_approval_posts_the_money_once(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    asked = await proposed_by_ann(up, BANK, customer, "2.5")
    _, bob = operators
    key = {"Idempotency-Key": "approve-1", **bob.bearer}
    approved = post(up, f"/adjustments/{asked}/approve", **key)
    assert approved.status_code == 200
    assert (approved.json()["state"], approved.json()["decided_by"]) == ("approved", bob.name)
    assert post(up, f"/adjustments/{asked}/approve", **key).content == approved.content
    assert post(up, f"/adjustments/{asked}/approve", **bob.bearer).json()["code"] == "already_decided"
    assert get(up, f"/accounts/{customer.id}").json()["posted"] == "2.5"
    (line,) = get(up, f"/accounts/{customer.id}/statement").json()["items"]
    assert (line["id"], line["kind"], line["cause"]) == (str(asked), "adjustment", "by hand")


async def test_an_approval_that_cannot_be_posted_changes_nothing(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    _, bob = operators
    asked = await proposed_by_ann(up, customer, BANK, "2.5")
    refused = post(up, f"/adjustments/{asked}/approve", **bob.bearer)
    assert (refused.status_code, refused.json()["code"]) == (402, "insufficient_funds")
    assert str(asked) in {one["id"] for one in pages(up, "/adjustments?state=proposed")}
    await deposit(up, customer, ["invoice"], 2_500_000)
    assert post(up, f"/adjustments/{asked}/approve", **bob.bearer).status_code == 200
    assert get(up, f"/accounts/{customer.id}").json()["posted"] == "0"


async def test_nothing_moves_on_a_frozen_account(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    _, bob = operators
    asked = await proposed_by_ann(up, BANK, customer, "1")
    why = {"reason": "stolen card"}
    frozen = post(up, f"/accounts/{customer.id}/freeze", why)
    assert (frozen.status_code, frozen.json()["frozen"]) == (200, True)
    assert post(up, f"/accounts/{customer.id}/freeze", why).json()["code"] == "already_frozen"
    refused = post(up, f"/adjustments/{asked}/approve", **bob.bearer)
    assert (refused.status_code, refused.json()["code"]) == (409, "account_frozen")
    assert post(up, f"/accounts/{customer.id}/unfreeze", why).json()["frozen"] is False
    assert post(up, f"/accounts/{customer.id}/unfreeze", why).json()["code"] == "not_frozen"
    assert post(up, f"/adjustments/{asked}/approve", **bob.bearer).status_code == 200
    told = [event["body"] for event in up.events() if event["kind"] == "ledger.account_frozen"]
    assert [(one["frozen"], one["by"]) for one in told] == [(True, "operator"), (False, "operator")]


async def test_one_person_is_not_two(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    """By the hostile review: propose by one way and approve by another. Only two accounts are two people."""
    ann, bob = operators
    asked = proposal(BANK, customer)
    by_home = post(up, "/adjustments", asked)
    assert (by_home.status_code, by_home.json()["code"]) == (403, "own_account_needed")
    for proposer in (ann.key.bearer, ann.bearer):
        made = post(up, "/adjustments", asked, **proposer).json()
        assert made["proposed_by"] == ann.name, "a key and a session of one account are one person"
        approve = f"/adjustments/{made['id']}/approve"
        assert post(up, approve).json()["code"] == "own_account_needed", "the home's token is nobody in particular"
        assert post(up, approve, **ann.bearer).json()["code"] == "second_operator_needed"
        assert post(up, approve, **ann.key.bearer).status_code == 403
        assert get(up, f"/accounts/{customer.id}").json()["posted"] == "0"
        assert post(up, f"/adjustments/{made['id']}/reject").json()["state"] == "rejected", "which may say no"
    made = post(up, "/adjustments", asked, **ann.bearer).json()
    assert post(up, f"/adjustments/{made['id']}/approve", **bob.bearer).json()["decided_by"] == bob.name
    assert get(up, f"/accounts/{customer.id}").json()["posted"] == "2.5"


@pytest.mark.parametrize(
    ("written", "amount"),
    [("0.1", "0.1"), ('"0.1"', "0.1"), ("1e2", "100"), ("999999999.999999", "999999999.999999"), ("7.000000", "7")],
)
def test_an_amount_is_kept_as_it_was_written(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator], written: str, amount: str
) -> None:
    answer = post_raw(up, customer, written, operators[0])
    assert (answer.status_code, answer.json().get("amount")) == (201, amount)


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("0.1234560000000000001", "amount_too_fine"),
        ("1e999999999", "amount_too_large"),
        ("1e-999999999", "amount_too_fine"),
        ("NaN", "amount_malformed"),
        ("Infinity", "amount_malformed"),
        ("true", "amount_malformed"),
        ("null", "amount_malformed"),
        ("[1]", "amount_malformed"),
        ('"1e3"', "amount_malformed"),
        ("-1", "amount_negative"),
        ("0", "amount_out_of_bounds"),
        ("1" * 4000, "amount_too_large"),
    ],
)
def test_what_is_no_amount_is_refused(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator], written: str, code: str
) -> None:
    answer = post_raw(up, customer, written, operators[0])
    assert (answer.status_code, answer.json()["code"]) == (422, code)


def post_raw(up: Running, customer: LedgerAccount, written: str, by: Operator) -> httpx2.Response:
    """A proposal whose amount is written letter for letter."""
    body = json.dumps(proposal(BANK, customer, amount="here")).replace('"here"', written)
    return up.post(
        f"{API}/adjustments", content=body.encode(), headers={**by.bearer, "Content-Type": "application/json"}
    )


def test_a_number_that_nobody_can_read_is_a_bad_request(
    up: Running, customer: LedgerAccount, operators: tuple[Operator, Operator]
) -> None:
    assert post_raw(up, customer, "1" * 5000, operators[0]).status_code == 400


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"credit": str(NOBODY)}, 404, "unknown_account"),
        ({"credit": str(BANK.id)}, 422, "same_account"),
        ({"currency": "euro"}, 422, "currency_mismatch"),
        ({"currency": "\x00"}, 422, "currency_mismatch"),
        ({"reason": "  "}, 422, "reason_missing"),
        ({"reason": "a\x00b"}, 422, "reason_unprintable"),
        ({"reason": ""}, 422, "reason_missing"),
        ({"debit": "bank"}, 422, "invalid_request"),
        ({"amount": None}, 422, "amount_malformed"),
    ],
)
def test_a_proposal_that_cannot_be_is_refused(
    up: Running,
    customer: LedgerAccount,
    operators: tuple[Operator, Operator],
    changes: dict[str, Any],
    status: int,
    code: str,
) -> None:
    answer = post(up, "/adjustments", proposal(BANK, customer, **changes), **operators[0].bearer)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", f"/accounts/{NOBODY}", 404, "unknown_account"),
        ("GET", f"/accounts/{NOBODY}?at=2020-01-01T00:00:00Z", 404, "unknown_account"),
        ("GET", f"/accounts/{NOBODY}/statement", 404, "unknown_account"),
        ("POST", f"/accounts/{NOBODY}/freeze", 404, "unknown_account"),
        ("POST", f"/accounts/{NOBODY}/unfreeze", 404, "unknown_account"),
        ("POST", f"/adjustments/{NOBODY}/approve", 404, "unknown_adjustment"),
        ("POST", f"/adjustments/{NOBODY}/reject", 404, "unknown_adjustment"),
        ("GET", "/accounts/bank", 422, "reference_malformed"),
        ("GET", "/accounts?kind=wallet", 422, "invalid_request"),
        ("GET", "/accounts?limit=0", 422, "invalid_request"),
        ("GET", f"/accounts/{BANK.id}?at=2020-01-01T00:00:00", 422, "invalid_request"),
        ("GET", f"/accounts/{BANK.id}/statement?after=0", 422, "invalid_request"),
        ("GET", f"/accounts/{BANK.id}/statement?after={2**63}", 422, "invalid_request"),
        ("GET", "/adjustments?state=lost", 422, "invalid_request"),
    ],
)
def test_every_no_says_what_is_wrong(up: Running, method: str, path: str, status: int, code: str) -> None:
    answer = get(up, path) if method == "GET" else post(up, path, {"reason": "why"})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_books_are_for_operators_only(up: Running) -> None:
    described = up.get("/api/v1/openapi.json").json()["paths"]
    routes = [(method, path) for path, methods in described.items() for method in methods if path.startswith(API)]
    assert len(routes) == 11
    body = {"reason": "why", **proposal(BANK, BANK)}
    for method, path in routes:
        address = up.url + path.replace("{account_id}", str(BANK.id)).replace("{adjustment_id}", str(NOBODY))
        for headers, code in (({}, "unauthenticated"), ({"Authorization": "Bearer wrong"}, "token_unknown")):
            answer = httpx2.request(
                method.upper(), address, headers=headers, json=body if method == "post" else None, timeout=10
            )
            assert (answer.status_code, answer.json()["code"]) == (401, code), path
