"""What a check says of a result: pass, review or fail, with every reason and the figures behind it.

A check compares a claim with evidence and decides nothing else: the rules of trust decide what follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Figure = int | float | str


class Ruling(StrEnum):
    """Review means that this check alone cannot tell: a person looks, or a third execution decides."""

    PASS = "pass"  # noqa: S105  # a ruling, no secret
    REVIEW = "review"
    FAIL = "fail"


@dataclass(frozen=True)
class Verdict:
    """A ruling. A pass has no reasons; the others have at least one."""

    ruling: Ruling
    reasons: tuple[str, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert bool(self.reasons) == (self.ruling is not Ruling.PASS), "whoever does not pass is told why"


def passed(**figures: Figure) -> Verdict:
    return Verdict(Ruling.PASS, (), figures)


def review(*reasons: str, **figures: Figure) -> Verdict:
    return Verdict(Ruling.REVIEW, reasons, figures)


def failed(*reasons: str, **figures: Figure) -> Verdict:
    return Verdict(Ruling.FAIL, reasons, figures)


def together(*verdicts: Verdict) -> Verdict:
    """Several checks of one result: the worst ruling, with all reasons and figures."""
    ruling = max((verdict.ruling for verdict in verdicts), key=list(Ruling).index)
    reasons = tuple(reason for verdict in verdicts for reason in verdict.reasons)
    return Verdict(ruling, reasons, {name: figure for verdict in verdicts for name, figure in verdict.figures.items()})
