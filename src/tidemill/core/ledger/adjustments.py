"""Manual adjustments: one operator proposes a transfer and says why, another approves it. Nobody corrects alone.

Both act with an account of their own. Whoever has the home's token or the machine may be either of them, so that counts
as nobody. The word of a new operator does not count at once.
"""

from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from tidemill.core.accounts.operator_word import OperatorWord, OperatorWordRefusal
from tidemill.core.clock import Instant
from tidemill.core.ids import short_id
from tidemill.core.ledger.entries import PostingRefusal, Transfer
from tidemill.core.money import AMOUNT_MAX_UC, AmountObjection, credits_of
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal

KIND = "adjustment"


class AdjustmentState(Enum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Adjustment:
    """A transfer that waits for a second operator's approval. Its id becomes the transfer's."""

    id: UUID
    debit_id: UUID
    credit_id: UUID
    amount_uc: int
    currency: str
    reason: str
    proposed_by: str
    proposed_at: Instant
    state: AdjustmentState = AdjustmentState.PROPOSED
    decided_by: str | None = None
    decided_at: Instant | None = None

    @property
    def transfer(self) -> Transfer:
        return Transfer(self.id, self.debit_id, self.credit_id, self.amount_uc, self.currency, KIND, self.reason)


class AdjustmentRefusal(Refusal):
    UNKNOWN_ADJUSTMENT = "There is no such adjustment: `tidemill ledger adjustments` lists them."
    ALREADY_DECIDED = "This adjustment was approved or rejected before; nothing was changed."
    OWN_ACCOUNT_NEEDED = (
        "An adjustment takes two people, and this does not show which one you are: log in as an operator."
    )
    SECOND_OPERATOR_NEEDED = "Whoever proposed an adjustment cannot approve it: ask another operator."


def propose(adjustment: Adjustment, word: OperatorWord) -> Adjustment | Refusal:
    """Refuse at once what is visibly wrong; the rest is decided when it is posted."""
    assert word.by == adjustment.proposed_by, "it is the proposer's word"
    if not word.is_of_person:
        return AdjustmentRefusal.OWN_ACCOUNT_NEEDED
    if too_new := word.refuse(adjustment.proposed_at):
        return too_new
    reason = checked_reason(adjustment.reason)
    if isinstance(reason, ReasonRefusal):
        return reason
    if not 0 < adjustment.amount_uc <= AMOUNT_MAX_UC:
        return PostingRefusal.AMOUNT_OUT_OF_BOUNDS
    if adjustment.debit_id == adjustment.credit_id:
        return PostingRefusal.SAME_ACCOUNT
    return replace(adjustment, reason=reason)


def settle(
    adjustment: Adjustment | None, *, approve: bool, word: OperatorWord, now: Instant
) -> Adjustment | AdjustmentRefusal | OperatorWordRefusal:
    """The adjustment after an operator's decision. Its proposer may only withdraw it; anybody may reject it."""
    if adjustment is None:
        return AdjustmentRefusal.UNKNOWN_ADJUSTMENT
    if adjustment.state is not AdjustmentState.PROPOSED:
        return AdjustmentRefusal.ALREADY_DECIDED
    if approve and not word.is_of_person:
        return AdjustmentRefusal.OWN_ACCOUNT_NEEDED
    if approve and word.by == adjustment.proposed_by:
        return AdjustmentRefusal.SECOND_OPERATOR_NEEDED
    if approve and (too_new := word.refuse(now)):
        return too_new
    state = AdjustmentState.APPROVED if approve else AdjustmentState.REJECTED
    return replace(adjustment, state=state, decided_by=word.by, decided_at=now)


def too_little(adjustment: Adjustment, available_uc: int) -> AmountObjection:
    """The account to debit has less available than the adjustment takes: nothing was posted."""
    sentence = (
        f"This adjustment takes {credits_of(adjustment.amount_uc)}, and the account to debit has "
        f"{credits_of(available_uc)} available: reject it with `tidemill ledger reject {short_id(adjustment.id)}`, or "
        "add to the account first."
    )
    amounts = {"needed": adjustment.amount_uc, "available": available_uc}
    return AmountObjection(PostingRefusal.INSUFFICIENT_FUNDS, sentence, amounts)
