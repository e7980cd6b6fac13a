"""Receipts: one value has one encoding, nothing that was signed can be changed or moved, and one can be shown alone."""

import dataclasses
import hashlib
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.jobs.receipts import (
    BATCH_MAX_BYTES,
    ENVELOPE_MAX_BYTES,
    ENVELOPES_MAX,
    INLINE_MAX_BYTES,
    NUMBER_MAX,
    PROOF_MAX_BYTES,
    PURPOSE,
    AttemptOutcome,
    Inclusion,
    Receipt,
    ReceiptRefusal,
    batch_bytes,
    inclusion,
    read_batch,
    read_receipt,
    receipt_bytes,
    sign_batch,
    verify_inclusion,
)
from tidemill.core.merkle import MerkleTree, leaf_hash
from tidemill.core.signatures import Identity

NODE = Identity(b"n" * 32)
STRANGER = Identity(b"s" * 32)
NODE_ID = UUID(int=7)


def a_receipt(number: int = 1, **changes: object) -> Receipt:
    receipt = Receipt(
        task_id=UUID(int=100 + number),
        attempt_id=UUID(int=200 + number),
        node_id=NODE_ID,
        lease=number,
        result_sha256=hashlib.sha256(b"%d" % number).digest(),
        artefact=None,
        inline=b"sealed",
        envelopes=(b"to the pool", b"to the customer"),
        started_at=Instant(1_000_000),
        finished_at=Instant(2_000_000),
        device_ms=900,
        numeric_class="exact",
        proof=b"",
        outcome=AttemptOutcome.DONE,
        exit_code=0,
        reason="",
    )
    return receipt._replace(**changes)  # type: ignore[arg-type]


FAILURE = {"result_sha256": b"", "inline": b"", "envelopes": (), "outcome": AttemptOutcome.FAILED, "exit_code": -9}

texts = st.text(max_size=60).filter(str.isprintable).filter(lambda text: len(text.encode(errors="replace")) < 250)
numbers = st.integers(0, NUMBER_MAX)


@st.composite
def receipts(draw: st.DrawFn) -> Receipt:
    started_at = draw(numbers)
    is_done = draw(st.booleans())
    artefact = draw(st.none() | st.binary(min_size=32, max_size=32).map(lambda found: Digest(found.hex())))
    inline = draw(st.binary(max_size=300)) if artefact is None else b""
    return Receipt(
        task_id=draw(st.uuids()),
        attempt_id=draw(st.uuids()),
        node_id=NODE_ID,
        lease=draw(numbers),
        result_sha256=draw(st.binary(min_size=32, max_size=32)) if is_done else b"",
        artefact=artefact if is_done else None,
        inline=inline if is_done else b"",
        envelopes=tuple(draw(st.lists(st.binary(max_size=99), max_size=ENVELOPES_MAX))) if is_done else (),
        started_at=Instant(started_at),
        finished_at=Instant(draw(st.integers(started_at, NUMBER_MAX))),
        device_ms=draw(numbers),
        numeric_class=draw(texts),
        proof=draw(st.binary(max_size=300)),
        outcome=AttemptOutcome.DONE if is_done else AttemptOutcome.FAILED,
        exit_code=draw(st.integers(-(2**31), 2**31 - 1)),
        reason=draw(texts),
    )


@settings(deadline=None)
@given(st.lists(receipts(), min_size=1, max_size=12, unique_by=lambda receipt: receipt.attempt_id))
def test_what_was_sent_is_what_is_read(sent: list[Receipt]) -> None:
    made = batch_bytes(sent)
    assert read_batch(made, sign_batch(NODE, made), NODE.key, NODE_ID) == tuple(sent)
    assert [read_receipt(receipt_bytes(receipt)) for receipt in sent] == sent


@settings(deadline=None, max_examples=300)
@given(receipts(), st.data())
def test_bytes_that_can_be_read_are_those_that_would_be_written(receipt: Receipt, data: st.DataObject) -> None:
    """So no value has a second encoding, whatever a stranger does to the first."""
    encoded = bytearray(receipt_bytes(receipt))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))]) + data.draw(st.binary(max_size=3))
    for one in (bytes(encoded), cut):
        read = read_receipt(one)
        assert isinstance(read, ReceiptRefusal) or receipt_bytes(read) == one


def test_every_flipped_bit_of_a_batch_and_its_signature_is_refused() -> None:
    made = batch_bytes([a_receipt(1), a_receipt(2, **FAILURE, reason="no memory"), a_receipt(3)])
    signature = sign_batch(NODE, made)
    for place in range(8 * len(made)):
        wrong = bytearray(made)
        wrong[place // 8] ^= 1 << place % 8
        assert isinstance(read_batch(bytes(wrong), signature, NODE.key, NODE_ID), ReceiptRefusal)
    for place in range(8 * len(signature)):
        wrong = bytearray(signature)
        wrong[place // 8] ^= 1 << place % 8
        assert read_batch(made, bytes(wrong), NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_FORGED


@pytest.mark.parametrize(
    "changed",
    [
        [a_receipt(2), a_receipt(1), a_receipt(3)],
        [a_receipt(1), a_receipt(2)],
        [a_receipt(1), a_receipt(2), a_receipt(3), a_receipt(3)],
        [a_receipt(1), a_receipt(2), a_receipt(3), a_receipt(4)],
    ],
)
def test_receipts_that_are_moved_taken_out_repeated_or_added_are_not_what_was_signed(changed: list[Receipt]) -> None:
    """A tree of three leaves has the root of one of four whose last is repeated: the count is signed, too."""
    signature = sign_batch(NODE, batch_bytes([a_receipt(1), a_receipt(2), a_receipt(3)]))
    assert read_batch(batch_bytes(changed), signature, NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_FORGED


def test_a_receipt_of_another_node_is_refused_even_if_it_is_signed() -> None:
    made = batch_bytes([a_receipt(1), a_receipt(2, node_id=UUID(int=8))])
    assert read_batch(made, sign_batch(NODE, made), NODE.key, NODE_ID) is ReceiptRefusal.RECEIPT_MOVED
    made = batch_bytes([a_receipt(1)])
    assert read_batch(made, sign_batch(NODE, made), NODE.key, UUID(int=8)) is ReceiptRefusal.RECEIPT_MOVED
    assert read_batch(made, sign_batch(STRANGER, made), NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_FORGED


def test_an_attempt_has_one_receipt() -> None:
    made = batch_bytes([a_receipt(1), a_receipt(1, exit_code=1)])
    assert read_batch(made, sign_batch(NODE, made), NODE.key, NODE_ID) is ReceiptRefusal.RECEIPT_TWICE


def test_a_signature_for_another_purpose_is_none() -> None:
    made = batch_bytes([a_receipt()])
    other = NODE.sign("tidemill node pass", leaf_hash(receipt_bytes(a_receipt())), (1).to_bytes(4, "big"))
    assert read_batch(made, other, NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_FORGED


@pytest.mark.parametrize(
    "changes",
    [
        {"result_sha256": b""},
        {"result_sha256": b"short"},
        {"artefact": Digest("a" * 64)},
        {"outcome": AttemptOutcome.FAILED},
        {"inline": bytes(INLINE_MAX_BYTES + 1)},
        {"proof": bytes(PROOF_MAX_BYTES + 1)},
        {"envelopes": (b"",) * (ENVELOPES_MAX + 1)},
        {"envelopes": (bytes(ENVELOPE_MAX_BYTES + 1),)},
        {"numeric_class": "x" * 256},
        {"reason": "é" * 1_001},
        {"reason": "two\nlines"},
        {"numeric_class": "\u202eexact"},
        {"lease": -1},
        {"lease": NUMBER_MAX + 1},
        {"started_at": Instant(2_000_001)},
        {"started_at": Instant(-1)},
    ],
)
def test_what_is_out_of_bounds_is_a_bug_of_the_sender(changes: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        receipt_bytes(a_receipt(**changes))


@pytest.mark.parametrize(
    "made", [b"", b"\x01\x00\x00", b"\x01\x00\x01", b"\x01\x00\x01\x00", b"\x01\x00\x00" + bytes(4)]
)
def test_what_is_no_batch_is_refused(made: bytes) -> None:
    assert read_batch(made, bytes(64), NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_MALFORMED


def test_signed_rubbish_is_refused_too() -> None:
    for leaf in (b"", b"x", bytes(400), receipt_bytes(a_receipt()) + b"\x00", receipt_bytes(a_receipt())[:-1]):
        made = b"\x01\x00\x01" + len(leaf).to_bytes(4, "big") + leaf
        signature = NODE.sign(PURPOSE, leaf_hash(leaf), (1).to_bytes(4, "big"))
        assert read_batch(made, signature, NODE.key, NODE_ID) is ReceiptRefusal.RECEIPTS_MALFORMED


def test_a_batch_is_at_most_as_large_as_a_message_takes() -> None:
    full = [a_receipt(number, inline=bytes(INLINE_MAX_BYTES)) for number in range(6)]
    assert len(batch_bytes(full)) <= BATCH_MAX_BYTES
    with pytest.raises(AssertionError):
        batch_bytes([*full, a_receipt(7, inline=bytes(INLINE_MAX_BYTES))])
    with pytest.raises(AssertionError):
        batch_bytes([])


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 100])
def test_each_receipt_can_be_shown_alone(count: int) -> None:
    sent = [a_receipt(number) for number in range(count)]
    made = batch_bytes(sent)
    signature = sign_batch(NODE, made)
    for place in range(count):
        assert verify_inclusion(inclusion(made, place), signature, NODE.key) == sent[place]


def test_what_is_shown_alone_cannot_be_another_or_stand_elsewhere() -> None:
    made = batch_bytes([a_receipt(number) for number in range(5)])
    signature, shown = sign_batch(NODE, made), inclusion(made, 3)
    forged = receipt_bytes(a_receipt(9))
    wrong = [
        dataclasses.replace(shown, receipt=forged),
        dataclasses.replace(shown, place=2),
        dataclasses.replace(shown, place=-1),
        dataclasses.replace(shown, count=6),
        dataclasses.replace(shown, count=4),
        dataclasses.replace(shown, path=shown.path[:-1]),
        dataclasses.replace(shown, path=shown.path + bytes(32)),
        dataclasses.replace(shown, root=bytes(32)),
        Inclusion(forged, 0, 1, leaf_hash(forged), b""),
        Inclusion(forged, 0, 5, MerkleTree([leaf_hash(forged)] * 5).root, MerkleTree([leaf_hash(forged)] * 5).path(0)),
    ]
    assert not [one for one in wrong if isinstance(verify_inclusion(one, signature, NODE.key), Receipt)]
    assert verify_inclusion(shown, signature, STRANGER.key) is ReceiptRefusal.RECEIPTS_FORGED


def test_an_inner_node_of_the_tree_cannot_be_shown_as_a_receipt() -> None:
    made = batch_bytes([a_receipt(1), a_receipt(2)])
    pair = leaf_hash(receipt_bytes(a_receipt(1))) + leaf_hash(receipt_bytes(a_receipt(2)))
    shown = Inclusion(pair, 0, 1, inclusion(made, 0).root, b"")
    assert isinstance(verify_inclusion(shown, sign_batch(NODE, made), NODE.key), ReceiptRefusal)
