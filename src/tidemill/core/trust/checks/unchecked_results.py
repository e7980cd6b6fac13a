"""A delivered result that waits to be checked, with all that its check may need; and what its judgement means."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.jobs.plans.happenings import AttemptHappening, CheckNotes
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.trust.checks.plausibility import AttemptTimes, MeasuredSpeeds
from tidemill.core.trust.checks.receipt_checks import ReceiptJudgement, used_ms


@dataclass(frozen=True, slots=True)
class SecondExecution:
    """The ended second execution of a task: its receipt, or why there is nothing to compare with."""

    attempt_id: UUID | None
    receipt: Receipt | None
    reason: str


@dataclass(frozen=True, slots=True)
class UncheckedResult:
    """A delivered result: its receipt, the task, the result its customer expects, and the outcome of a second
    execution.

    `is_uploaded` says that the artefact in the receipt was uploaded for this attempt.
    """

    attempt_id: UUID
    task_id: UUID
    node_id: UUID
    owner_id: UUID
    lease: int
    body: bytes
    expected: bytes | None
    house: bool
    receipt: Receipt
    times: AttemptTimes
    device: MeasuredSpeeds
    is_uploaded: bool
    second_execution: SecondExecution | None


def judged(result: UncheckedResult, judgement: ReceiptJudgement, doubt: str = "") -> AttemptHappening:
    """What happens to the attempt by a judgement on its result, which had been delivered before."""
    return AttemptHappening(
        result.attempt_id,
        result.lease,
        result.node_id,
        judgement.happenings[1:],
        f"{judgement.reason} {doubt}" if doubt else judgement.reason,
        judgement.verdict,
        used_ms(result.receipt),
        notes=_notes(result.second_execution, doubt),
    )


def _notes(second: SecondExecution | None, doubt: str) -> CheckNotes | None:
    if second is None:
        return CheckNotes(doubt) if doubt else None
    found = second.receipt.result_sha256 or None if second.receipt else None
    return CheckNotes(doubt, was_repeated=True, repeated_sha256=found, repeated_by=second.attempt_id)
