"""Products of matrices: the committed product, of the given matrices, checked by a draw.

Integers are right or wrong. Floats are wrong where no honest arithmetic of the claimed precision could be so far off;
overflows, and more suspect rows than are recomputed, go to review.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review
from tidemill.core.trust.proofs import floats, integers
from tidemill.core.trust.proofs.floats import Examination, Precision
from tidemill.core.trust.proofs.statement import Statement, challenge, is_about


@dataclass(frozen=True)
class ClaimedProduct:
    """The product, and the statement that its node committed to."""

    statement: Statement
    product: NDArray[Any]


@dataclass(frozen=True)
class Factors:
    """The matrices of the task, as the pool has them, and the secret that nobody else draws with.

    `precision` is the one that the task allows, and None for integers; a node has no say in it.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    secret: bytes
    precision: Precision | None = None


def check(claim: ClaimedProduct, evidence: Factors) -> Verdict:
    """Whether the product is right. The statement was received before this call, so the draw comes after it."""
    left, right = evidence.left, evidence.right
    if not is_about(claim.statement, left, right, claim.product):
        return failed("The product or its factors are not those that were committed to.")
    draw = challenge(evidence.secret, claim.statement)
    if evidence.precision is not None:
        return _of_floats(claim.product, evidence.precision, left, right, draw)
    if integers.is_right(left, right, claim.product, draw):
        return passed()
    return failed("The product is wrong.")


def _of_floats(
    product: NDArray[Any], precision: Precision, left: NDArray[Any], right: NDArray[Any], draw: bytes
) -> Verdict:
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return review("The factors hold what is no number, so nothing can be said of their product.")
    if product.dtype.kind != "f":
        return failed("The product is not made of floats.")
    findings = floats.examine(left, right, product, precision, draw)
    figures = {"rows_computed": findings.rows_computed, "rows_suspect": findings.rows_suspect}
    if findings.wrong is not None:
        return failed(_sentence(findings), **figures)
    if findings.rows_unsettled or findings.entries_overflowing:
        counts = f"{findings.rows_unsettled} rows and {findings.entries_overflowing} entries"
        return review(f"{counts} could not be told right or wrong.", **figures)
    return passed(**figures)


def _sentence(examination: Examination) -> str:
    wrong = examination.wrong
    assert wrong is not None, "only a wrong entry has a sentence"
    return (
        f"The entry at row {wrong.row}, column {wrong.column} is {wrong.claimed:g}; it should be {wrong.right:g}, "
        f"give or take {wrong.bound:.3g}."
    )
