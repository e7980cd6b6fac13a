"""Trained weights: the tensors that were asked for, every number finite, none too large, changed, and no worse.

The held-out loss is measured by whoever checks, on samples that the node has not seen; what the node says of its own
loss counts for nothing. That training was done step by step is the business of replay.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.checks.verdict import Verdict, failed, passed, review, together

Tensors = Mapping[str, NDArray[Any]]

LOSS_WORSE_MAX = 1.05
"""A held-out loss above so many times the loss before training fails."""


@dataclass(frozen=True)
class Trained:
    """The weights that a node answered with."""

    tensors: Tensors


@dataclass(frozen=True)
class Expected:
    """The weights that training began with, how long a tensor may be, and the losses that were measured."""

    start: Tensors
    norm_max: float
    loss_before: float
    loss_after: float


def check(claim: Trained, evidence: Expected) -> Verdict:
    """Whether weights may be what training made of the start."""
    if misshapen := tuple(_misshapen(claim.tensors, evidence.start)):
        return failed(*misshapen)
    if not_finite := [name for name, tensor in claim.tensors.items() if not np.isfinite(tensor).all()]:
        return failed(f"{_listed(not_finite)} holds what is no number.")
    norms = {name: _norm(tensor) for name, tensor in claim.tensors.items()}
    if long := [name for name, norm in norms.items() if norm > evidence.norm_max]:
        return failed(f"{_listed(long)} is longer than {evidence.norm_max:g}.", norm=max(norms.values()))
    if all(np.array_equal(tensor, evidence.start[name]) for name, tensor in claim.tensors.items()):
        return failed("The weights are those that training began with.")
    return together(passed(norm=max(norms.values())), _of_loss(evidence))


def _misshapen(tensors: Tensors, start: Tensors) -> Iterator[str]:
    if missing := start.keys() - tensors.keys():
        yield f"{_listed(missing)} is missing."
    if strange := tensors.keys() - start.keys():
        yield f"{len(strange)} tensors were not asked for."
    for name in sorted(start.keys() & tensors.keys()):
        one, other = tensors[name], start[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            yield f"{name} is {one.dtype} of {one.shape}; {other.dtype} of {other.shape} was asked for."


def _of_loss(evidence: Expected) -> Verdict:
    """Compared so that a loss that is no number never passes."""
    before, after = evidence.loss_before, evidence.loss_after
    figures = {"loss_before": before, "loss_after": after}
    if math.isfinite(after) and after < before:
        return passed(**figures)
    if math.isfinite(after) and after <= before * LOSS_WORSE_MAX:
        return review(f"Training did not lower the held-out loss: {before:g} before, {after:g} after.", **figures)
    return failed(f"The held-out loss is {after:g}; before training it was {before:g}.", **figures)


def _norm(tensor: NDArray[Any]) -> float:
    """The length, in float64 and scaled, so that no square overflows."""
    numbers = tensor.astype(np.float64).ravel()
    most = float(np.abs(numbers).max(initial=0.0))
    return float(np.linalg.norm(numbers / most)) * most if most else 0.0


def _listed(names: Any) -> str:
    found = sorted(names)
    return found[0] if len(found) == 1 else f"{found[0]} and {len(found) - 1} more"
