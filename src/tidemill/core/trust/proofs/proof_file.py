"""A proof as a file for third parties: the statement, the proof, and the receipt in which the node signed it.

The file is JSON and names the matrices by their digests. Where the two factors were drawn from a seed, it says so, and
the verifier draws them again. A receipt ties the proof to a node's signature: it is of the same task, attempt, node and
lease, and carries the same proof.
"""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from tidemill.core.bounded_json import Malformed, Text, Whole, json_bytes, read_json
from tidemill.core.jobs.receipts import NUMBER_MAX, Inclusion, ReceiptRefusal, verify_inclusion
from tidemill.core.matrices.seeded_matrices import SEED_MAX
from tidemill.core.refusals import Refusal
from tidemill.core.trust.proofs.refusals import ProofRefusal
from tidemill.core.trust.proofs.statement import DIGEST_BYTES, SIDE_MAX, Statement

FILE_MAX_BYTES = 512 * 1024
VERSION = 1

_Side = Annotated[int, Whole(1, SIDE_MAX)]
_Digest = Annotated[str, Text(2 * DIGEST_BYTES)]
_Hex = Annotated[str, Text(256 * 1024)]


@dataclass(frozen=True)
class SignedReceipt:
    """A receipt, its position in a batch, and the signature of the batch by the node's key."""

    inclusion: Inclusion
    signature: bytes
    node_key: bytes


@dataclass(frozen=True)
class ProofFile:
    """What a file holds. `seed` is None where the factors are a customer's own."""

    statement: Statement
    proof: bytes
    seed: int | None = None
    receipt: SignedReceipt | None = None


@dataclass(frozen=True)
class _ReceiptJson:
    receipt: _Hex
    place: Annotated[int, Whole(0, 2**16)]
    count: Annotated[int, Whole(1, 2**16)]
    root: _Digest
    path: Annotated[str, Text(2 * DIGEST_BYTES * 16)]
    signature: Annotated[str, Text(128)]
    node_key: _Digest


@dataclass(frozen=True)
class _FileJson:
    version: Annotated[int, Whole(VERSION, VERSION)]
    task_id: Annotated[str, Text(36)]
    attempt_id: Annotated[str, Text(36)]
    node_id: Annotated[str, Text(36)]
    lease: Annotated[int, Whole(0, NUMBER_MAX)]
    m: _Side
    n: _Side
    k: _Side
    left: _Digest
    right: _Digest
    product: _Digest
    proof: Annotated[str, Text(4096)]
    seed: Annotated[int, Whole(0, SEED_MAX)] | None = None
    receipt: _ReceiptJson | None = None


def file_bytes(file: ProofFile) -> bytes:
    """The file as it is written."""
    of = file.statement
    written = _FileJson(
        version=VERSION,
        task_id=str(of.task_id),
        attempt_id=str(of.attempt_id),
        node_id=str(of.node_id),
        lease=of.lease,
        m=of.m,
        n=of.n,
        k=of.k,
        left=of.left.hex(),
        right=of.right.hex(),
        product=of.product.hex(),
        proof=file.proof.hex(),
        seed=file.seed,
        receipt=_receipt_json(file.receipt) if file.receipt else None,
    )
    return json_bytes(written) + b"\n"


def read_file(written: bytes) -> ProofFile | ProofRefusal:
    """The inverse, for a stranger's bytes."""
    read = read_json(_FileJson, written, FILE_MAX_BYTES)
    if isinstance(read, Malformed):
        return ProofRefusal.PROOF_MALFORMED
    try:
        receipt = _receipt(read.receipt) if read.receipt else None
        return ProofFile(_statement(read), _bytes(read.proof), read.seed, receipt)
    except ValueError:
        return ProofRefusal.PROOF_MALFORMED


def refused_receipt(of: Statement, proof: bytes, signed_receipt: SignedReceipt) -> Refusal | None:
    """Why a receipt does not show that the owner of its key signed this very proof; None if it does."""
    receipt = verify_inclusion(signed_receipt.inclusion, signed_receipt.signature, signed_receipt.node_key)
    if isinstance(receipt, ReceiptRefusal):
        return receipt
    stated = (receipt.task_id, receipt.attempt_id, receipt.node_id, receipt.lease, receipt.proof)
    same = stated == (of.task_id, of.attempt_id, of.node_id, of.lease, proof)
    return None if same else ProofRefusal.PROOF_RECEIPT_OTHER


def _statement(read: _FileJson) -> Statement:
    left, right, product = (_bytes(digest, DIGEST_BYTES) for digest in (read.left, read.right, read.product))
    ids = (UUID(read.task_id), UUID(read.attempt_id), UUID(read.node_id))
    return Statement(*ids, read.lease, read.m, read.n, read.k, left, right, product)


def _receipt(read: _ReceiptJson) -> SignedReceipt:
    inclusion = Inclusion(
        _bytes(read.receipt), read.place, read.count, _bytes(read.root, DIGEST_BYTES), _bytes(read.path)
    )
    return SignedReceipt(inclusion, _bytes(read.signature, 64), _bytes(read.node_key, 32))


def _receipt_json(receipt: SignedReceipt) -> _ReceiptJson:
    proof = receipt.inclusion
    return _ReceiptJson(
        receipt=proof.receipt.hex(),
        place=proof.place,
        count=proof.count,
        root=proof.root.hex(),
        path=proof.path.hex(),
        signature=receipt.signature.hex(),
        node_key=receipt.node_key.hex(),
    )


def _bytes(text: str, length: int | None = None) -> bytes:
    """Decode hexadecimal; a ValueError if it is malformed, or of another length."""
    decoded = bytes.fromhex(text)
    if length is not None and len(decoded) != length:
        raise ValueError(text)
    return decoded
