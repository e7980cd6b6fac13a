"""Private results: what the pool opens of them, what a customer orders them with, and how the customer opens them."""

import base64
import hashlib
import stat
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tidemill.cli.jobs.private_results import key_file, made_private, opener_of, own_key
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task
from tidemill.core.jobs.private_results import NOTHING, binding_of, envelope_for, unseal_result
from tidemill.core.jobs.quotes import Order, parse_order, tasks_of
from tidemill.core.jobs.quotes.tasks import divide
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.results import PIECE_BYTES, ReaderKey, ResultRefusal, envelope, opened_envelope, seal
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.trust.checks.judgement import DELIVERED, judged_at_once

POOL, CUSTOMER, STRANGER = ReaderKey(b"p" * 32), ReaderKey(b"c" * 32), ReaderKey(b"s" * 32)
KEY, PLAIN = b"k" * 32, b"a result" * PIECE_BYTES
MATMUL: dict[str, Any] = {"kind": "matmul", "parameters": {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": 1}}
OPEN = Receipt(
    *(UUID(int=1), UUID(int=2), UUID(int=3), 4, hashlib.sha256(PLAIN).digest(), None, PLAIN, ()),
    *(Instant(1), Instant(2), 1, "exact", b"", AttemptOutcome.DONE, 0, ""),
)
BOUND = binding_of(OPEN)
SEALED = b"".join(seal([PLAIN], KEY, BOUND))
PRIVATE = OPEN._replace(inline=SEALED, envelopes=tuple(envelope(KEY, one.public, BOUND) for one in (POOL, CUSTOMER)))


def text_of(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


@pytest.mark.parametrize("step", [999, PIECE_BYTES, len(SEALED)])
def test_the_pool_opens_what_was_sealed_to_it_however_it_comes(step: int) -> None:
    kept = bytearray()
    pieces = (SEALED[at : at + step] for at in range(0, len(SEALED), step))
    held = unseal_result(PRIVATE, pieces, POOL, kept.extend, len(PLAIN))
    assert (held.is_as_signed, held.is_kept, bytes(kept)) == (True, True, PLAIN)


@pytest.mark.parametrize("most", [0, 1, PIECE_BYTES, len(PLAIN) - 1])
def test_of_a_result_that_is_too_large_no_more_is_kept_and_all_is_checked(most: int) -> None:
    kept = bytearray()
    held = unseal_result(PRIVATE, [SEALED], POOL, kept.extend, most)
    assert (held.is_as_signed, held.is_kept) == (True, False)
    assert len(kept) <= most
    assert unseal_result(PRIVATE._replace(result_sha256=bytes(32)), [SEALED], POOL, kept.extend, most) == NOTHING


@pytest.mark.parametrize(
    ("receipt", "sealed"),
    [
        (PRIVATE._replace(envelopes=()), SEALED),
        (PRIVATE._replace(envelopes=PRIVATE.envelopes[::-1]), SEALED),
        (PRIVATE._replace(envelopes=(envelope(KEY, STRANGER.public, BOUND),)), SEALED),
        (PRIVATE._replace(envelopes=(envelope(bytes(32), POOL.public, BOUND),)), SEALED),
        (PRIVATE._replace(envelopes=(b"",)), SEALED),
        (PRIVATE._replace(attempt_id=UUID(int=9)), SEALED),
        (PRIVATE._replace(lease=5), SEALED),
        (PRIVATE._replace(result_sha256=hashlib.sha256(b"another").digest()), SEALED),
        (PRIVATE, SEALED[:-1]),
        (PRIVATE, SEALED + b"?"),
        (PRIVATE, SEALED[: 16 + PIECE_BYTES + 16]),
        (PRIVATE, PLAIN),
        (PRIVATE, b""),
    ],
)
def test_what_does_not_open_as_it_was_signed_is_no_result(receipt: Receipt, sealed: bytes) -> None:
    assert unseal_result(receipt, [sealed], POOL, bytearray().extend, len(PLAIN)) == NOTHING


def test_the_pool_makes_an_envelope_for_the_customer_from_its_own() -> None:
    assert envelope_for(PRIVATE, STRANGER, CUSTOMER.public) is None
    made = envelope_for(PRIVATE, POOL, CUSTOMER.public)
    assert made
    assert opened_envelope(made, CUSTOMER.private, BOUND) == KEY
    assert opened_envelope(made, STRANGER.private, BOUND) is ResultRefusal.ENVELOPE_DOES_NOT_OPEN


@pytest.mark.parametrize("expected", [OPEN.result_sha256, None])
def test_only_an_open_result_in_its_receipt_passes_at_once(expected: bytes | None) -> None:
    house = expected is None
    digest = Digest(OPEN.result_sha256.hex())
    assert judged_at_once(OPEN, expected, house=house, private=False).verdict == "pass"
    for waits in (
        OPEN._replace(inline=b""),
        OPEN._replace(inline=PLAIN + b"?"),
        OPEN._replace(inline=b"", artefact=digest),
        OPEN._replace(envelopes=(b"",)),
        PRIVATE,
    ):
        assert judged_at_once(waits, expected, house=house, private=False) is DELIVERED
    assert judged_at_once(OPEN, expected, house=house, private=True) is DELIVERED, "it must be sealed, and is not"
    wrong = judged_at_once(PRIVATE._replace(inline=b""), bytes(32), house=house, private=True)
    assert wrong.verdict == "review", "another hash than the customer's needs no look"
    assert wrong.is_orders_fault is house, "the house tells who is wrong"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "A" * 43,
        "A" * 44,
        text_of(CUSTOMER.public)[:-1],
        text_of(CUSTOMER.public) + "=",
        text_of(CUSTOMER.public) + "\n",
        base64.b64encode(b"\xff" * 32).decode(),
        CUSTOMER.public.hex(),
        "é" * 43,
        7,
        True,
        ["A" * 43],
        {},
    ],
)
def test_what_is_no_public_key_is_told_in_a_sentence(key: object) -> None:
    refused = parse_order({**MATMUL, "result_key": key})
    assert isinstance(refused, TaskObjection)
    assert "X25519" in refused.sentence


def test_every_task_of_a_private_order_is_sealed_to_the_pool_and_its_customer() -> None:
    for body, readers in (
        ({**MATMUL, "tasks": 3, "result_key": text_of(CUSTOMER.public)}, (POOL.public, CUSTOMER.public)),
        ({**MATMUL, "tasks": 3}, ()),
        ({**MATMUL, "tasks": 3, "result_key": None}, ()),
    ):
        order = parse_order(body)
        assert isinstance(order, Order)
        parts = divide(order, ())
        assert not isinstance(parts, TaskObjection)
        made = tasks_of(order, parts, [1] * len(parts), 60, POOL.public, ContainersSettings())
        assert not isinstance(made, TaskObjection)
        tasks = [read_task(one.body) for one in made]
        assert [task.seal_to for task in tasks if isinstance(task, Task)] == [readers] * 3


# At the customer's


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def told(*envelopes: bytes) -> dict[str, Any]:
    """A result as the pool tells of it."""
    return {
        "task_id": str(BOUND.task_id),
        "attempt_id": str(BOUND.attempt_id),
        "lease": BOUND.lease,
        "sha256": hashlib.sha256(PLAIN).hexdigest(),
        "envelopes": [base64.b64encode(one).decode() for one in envelopes],
    }


def test_a_customers_key_is_made_once_for_its_owner_alone(config: Path) -> None:
    body = made_private(MATMUL)
    assert body["result_key"] == made_private(MATMUL)["result_key"] == text_of(own_key().public)
    assert stat.S_IMODE(key_file().stat().st_mode) == 0o600
    assert isinstance(parse_order(body), Order)
    with pytest.raises(CommandRefused, match="already"):
        made_private(body)


def test_a_result_opens_with_the_customers_key_whichever_envelope_is_good(config: Path) -> None:
    good, bad = envelope(KEY, own_key().public, BOUND), b"rubbish"
    for envelopes in ((PRIVATE.envelopes[0], good), (good, bad), (bad, bad, good)):
        assert b"".join(opener_of(told(*envelopes)).pieces([SEALED])) == PLAIN


def test_a_result_that_is_cut_or_not_the_signed_one_is_refused(config: Path) -> None:
    result = told(envelope(KEY, own_key().public, BOUND))
    for sealed, sha256 in ((SEALED[:-1], result["sha256"]), (SEALED, "0" * 64)):
        with pytest.raises(CommandRefused, match=r"[Ff]etch it again"):
            b"".join(opener_of({**result, "sha256": sha256}).pieces([sealed]))


def test_without_the_right_key_it_is_said_what_is_missing(config: Path) -> None:
    with pytest.raises(CommandRefused, match=r"result\.key"):
        opener_of(told(PRIVATE.envelopes[1]))
    assert not key_file().exists(), "a new key would open nothing"
    own_key()
    with pytest.raises(CommandRefused, match="does not open with this private key"):
        opener_of(told(*PRIVATE.envelopes))


@pytest.mark.parametrize("harm", ["open to others", "emptied", "longer", "a folder"])
def test_a_key_file_that_is_not_as_it_was_made_is_refused(config: Path, harm: str) -> None:
    own_key()
    file = key_file()
    match harm:
        case "open to others":
            file.chmod(0o640)
        case "emptied":
            file.write_text("")
        case "longer":
            file.write_text(file.read_text() * 2)
        case _:
            file.unlink()
            file.mkdir()
    with pytest.raises(CommandRefused, match=r"result\.key"):
        own_key()
