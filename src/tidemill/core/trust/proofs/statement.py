"""What a proof of a product is about: C = A·B, for three matrices named by digests, by one attempt under one lease.

Everything that a proof depends on is in the statement, and every draw is made from all of it: a proof for one attempt
is no proof for another, and changing a matrix changes the draw. A matrix is named by the SHA-256 of the one file of
NumPy's format that holds it.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from tidemill.core.matrices.npy import CODES, MatrixLayout, header_of
from tidemill.core.trust.proofs.freivalds import Integers

SIDE_MAX = 2**16
"""No side is longer, so that sums of products of int8 fit into an int32."""

DIGEST_BYTES = 32
_SIDES = struct.Struct(">QIII")
_DRAW = b"tidemill product draw\0"


@dataclass(frozen=True)
class Statement:
    """A (m×k) times B (k×n) is C (m×n). The three digests are the commitment."""

    task_id: UUID
    attempt_id: UUID
    node_id: UUID
    lease: int
    m: int
    n: int
    k: int
    left: bytes
    right: bytes
    product: bytes

    def __post_init__(self) -> None:
        assert all(1 <= side <= SIDE_MAX for side in (self.m, self.n, self.k)), "a side is from 1 to 65,536"
        assert all(len(digest) == DIGEST_BYTES for digest in (self.left, self.right, self.product)), (
            "a digest has 32 bytes"
        )


def statement_bytes(statement: Statement) -> bytes:
    """The statement as it is hashed: every part has a fixed position."""
    ids = statement.task_id.bytes + statement.attempt_id.bytes + statement.node_id.bytes
    sides = _SIDES.pack(statement.lease, statement.m, statement.n, statement.k)
    return ids + sides + statement.left + statement.right + statement.product


def matrix_digest(matrix: Integers) -> bytes:
    """The SHA-256 of the matrix's file."""
    rows, columns = matrix.shape
    hashed = hashlib.sha256(header_of(MatrixLayout(matrix.dtype.name, rows, columns)))
    hashed.update(np.ascontiguousarray(matrix).data)
    return hashed.digest()


def is_about(statement: Statement, left: Integers, right: Integers, product: Integers) -> bool:
    """Whether these are the matrices that the statement names, in shape and in every bit."""
    shapes = ((left, statement.m, statement.k), (right, statement.k, statement.n), (product, statement.m, statement.n))
    has_shapes = all(matrix.shape == (rows, columns) for matrix, rows, columns in shapes)
    has_types = all(matrix.dtype.name in CODES for matrix in (left, right, product))
    return (
        has_shapes
        and has_types
        and all(
            hmac.compare_digest(matrix_digest(matrix), digest)
            for matrix, digest in ((left, statement.left), (right, statement.right), (product, statement.product))
        )
    )


def challenge(secret: bytes, *statements: Statement) -> bytes:
    """The pool's draw for statements that are checked together. Nobody without the secret can predict it."""
    return hmac.digest(secret, _DRAW + b"".join(map(statement_bytes, statements)), "sha256")
