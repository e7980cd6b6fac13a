"""Receipts: what a node signs about finished attempts. One value has one encoding, so its hash names it.

A receipt names its task, attempt, node and lease, so it counts for no other. A batch carries many under one signature,
over the root of a Merkle tree of the receipts and their count. So any receipt can be shown to a third party without
the others, by its position and the path to the root. Every receipt that was read keeps to the bounds below.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.ids import uuid_of
from tidemill.core.merkle import HASH_BYTES, MerkleTree, is_leaf_of, leaf_hash
from tidemill.core.refusals import Refusal
from tidemill.core.signatures import Identity, is_signed

PURPOSE = "tidemill receipts"

BATCH_MAX_BYTES = 128 * 1024
INLINE_MAX_BYTES = 20 * 1024
"""A result of 16 KiB, sealed."""

PROOF_MAX_BYTES = 32 * 1024
ENVELOPES_MAX = 8
ENVELOPE_MAX_BYTES = 1024
CLASS_MAX_BYTES = 255
REASON_MAX_BYTES = 2_000
NUMBER_MAX = 2**53

_VERSION = 1
_BATCH_HEAD = struct.Struct(">BH")
_LENGTH = struct.Struct(">I")
_ENVELOPE = struct.Struct(">H")
_HEAD = struct.Struct(">BB16s16s16sQqqQiBHHIB")
_FAILED, _WITH_RESULT, _WITH_ARTEFACT = 1, 2, 4
_FLAGS = _FAILED | _WITH_RESULT | _WITH_ARTEFACT


class ReceiptRefusal(Refusal):
    RECEIPTS_MALFORMED = "These receipts cannot be read: run the agent's version that the pool asks for."
    RECEIPTS_FORGED = "The signature of these receipts is not the node's: sign them with the key the node joined with."
    RECEIPT_MOVED = "A receipt names another node than the one that sent it: send only receipts of your own attempts."
    RECEIPT_TWICE = "An attempt has two receipts in one batch: send one for each attempt."
    RECEIPT_NOT_INCLUDED = "This receipt is not in the batch that was signed: ask for its inclusion proof again."


class AttemptOutcome(StrEnum):
    """How an attempt ended on its node."""

    DONE = "done"
    FAILED = "failed"


class Receipt(NamedTuple):
    """One finished attempt. A result is an artefact, or stands inline, or is its hash alone; a failure has none.

    `result_sha256` is the hash of the plain result, empty for a failure; `artefact` the digest of what was uploaded.
    """

    task_id: UUID
    attempt_id: UUID
    node_id: UUID
    lease: int
    result_sha256: bytes
    artefact: Digest | None
    inline: bytes
    envelopes: tuple[bytes, ...]
    started_at: Instant
    finished_at: Instant
    device_ms: int
    numeric_class: str
    proof: bytes
    outcome: AttemptOutcome
    exit_code: int
    reason: str


@dataclass(frozen=True)
class Inclusion:
    """One receipt of a batch, for a third party: its bytes, its position, the count, the root and the path to it."""

    receipt: bytes
    place: int
    count: int
    root: bytes
    path: bytes


def receipt_bytes(receipt: Receipt) -> bytes:
    """The one encoding of a receipt."""
    numeric_class, reason = receipt.numeric_class.encode(), receipt.reason.encode()
    assert _fits(receipt, numeric_class, reason), f"the receipt of attempt {receipt.attempt_id} is out of bounds"
    prefix = _HEAD.pack(
        _VERSION,
        _flags(receipt),
        receipt.task_id.bytes,
        receipt.attempt_id.bytes,
        receipt.node_id.bytes,
        receipt.lease,
        receipt.started_at,
        receipt.finished_at,
        receipt.device_ms,
        receipt.exit_code,
        len(numeric_class),
        len(reason),
        len(receipt.inline),
        len(receipt.proof),
        len(receipt.envelopes),
    )
    artefact = bytes.fromhex(receipt.artefact.text) if receipt.artefact else b""
    envelopes = b"".join(_ENVELOPE.pack(len(envelope)) + envelope for envelope in receipt.envelopes)
    return b"".join(
        (prefix, receipt.result_sha256, artefact, numeric_class, reason, receipt.inline, receipt.proof, envelopes)
    )


def read_receipt(encoded: bytes) -> Receipt | ReceiptRefusal:
    """The inverse; refuses whatever `receipt_bytes` would not have written."""
    try:
        receipt = _read(encoded)
    except (struct.error, ValueError):
        return ReceiptRefusal.RECEIPTS_MALFORMED
    return receipt or ReceiptRefusal.RECEIPTS_MALFORMED


def batch_bytes(receipts: Sequence[Receipt]) -> bytes:
    """Receipts as they are sent. The sender cuts them so that a batch keeps to `BATCH_MAX_BYTES`."""
    leaves = [receipt_bytes(receipt) for receipt in receipts]
    encoded = _BATCH_HEAD.pack(_VERSION, len(leaves)) + b"".join(_LENGTH.pack(len(leaf)) + leaf for leaf in leaves)
    assert leaves, "a batch has a receipt"
    assert len(encoded) <= BATCH_MAX_BYTES, "a batch has at most 128 KiB"
    return encoded


def sign_batch(identity: Identity, sent: bytes) -> bytes:
    """The node's signature of a batch."""
    leaves = _leaves(sent)
    assert leaves, "only a batch is signed"
    return identity.sign(PURPOSE, *_statement(MerkleTree(map(leaf_hash, leaves)).root, len(leaves)))


def read_batch(sent: bytes, signature: bytes, node_key: bytes, node_id: UUID) -> tuple[Receipt, ...] | ReceiptRefusal:
    """The receipts that this node signed, if all of them are its own and no attempt has two."""
    leaves = _leaves(sent)
    if not leaves:
        return ReceiptRefusal.RECEIPTS_MALFORMED
    if not is_signed(node_key, signature, PURPOSE, *_statement(MerkleTree(map(leaf_hash, leaves)).root, len(leaves))):
        return ReceiptRefusal.RECEIPTS_FORGED
    receipts = []
    for leaf in leaves:
        receipt = read_receipt(leaf)
        if isinstance(receipt, ReceiptRefusal):
            return receipt
        receipts.append(receipt)
    if any(receipt.node_id != node_id for receipt in receipts):
        return ReceiptRefusal.RECEIPT_MOVED
    is_single = len({receipt.attempt_id for receipt in receipts}) == len(receipts)
    return tuple(receipts) if is_single else ReceiptRefusal.RECEIPT_TWICE


def inclusion(sent: bytes, position: int) -> Inclusion:
    """The proof that shows one receipt of a batch without the others."""
    leaves = _leaves(sent)
    assert leaves, "only a batch has receipts"
    tree = MerkleTree(map(leaf_hash, leaves))
    return Inclusion(leaves[position], position, len(leaves), tree.root, tree.path(position))


def verify_inclusion(proof: Inclusion, signature: bytes, node_key: bytes) -> Receipt | ReceiptRefusal:
    """The receipt, if the owner of this key signed a batch with it at this position."""
    if not is_leaf_of(proof.root, proof.count, proof.place, proof.receipt, proof.path):
        return ReceiptRefusal.RECEIPT_NOT_INCLUDED
    if not is_signed(node_key, signature, PURPOSE, *_statement(proof.root, proof.count)):
        return ReceiptRefusal.RECEIPTS_FORGED
    return read_receipt(proof.receipt)


def _statement(root: bytes, count: int) -> tuple[bytes, bytes]:
    """What is signed. Without the count, a tree that repeats its last leaf would have the same root."""
    return root, count.to_bytes(4, "big")


def _leaves(sent: bytes) -> list[bytes]:
    """The receipts' bytes; none if it is not a batch."""
    if not _BATCH_HEAD.size < len(sent) <= BATCH_MAX_BYTES:
        return []
    version, count = _BATCH_HEAD.unpack_from(sent)
    leaves, at = [], _BATCH_HEAD.size
    while at < len(sent):
        begin = at + _LENGTH.size
        at = begin + int.from_bytes(sent[at:begin], "big")
        leaves.append(sent[begin:at])
    return leaves if version == _VERSION and len(leaves) == count and at == len(sent) else []


def _read(encoded: bytes) -> Receipt | None:
    """The receipt, or None where bounds are passed or bytes are left over; raises where bytes are missing."""
    (version, flags, task, attempt, node, lease, started_at, finished_at, device_ms, exit_code, *lengths) = (
        _HEAD.unpack_from(encoded)
    )
    if version != _VERSION or flags & ~_FLAGS:
        return None
    sizes = (HASH_BYTES if flags & _WITH_RESULT else 0, HASH_BYTES if flags & _WITH_ARTEFACT else 0, *lengths[:4])
    parts, at = [], _HEAD.size
    for size in sizes:
        parts.append(encoded[at : at + size])
        at += size
    if at > len(encoded):
        return None
    envelopes, at = _read_envelopes(encoded, at, lengths[4])
    result, artefact, numeric_class, reason, inline, proof = parts
    receipt = Receipt(
        task_id=uuid_of(int.from_bytes(task, "big")),
        attempt_id=uuid_of(int.from_bytes(attempt, "big")),
        node_id=uuid_of(int.from_bytes(node, "big")),
        lease=lease,
        result_sha256=result,
        artefact=Digest(artefact.hex()) if artefact else None,
        inline=inline,
        envelopes=envelopes,
        started_at=Instant(started_at),
        finished_at=Instant(finished_at),
        device_ms=device_ms,
        numeric_class=numeric_class.decode(),
        proof=proof,
        outcome=AttemptOutcome.FAILED if flags & _FAILED else AttemptOutcome.DONE,
        exit_code=exit_code,
        reason=reason.decode(),
    )
    return receipt if at == len(encoded) and _fits(receipt, numeric_class, reason) else None


def _read_envelopes(encoded: bytes, at: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """The envelopes, and where they end."""
    envelopes = []
    for _ in range(min(count, ENVELOPES_MAX + 1)):
        (size,) = _ENVELOPE.unpack_from(encoded, at)
        begin = at + _ENVELOPE.size
        at = begin + size
        envelopes.append(encoded[begin:at])
    return tuple(envelopes), at


def _flags(receipt: Receipt) -> int:
    failed = _FAILED if receipt.outcome is AttemptOutcome.FAILED else 0
    return failed | (_WITH_RESULT if receipt.result_sha256 else 0) | (_WITH_ARTEFACT if receipt.artefact else 0)


def _fits(receipt: Receipt, numeric_class: bytes, reason: bytes) -> bool:
    """Whether a receipt keeps to every bound. Checked on writing and on reading."""
    return (
        _is_whole(receipt)
        and 0 <= receipt.lease <= NUMBER_MAX
        and 0 <= receipt.started_at <= receipt.finished_at <= NUMBER_MAX
        and 0 <= receipt.device_ms <= NUMBER_MAX
        and len(receipt.inline) <= INLINE_MAX_BYTES
        and len(receipt.proof) <= PROOF_MAX_BYTES
        and len(receipt.envelopes) <= ENVELOPES_MAX
        and all(len(envelope) <= ENVELOPE_MAX_BYTES for envelope in receipt.envelopes)
        and len(numeric_class) <= CLASS_MAX_BYTES
        and len(reason) <= REASON_MAX_BYTES
        and receipt.numeric_class.isprintable()
        and receipt.reason.isprintable()
    )


def _is_whole(receipt: Receipt) -> bool:
    """Finished work has its result in one place at the most; failed work has none."""
    if receipt.outcome is AttemptOutcome.FAILED:
        return not (receipt.result_sha256 or receipt.artefact or receipt.inline or receipt.envelopes)
    return len(receipt.result_sha256) == HASH_BYTES and not (receipt.artefact and receipt.inline)
