"""Results that are the same bytes wherever they are computed, or at least within one numeric class.

A numeric class names what must be equal for bits to be equal: a device, a driver, libraries. `exact` is the class of
results that every machine computes alike, and `none` that of results that may differ each time.
"""

import hmac
from dataclasses import dataclass

from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review

EVERYWHERE = "exact"
NOWHERE = "none"


@dataclass(frozen=True)
class ResultHash:
    """A result by its hash, and the numeric class in which it was computed."""

    result_sha256: bytes
    numeric_class: str


def check(claim: ResultHash, evidence: ResultHash) -> Verdict:
    """Compare a result with another execution's. Bits are comparable within one class only, equal or not."""
    if not is_comparable(claim.numeric_class, evidence.numeric_class):
        return review(
            "The two results come from different numeric classes, so their bits may differ: compare within one class.",
            claimed_class=claim.numeric_class,
            other_class=evidence.numeric_class,
        )
    if hmac.compare_digest(claim.result_sha256, evidence.result_sha256):
        return passed()
    return failed(
        "The result is not the one that another execution in the same numeric class came to.",
        claimed=claim.result_sha256.hex(),
        other=evidence.result_sha256.hex(),
    )


def is_comparable(claimed: str, repeated: str) -> bool:
    """Whether two executions must produce the same bytes."""
    return claimed == repeated and claimed not in ("", NOWHERE)
