"""What a receipt shows at once, on receipt: a failure, or a result whose hash is known before.

No result passes that is not here: a sealed or uploaded result waits until it was read. Every other result waits for a
check, and so does one with doubtful times. A result of a house node is the pool's own.
"""

import hashlib
import hmac
from dataclasses import dataclass

from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.trust.checks.verdict import Ruling

EXPECTED = "The result has the hash that the customer expects."
UNEXPECTED = "The result has not the hash that the customer expects."
HOUSE = "The result was computed on a house node."
NOT_DETERMINISTIC = "All answers differ: the task has no single answer, nobody is at fault, and the customer pays."
TASK_AT_FAULT = "The task failed in the same way for independent owners: that is its own fault."


@dataclass(frozen=True, slots=True)
class ReceiptJudgement:
    """What happened to an attempt, with the verdict and its reason."""

    happenings: tuple[Happening, ...]
    verdict: str
    reason: str


DELIVERED = ReceiptJudgement((Happening.DELIVERED,), "", "")
"""The result waits for a check."""


def judged_at_once(
    receipt: Receipt, expected: bytes | None, *, house: bool, private: bool, is_doubtful: bool = False
) -> ReceiptJudgement:
    """The verdict where it costs nothing."""
    if receipt.outcome is AttemptOutcome.FAILED:
        return ReceiptJudgement((Happening.CRASHED,), "", receipt.reason or "The task failed on its node.")
    if expected is None and not house:
        return DELIVERED
    judged = judged_by_whose(receipt, expected)
    waits = private or not is_inline(receipt) or (is_doubtful and not house)
    return DELIVERED if waits and Happening.PASSED in judged.happenings else judged


def judged_by_whose(receipt: Receipt, expected: bytes | None) -> ReceiptJudgement:
    """The verdict on a result that is here, by the hash that its customer knows, or because a house node made it."""
    if expected is None:
        return passed(HOUSE)
    return passed(EXPECTED) if hmac.compare_digest(receipt.result_sha256, expected) else failed(UNEXPECTED)


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
    """It failed as it did for other owners: no other needs to try it."""
    return ReceiptJudgement((Happening.FAULTED,), "", f"{reason} {TASK_AT_FAULT}")


def passed(reason: str) -> ReceiptJudgement:
    return ReceiptJudgement((Happening.DELIVERED, Happening.PASSED), Ruling.PASS.value, reason)


def failed(reason: str) -> ReceiptJudgement:
    return ReceiptJudgement((Happening.DELIVERED, Happening.FAILED), Ruling.FAIL.value, reason)


def unsure(reason: str) -> ReceiptJudgement:
    """This check cannot tell: the result is neither paid nor blamed, and a house node carries out the task."""
    return ReceiptJudgement((Happening.DELIVERED, Happening.UNSURE), Ruling.REVIEW.value, reason)


def faulted(reason: str) -> ReceiptJudgement:
    """No node can do it, or nobody can tell: the customer gets the money back, and no node is blamed."""
    return ReceiptJudgement((Happening.DELIVERED, Happening.FAULTED), Ruling.REVIEW.value, reason)


def used_ms(receipt: Receipt) -> int:
    """How long it took, as the node says; never paid beyond the quote."""
    return (receipt.finished_at - receipt.started_at) // 1_000
