"""How results are judged: some at once, on receipt; every other by the cheapest sufficient check.

On receipt, a failure is known, or a result whose hash is known before. No result passes that is not here: a sealed or
uploaded result waits until it was read, and so does one with doubtful times. A house node's result is the pool's own.

Of the results that wait, one that the customer knows is compared with that. A result that can be proved from the
inputs is proved. Every other result is executed again by a house node and compared; none goes unchecked, and sealed
results are opened first. Which of them a draw may skip will be decided here, too, once owners have a record.

A right result with times that cannot be true is not paid before somebody has looked: a house node executes the task;
if none can, an operator decides. If nobody has decided after a while, nobody is paid or blamed, and another node tries.
"""

import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.plans.happenings import AttemptHappening, CheckNotes
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.settlement.pay import UsedTime
from tidemill.core.trust.checks.task_checks import is_provable
from tidemill.core.trust.checks.timing import AttemptTimes, MeasuredSpeeds
from tidemill.core.trust.checks.verdict import Ruling
from tidemill.core.trust.reviews import ReviewDecision

THE_POOL = UUID(int=0)
"""The account that orders audits: nobody's, so no customer sees them among their tasks, waits or pays for them."""

EXPECTED = "The result has the hash that the customer expects."
UNEXPECTED = "The result has not the hash that the customer expects."
HOUSE = "The result was computed on a house node."
NOBODY_LOOKED = "Nobody has decided on this result: it is not paid, nobody is blamed, and another node tries."
FAILS_LATER = "House nodes came to no result: a program has to do the same each time."
NOT_DETERMINISTIC = (
    "Two runs on a house node differed from each other, too: the program gives another result each time, so nobody can "
    "check it. No node is at fault."
)
TASK_AT_FAULT = "It failed on a house node, so the program itself is at fault."
ORDER_AT_FAULT = "A house node came to another hash: the order expects something else than its task computes."


class ReceiptJudgement(NamedTuple):
    """What happened to an attempt, with the verdict and its reason."""

    happenings: tuple[Happening, ...]
    verdict: str
    reason: str
    is_orders_fault: bool = False
    """Whether the customer pays for the time, and nobody is blamed."""


DELIVERED = ReceiptJudgement((Happening.DELIVERED,), "", "")
"""The result waits for a check."""


TOLERATED_FACTOR, TOLERATED_MS = 1.5, 5_000
"""A program may take so much longer than the house's run, at the speed that cores are paid by, and this besides."""


class CheckManner(Enum):
    EXPECTED = "The customer knows the hash of the result."
    TRUSTED = "A house node computed it."
    PROVED = "The pool checks it against the inputs, without computing it."
    REPEATED = "A house node executes the task once more, and the two results are compared."


class NextStep(Enum):
    """What has to happen before there is a judgement."""

    REPEAT = "A house node executes the task."
    REPEAT_AGAIN = "The house's result differs: see whether it comes to the same one again."
    ASK = "An operator decides."


@dataclass(frozen=True)
class ResultFacts:
    """What is known of a result before any of it is read."""

    task: Task
    is_expected: bool
    """Whether the customer knows it."""

    by_house: bool


@dataclass(frozen=True, slots=True)
class SecondExecution:
    """The ended second execution of a task: its receipt, or why there is nothing to compare with."""

    attempt_id: UUID | None
    receipt: Receipt | None
    reason: str
    first_found: bytes | None = None
    """The hash that the house came to before, if it has executed the task twice."""

    core_ops_per_s: float = 0.0
    """Of the house node."""

    @property
    def ran_ms(self) -> int:
        """How long the house's run took; its word is good."""
        return 0 if self.receipt is None else max(0, self.receipt.finished_at - self.receipt.started_at) // 1_000


@dataclass(frozen=True, slots=True)
class UncheckedResult:
    """A delivered result: its receipt, the task, the result its customer expects, and the outcome of a second
    execution.

    `is_uploaded` says that the artefact in the receipt was uploaded for this attempt.
    """

    attempt_id: UUID
    task_id: UUID
    customer_id: UUID
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
    decision: tuple[ReviewDecision, str] | None = None
    """What an operator decided, and why."""

    is_overdue: bool = False
    """Whether an operator was asked, and has not decided for too long."""


def judged_at_once(
    receipt: Receipt,
    expected: bytes | None,
    *,
    house: bool,
    private: bool,
    is_doubtful: bool = False,
) -> ReceiptJudgement:
    """The verdict where it costs nothing."""
    if receipt.outcome is AttemptOutcome.FAILED:
        return ReceiptJudgement((Happening.CRASHED,), "", receipt.reason or "The task failed on its node.")
    if expected is None and not house:
        return DELIVERED
    judgement = judged_by_whose(receipt, expected, house=house)
    waits = private or not is_inline(receipt) or (is_doubtful and not house)
    return DELIVERED if waits and Happening.PASSED in judgement.happenings else judgement


def manner_of(delivered: ResultFacts) -> CheckManner:
    """How to check a result."""
    if delivered.is_expected:
        return CheckManner.EXPECTED
    if delivered.by_house:
        return CheckManner.TRUSTED
    return CheckManner.PROVED if is_provable(delivered.task) else CheckManner.REPEATED


def look_at_doubt(result: UncheckedResult) -> NextStep | None:
    """What has to happen before a right result is paid whose times cannot be true; None if somebody has looked."""
    second = result.second_execution
    if second is None:
        return NextStep.REPEAT
    is_executed = second.receipt is not None and second.receipt.outcome is AttemptOutcome.DONE
    return None if is_executed or result.decision is not None else NextStep.ASK


def decided_by_operator(decision: ReviewDecision, reason: str) -> ReceiptJudgement:
    """The judgement on a result about which an operator was asked."""
    sentence = f"An operator decided: {reason}"
    return passed(sentence) if decision is ReviewDecision.PASS else failed(sentence)


def judged(result: UncheckedResult, judgement: ReceiptJudgement, task: Task, doubt: str = "") -> AttemptHappening:
    """What happens to the attempt by a judgement on its result, which had been delivered before."""
    used = used_time(result.receipt, result.times)
    if task.devices == 0:
        used = used._replace(shown_ms=_shown_ms(result.second_execution))
    return AttemptHappening(
        result.attempt_id,
        result.lease,
        result.node_id,
        judgement.happenings[1:],
        f"{judgement.reason} {doubt}" if doubt else judgement.reason,
        judgement.verdict,
        used,
        notes=_notes(result.second_execution, doubt),
        is_orders_fault=judgement.is_orders_fault,
    )


def judged_by_whose(receipt: Receipt, expected: bytes | None, *, house: bool) -> ReceiptJudgement:
    """The verdict on a result that is here, by the hash that its customer knows, or because a house node made it.

    A customer may expect something wrong: who misses the hash is not blamed before another node has reached it. Only if
    a house node misses it, the order is at fault: two strangers may have agreed on it.
    """
    if expected is None:
        return passed(HOUSE)
    if hmac.compare_digest(receipt.result_sha256, expected):
        return passed(EXPECTED)
    return orders_fault(f"{UNEXPECTED} {ORDER_AT_FAULT}") if house else unsure(UNEXPECTED)


def is_inline(receipt: Receipt) -> bool:
    """Whether an open result is in its receipt, as it was signed."""
    is_open = receipt.artefact is None and not receipt.envelopes
    return is_open and hmac.compare_digest(hashlib.sha256(receipt.inline).digest(), receipt.result_sha256)


def is_as_signed(receipt: Receipt, *, is_uploaded: bool) -> bool:
    """Whether the pool has the result of an open task. `is_uploaded` says that the attempt itself sent its artefact."""
    if receipt.artefact is not None:
        return is_uploaded and not receipt.envelopes and receipt.artefact.text == receipt.result_sha256.hex()
    return is_inline(receipt)


def at_fault(reason: str) -> ReceiptJudgement:
    """It failed on a house node: no other needs to try it."""
    return ReceiptJudgement((Happening.FAULTED,), "", f"{reason} {TASK_AT_FAULT}", is_orders_fault=True)


def orders_fault(reason: str) -> ReceiptJudgement:
    """The order cannot be met, whoever tries: its customer pays for the time, and nobody is blamed."""
    return faulted(reason)._replace(is_orders_fault=True)


def passed(reason: str) -> ReceiptJudgement:
    return ReceiptJudgement((Happening.DELIVERED, Happening.PASSED), Ruling.PASS.value, reason)


def failed(reason: str) -> ReceiptJudgement:
    return ReceiptJudgement((Happening.DELIVERED, Happening.FAILED), Ruling.FAIL.value, reason)


def unsure(reason: str) -> ReceiptJudgement:
    """This check cannot tell: the result is neither paid nor blamed, and a house node carries out the task."""
    return ReceiptJudgement((Happening.DELIVERED, Happening.UNSURE), Ruling.REVIEW.value, reason)


def nobody_looked() -> ReceiptJudgement:
    """Nobody could tell whether its times are true: neither is the result paid nor anybody blamed."""
    return ReceiptJudgement((Happening.DELIVERED, Happening.UNRESOLVED), Ruling.REVIEW.value, NOBODY_LOOKED)


def faulted(reason: str) -> ReceiptJudgement:
    """No node can do it, or nobody can tell: the customer gets the money back, and no node is blamed."""
    return ReceiptJudgement((Happening.DELIVERED, Happening.FAULTED), Ruling.REVIEW.value, reason)


def used_time(receipt: Receipt, times: AttemptTimes) -> UsedTime:
    """How long it took: as the node says, and by the pool's clock."""
    return UsedTime(
        (receipt.finished_at - receipt.started_at) // 1_000, (times.received_at - times.offered_at) // 1_000
    )


def _shown_ms(second: SecondExecution | None) -> int | None:
    """How long a program may take by what the house's run of it shows; None without one."""
    if second is None or second.receipt is None:
        return None
    faster = max(1.0, second.core_ops_per_s / OPERATIONS_PER_CORE_S)
    return int(second.ran_ms * faster * TOLERATED_FACTOR) + TOLERATED_MS


def _notes(second: SecondExecution | None, doubt: str) -> CheckNotes | None:
    if second is None:
        return CheckNotes(doubt) if doubt else None
    found = second.receipt.result_sha256 or None if second.receipt else None
    return CheckNotes(
        doubt,
        was_repeated=True,
        repeated_sha256=found,
        repeated_by=second.attempt_id,
        repeated_ms=second.ran_ms,
    )
