"""Results that may differ a little: embeddings, one a row. Their kind says how similar they must be to pass.

Similarity is from 0 to 1, and 1 for equal ones: the cosine or the ratio of lengths, whichever is smaller, of the worst
row. One wrong row in a thousand cannot hide among the others, and a scaled answer is not right. A value that is not a
number is similar to nothing.

A tolerance follows from numeric error: how far two honest executions can be apart that add in another order or round
differently. It is measured where the kind is defined, with a margin. Anything wider would be a gift: at a cosine of
0.95 a vector may be turned by 18 degrees, which is not an error of any arithmetic but another answer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.jobs.kinds.kind import Tolerance
from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review


def check(claim: NDArray[Any], evidence: NDArray[Any], tolerance: Tolerance) -> Verdict:
    """Compare a matrix of embeddings with another execution's."""
    if claim.shape != evidence.shape:
        return failed(f"The result has the shape {claim.shape}; {evidence.shape} was asked for.")
    if not _is_finite(evidence):
        return review("The other execution answered with what is no number: let a third one decide.")
    if not _is_finite(claim):
        return failed("The result holds what is no number, and the other execution's does not.", similarity=0.0)
    if claim.ndim != 2:
        return failed("Embeddings are rows of a matrix, and this is none.")
    if claim.size == 0:
        return passed(similarity=1.0)
    rows = row_similarities(claim, evidence)
    worst = int(rows.argmin())
    return verdict_of(float(rows[worst]), worst, tolerance)


def verdict_of(similarity: float, row: int, tolerance: Tolerance) -> Verdict:
    """What the similarity of the worst row means. The comparison is such that not-a-number never passes."""
    if similarity > tolerance.passes:
        return passed(similarity=similarity)
    sentence = f"The result is only {similarity:.6f} similar to the other execution's in row {row}."
    return (review if similarity > tolerance.unclear else failed)(sentence, similarity=similarity)


def row_similarities(claimed: NDArray[Any], repeated: NDArray[Any]) -> NDArray[np.float64]:
    """Of two matrices of finite numbers, row by row. Two rows of zeros are equal; a row of zeros is like no other."""
    left, right = claimed.astype(np.float64), repeated.astype(np.float64)
    most = np.maximum(np.abs(left).max(axis=1, initial=0.0), np.abs(right).max(axis=1, initial=0.0))[:, None]
    left, right = (_divided(numbers, most) for numbers in (left, right))
    left_lengths, right_lengths = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    directions = (_divided(left, left_lengths[:, None]), _divided(right, right_lengths[:, None]))
    cosines = np.clip(np.einsum("ij,ij->i", *directions), 0.0, 1.0)
    shorter, longer = np.minimum(left_lengths, right_lengths), np.maximum(left_lengths, right_lengths)
    similarities: NDArray[np.float64] = np.where(longer == 0, 1.0, np.minimum(cosines, _divided(shorter, longer)))
    return similarities


def _is_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufb" and bool(np.isfinite(values).all())


def _divided(numbers: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, and 0 where the divisor is 0."""
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0)
