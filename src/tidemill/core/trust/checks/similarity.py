"""Results that may differ a little: numbers, and embeddings, one a row. Settings say how similar they must be to pass.

Similarity is from 0 to 1, and 1 for equal ones. Of numbers it is one minus their distance as a share of the longer of
the two. Of embeddings it is the cosine or the ratio of lengths, whichever is smaller, of the worst row: one wrong row
in a thousand cannot hide among the others, and a scaled answer is not right. A value that is not a number is similar to
nothing.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.sections.trust import VerificationSettings
from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review


class Measure(StrEnum):
    NUMBERS = "numbers"
    EMBEDDINGS = "embeddings"


@dataclass(frozen=True)
class ResultValues:
    """A result as an array; embeddings are rows of a matrix."""

    measure: Measure
    values: NDArray[Any]


def check(claim: ResultValues, evidence: ResultValues, settings: VerificationSettings) -> Verdict:
    """Compare a result with another execution's."""
    assert claim.measure is evidence.measure, "like is compared with like"
    if claim.values.shape != evidence.values.shape:
        return failed(
            f"The result has the shape {claim.values.shape}; {evidence.values.shape} was asked for.",
        )
    if not _is_finite(evidence.values):
        return review("The other execution answered with what is no number: let a third one decide.")
    if not _is_finite(claim.values):
        return failed("The result holds what is no number, and the other execution's does not.", similarity=0.0)
    if claim.measure is Measure.EMBEDDINGS and claim.values.ndim != 2:
        return failed("Embeddings are rows of a matrix, and this is none.")
    return verdict_of(*_similarity(claim, evidence), settings)


def verdict_of(similarity: float, position: str, settings: VerificationSettings) -> Verdict:
    """What a similarity means. The comparison is such that not-a-number never passes."""
    sentence = f"The result is only {similarity:.3f} similar to the other execution's{position}."
    if similarity > settings.similarity_pass:
        return passed(similarity=similarity)
    return (review if similarity > settings.similarity_review else failed)(sentence, similarity=similarity)


def similarity_of(claimed: NDArray[Any], repeated: NDArray[Any]) -> float:
    """Of two arrays of finite numbers."""
    left, right = _scaled(claimed, repeated)
    longest = max(float(np.linalg.norm(left)), float(np.linalg.norm(right)))
    return max(0.0, 1.0 - float(np.linalg.norm(left - right)) / longest) if longest else 1.0


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


def _similarity(claim: ResultValues, evidence: ResultValues) -> tuple[float, str]:
    if claim.measure is Measure.NUMBERS or claim.values.size == 0:
        return similarity_of(claim.values, evidence.values), ""
    rows = row_similarities(claim.values, evidence.values)
    worst = int(rows.argmin())
    return float(rows[worst]), f" in row {worst}"


def _is_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufb" and bool(np.isfinite(values).all())


def _scaled(claimed: NDArray[Any], repeated: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both divided by their largest magnitude, so that no square overflows or vanishes."""
    left, right = claimed.astype(np.float64).ravel(), repeated.astype(np.float64).ravel()
    most = max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0))
    return (left / most, right / most) if most > 0 else (left, right)


def _divided(numbers: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, and 0 where the divisor is 0."""
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0)
