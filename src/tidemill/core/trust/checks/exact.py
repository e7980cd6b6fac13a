"""Results that are the same bytes wherever they are computed, or at least within one numeric class.

Results are compared by their hash; those of any program by its outcome, and every file by its hash. If one execution
succeeded and the other failed, nobody is at fault yet.

A numeric class names what must be equal for bits to be equal: a device, a driver, libraries. `exact` is the class of
results that every machine computes alike, and `none` that of results that may differ each time.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.jobs.receipts import AttemptOutcome
from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review

EVERYWHERE = "exact"
NOWHERE = "none"
_NAMED = 3


@dataclass(frozen=True)
class ResultHash:
    """A result by its hash, and the numeric class in which it was computed."""

    result_sha256: bytes
    numeric_class: str


@dataclass(frozen=True)
class Execution:
    """How one execution ended: its outcome and exit code, and the SHA-256 of each file it left."""

    outcome: AttemptOutcome
    exit_code: int
    files: Mapping[str, bytes]
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


def check_files(claim: Execution, evidence: Execution) -> Verdict:
    """Compare an execution with a second one."""
    if claim.outcome is not evidence.outcome:
        return review(f"One execution says {claim.outcome}, the other {evidence.outcome}: let a third one decide.")
    if claim.outcome is AttemptOutcome.FAILED:
        return _of_failures(claim, evidence)
    different = sorted(
        name for name in claim.files.keys() | evidence.files.keys() if claim.files.get(name) != evidence.files.get(name)
    )
    if not different:
        return passed(files=len(claim.files))
    differ = "One file differs" if len(different) == 1 else f"{len(different)} files differ"
    named = f"{', '.join(different[:_NAMED])}{' …' if len(different) > _NAMED else ''}"
    difference = f"{differ} from what a house node made: {named}."
    comparable = is_comparable(claim.numeric_class, evidence.numeric_class)
    return (failed if comparable else review)(difference, files=len(claim.files), files_differing=len(different))


def is_comparable(claimed: str, repeated: str) -> bool:
    """Whether two executions must produce the same bytes."""
    return claimed == repeated and claimed not in ("", NOWHERE)


def _of_failures(claim: Execution, evidence: Execution) -> Verdict:
    if claim.exit_code == evidence.exit_code:
        return passed(exit_code=claim.exit_code)
    return review(f"Both executions failed, with exit codes {claim.exit_code} and {evidence.exit_code}.")
