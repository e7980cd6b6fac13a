"""Results of any program, compared with an execution of the same task elsewhere: its outcome, and every file by hash.

Bits are compared within one numeric class only. If one execution succeeded and the other failed, nobody is at fault
yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.jobs.receipts import AttemptOutcome
from tidemill.core.trust.checks.exact import is_comparable
from tidemill.core.trust.checks.verdict import Verdict, failed, passed, review

_NAMED = 3


@dataclass(frozen=True)
class Execution:
    """How one execution ended: its outcome and exit code, and the SHA-256 of each file it left."""

    outcome: AttemptOutcome
    exit_code: int
    files: Mapping[str, bytes]
    numeric_class: str


def check(claim: Execution, evidence: Execution) -> Verdict:
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
    difference = (
        f"{len(different)} files differ: {', '.join(different[:_NAMED])}{' …' if len(different) > _NAMED else ''}."
    )
    comparable = is_comparable(claim.numeric_class, evidence.numeric_class)
    return (failed if comparable else review)(difference, files=len(claim.files), files_differing=len(different))


def _of_failures(claim: Execution, evidence: Execution) -> Verdict:
    if claim.exit_code == evidence.exit_code:
        return passed(exit_code=claim.exit_code)
    return review(f"Both executions failed, with exit codes {claim.exit_code} and {evidence.exit_code}.")
