"""Results that may differ a little: numbers, and embeddings, one a row. The pool says above what they pass.

Similarity is from 0 to 1, and 1 for equal ones. Of numbers it is one less their distance as a share of the longer of
the two. Of embeddings it is the cosine or the ratio of lengths, whichever is smaller, of the row that is worst: who
answers one of a thousand rows wrongly does not hide it among the others, and a scaled answer is no right one. What is
not a number is similar to nothing.
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


def verdict_of(similarity: float, where: str, settings: VerificationSettings) -> Verdict:
    """What a similarity means. It is compared so that what is no number never passes."""
    told = f"The result is only {similarity:.3f} similar to the other execution's{where}."
    if similarity > settings.similarity_pass:
        return passed(similarity=similarity)
    return (review if similarity > settings.similarity_review else failed)(told, similarity=similarity)


def similarity_of(ones: NDArray[Any], others: NDArray[Any]) -> float:
    """Of two arrays of finite numbers."""
    one, other = _scaled(ones, others)
    longest = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    return max(0.0, 1.0 - float(np.linalg.norm(one - other)) / longest) if longest else 1.0


def row_similarities(ones: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    """Of two matrices of finite numbers, row by row. Two rows of zeros are equal; one of them is like nothing else."""
    one, other = ones.astype(np.float64), others.astype(np.float64)
    most = np.maximum(np.abs(one).max(axis=1, initial=0.0), np.abs(other).max(axis=1, initial=0.0))[:, None]
    one, other = (_divided(numbers, most) for numbers in (one, other))
    one_lengths, other_lengths = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    directions = (_divided(one, one_lengths[:, None]), _divided(other, other_lengths[:, None]))
    cosines = np.clip(np.einsum("ij,ij->i", *directions), 0.0, 1.0)
    shorter, longer = np.minimum(one_lengths, other_lengths), np.maximum(one_lengths, other_lengths)
    found: NDArray[np.float64] = np.where(longer == 0, 1.0, np.minimum(cosines, _divided(shorter, longer)))
    return found


def _similarity(claim: ResultValues, evidence: ResultValues) -> tuple[float, str]:
    if claim.measure is Measure.NUMBERS or claim.values.size == 0:
        return similarity_of(claim.values, evidence.values), ""
    rows = row_similarities(claim.values, evidence.values)
    worst = int(rows.argmin())
    return float(rows[worst]), f" in row {worst}"


def _is_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufb" and bool(np.isfinite(values).all())


def _scaled(ones: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both by their largest magnitude, so that no square overflows or vanishes."""
    one, other = ones.astype(np.float64).ravel(), others.astype(np.float64).ravel()
    most = max(np.abs(one).max(initial=0.0), np.abs(other).max(initial=0.0))
    return (one / most, other / most) if most > 0 else (one, other)


def _divided(numbers: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quotient, and 0 where there is nothing to divide by."""
    return np.divide(numbers, by, out=np.zeros_like(numbers), where=by > 0)
