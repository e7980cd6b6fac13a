"""What a delivered result's task alone shows about it, and for which results.

Products of matrices are checked without computing them again: the receipt commits to the result, and only then is the
draw made, with a secret made for this one check. So nobody can have known it, it need not be stored, and another check
of the same result draws anew. Other results are executed again: see `core.trust.audits.comparison`.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.jobs import result_archives
from tidemill.core.jobs.kinds import work_of
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.matrices.npy import HEADER_MAX_BYTES, MatrixLayout, UnreadableFile, read_layout
from tidemill.core.matrices.products import RESULTS, slabs
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows
from tidemill.core.trust.checks import products
from tidemill.core.trust.checks.products import ClaimedProduct, Factors
from tidemill.core.trust.checks.verdict import Ruling, Verdict, failed, review
from tidemill.core.trust.proofs.floats import Precision
from tidemill.core.trust.proofs.statement import Statement, matrix_digest

CHECKED_MAX_BYTES = 512 * 1024 * 1024
"""The most bytes that the three matrices of a product may take here."""


@dataclass(frozen=True)
class ResultEvidence:
    """What a result is checked with: the task, its inputs by name, the result, and a secret made after its receipt."""

    task: Task
    inputs: Mapping[str, memoryview]
    result: memoryview
    secret: bytes


def is_provable(task: Task) -> bool:
    """Whether the pool can tell by itself if a result of this task is right."""
    work = work_of(task)
    return isinstance(work, Matmul) and _bytes_of(work) <= CHECKED_MAX_BYTES


def result_max_bytes(task: Task) -> int:
    """The largest size of a result of such a task, once it is open."""
    work = work_of(task)
    assert isinstance(work, Matmul), "only what can be proved is"
    return result_archives.archived_bytes([HEADER_MAX_BYTES + 4 * work.m * work.n])


def check_result(receipt: Receipt, evidence: ResultEvidence) -> Verdict:
    """The verdict on a delivered result."""
    work = work_of(evidence.task)
    assert isinstance(work, Matmul), "only products are provable"
    if not hmac.compare_digest(hashlib.sha256(evidence.result).digest(), receipt.result_sha256):
        return failed("The result is not the one whose hash the node signed.")
    product = _product(work, evidence.result)
    if product is None:
        return failed("The result is no matrix of the shape and type that the task asks for.")
    factors = _factors(work, evidence.inputs)
    if isinstance(factors, UnreadableFile):
        return review(factors.sentence)
    left, right = factors
    precision = None if work.element is Element.INT8 else Precision.FLOAT32
    statement = Statement(
        *(receipt.task_id, receipt.attempt_id, receipt.node_id, receipt.lease, work.m, work.n, work.k),
        *(matrix_digest(left), matrix_digest(right), matrix_digest(product)),
    )
    return products.check(ClaimedProduct(statement, product), Factors(left, right, evidence.secret, precision))


def sentence_of(verdict: Verdict) -> str:
    """Why, in one line."""
    if verdict.ruling is Ruling.PASS:
        return "The product was checked against its factors by a draw that nobody could know."
    return " ".join(verdict.reasons)


def read_matrix(body: memoryview) -> NDArray[Any] | UnreadableFile:
    """The matrix in a file of NumPy's format, without copying it."""
    layout = read_layout(bytes(body[:HEADER_MAX_BYTES]), len(body))
    return layout if isinstance(layout, UnreadableFile) else _entries(body, layout)


def _bytes_of(work: Matmul) -> int:
    item_bytes = 1 if work.element is Element.INT8 else 4
    return item_bytes * (work.m * work.k + work.k * work.n) + 4 * work.m * work.n


def _product(work: Matmul, result: memoryview) -> NDArray[Any] | None:
    files = result_archives.read_in_place(result)
    body = None if isinstance(files, result_archives.ResultFilesRefusal) else files.get(PurePosixPath("c.npy"))
    product = None if body is None else read_matrix(body)
    expected = (RESULTS[work.element.value], (work.m, work.n))
    return product if isinstance(product, np.ndarray) and (product.dtype.name, product.shape) == expected else None


def _factors(work: Matmul, inputs: Mapping[str, memoryview]) -> tuple[NDArray[Any], NDArray[Any]] | UnreadableFile:
    element = work.element.value
    if work.seed is not None:
        shapes = {LEFT: (work.m, work.k), RIGHT: (work.k, work.n)}
        return _drawn(work.seed, LEFT, element, shapes[LEFT]), _drawn(work.seed, RIGHT, element, shapes[RIGHT])
    matrices = [read_matrix(inputs[name]) for name in ("a", "b")]
    for matrix, shape in zip(matrices, ((work.m, work.k), (work.k, work.n)), strict=True):
        if isinstance(matrix, UnreadableFile):
            return matrix
        if (matrix.dtype.name, matrix.shape) != (element, shape):
            return UnreadableFile("An input is no matrix of the shape and type that the task names.")
    left, right = matrices
    assert isinstance(left, np.ndarray)
    assert isinstance(right, np.ndarray)
    return left, right


def _drawn(seed: int, number: int, element: str, shape: tuple[int, int]) -> NDArray[Any]:
    """A factor, drawn slab by slab: drawn at once, it would take several times its memory."""
    matrix = np.empty(shape, element)
    for rows in slabs(*shape):
        matrix[rows.start : rows.stop] = drawn_rows(seed, number, element, shape[1], rows)
    return matrix


def _entries(body: memoryview, layout: MatrixLayout) -> NDArray[Any]:
    entries = np.frombuffer(body, np.dtype(layout.element), offset=layout.begins_at)
    return entries.reshape(layout.rows, layout.columns)
