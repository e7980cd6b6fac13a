"""Contesting a verdict: inside a window, once, with a deposit that whoever is wrong pays.

A jury of an odd number with no interest executes the attempt again, on evidence that was frozen when the dispute was
opened. Its ruling can be appealed against once, to the operator. Money moves when the ruling is final and not before,
so nothing has ever to be undone; a final dispute stays final, and an attempt is disputed once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.refusals import Refusal
from tidemill.core.settings.quantities import ONE_PPM
from tidemill.core.settings.trust import DisputesSettings
from tidemill.core.verification.consequences import Consequences, Movement


class DisputeRefusal(Refusal):
    DISPUTE_NO_PARTY = "Only the customer and the provider of an attempt can contest its verdict."
    DISPUTE_TOO_LATE = "The window of this verdict has closed: it stands."
    DISPUTED_ALREADY = "This verdict was contested before: read that dispute's ruling."
    DISPUTE_DEPOSIT_SHORT = "Your balance does not cover the deposit: add funds, then contest again."
    DISPUTE_STATE = "The dispute is not in a state that allows this; nothing was changed."
    JURY_INCOMPLETE = "The jury is not complete, or somebody voted twice: wait for every juror's answer."
    APPEALS_USED_UP = "This ruling was appealed against before: it is final."


class DisputeState(StrEnum):
    OPEN = "open"
    RULED = "ruled"
    APPEALED = "appealed"
    FINAL = "final"


@dataclass(frozen=True)
class Contested:
    """A verdict as it was given: who was paid or refused what, and when."""

    attempt_id: UUID
    customer_id: UUID
    provider_id: UUID
    passed: bool
    reward_uc: int
    decided_at: Instant


@dataclass(frozen=True)
class Vote:
    """What a juror's own execution says of the contested result."""

    juror_id: UUID
    result_right: bool


@dataclass(frozen=True)
class Dispute:
    """One contest. `upheld` says whether the verdict stands; nobody knows before there is a ruling."""

    contested: Contested
    opened_by: UUID
    deposit_uc: int
    evidence_sha256: bytes
    opened_at: Instant
    state: DisputeState = DisputeState.OPEN
    upheld: bool | None = None
    ruled_at: Instant | None = None
    appeals: int = 0
    because: str = "The jury has not answered."


def deposit_uc(reward_uc: int, rules: DisputesSettings) -> int:
    """What a contest costs whoever loses it: the jury's executions."""
    return -(-rules.jurors * reward_uc * rules.deposit_ppm // ONE_PPM)


def contest(
    contested: Contested,
    by: UUID,
    balance_uc: int,
    evidence_sha256: bytes,
    earlier: Dispute | None,
    *,
    rules: DisputesSettings,
    now: Instant,
) -> Dispute | DisputeRefusal:
    """Open a dispute, or say why not."""
    if by not in (contested.customer_id, contested.provider_id):
        return DisputeRefusal.DISPUTE_NO_PARTY
    if earlier is not None:
        return DisputeRefusal.DISPUTED_ALREADY
    if now - contested.decided_at >= rules.window_s * SECOND:
        return DisputeRefusal.DISPUTE_TOO_LATE
    if balance_uc < deposit_uc(contested.reward_uc, rules):
        return DisputeRefusal.DISPUTE_DEPOSIT_SHORT
    return Dispute(contested, by, deposit_uc(contested.reward_uc, rules), evidence_sha256, now)


def rule(dispute: Dispute, votes: Sequence[Vote], rules: DisputesSettings, now: Instant) -> Dispute | DisputeRefusal:
    """What the majority of a complete jury says."""
    if dispute.state is not DisputeState.OPEN:
        return DisputeRefusal.DISPUTE_STATE
    parties = {dispute.contested.customer_id, dispute.contested.provider_id}
    jurors = {vote.juror_id for vote in votes} - parties
    if len(votes) != rules.jurors or len(jurors) != rules.jurors:
        return DisputeRefusal.JURY_INCOMPLETE
    right = sum(vote.result_right for vote in votes)
    upheld = (2 * right > len(votes)) == dispute.contested.passed
    because = f"{right} of {len(votes)} jurors found the result right: the verdict {_stands(upheld)}."
    return replace(dispute, state=DisputeState.RULED, upheld=upheld, ruled_at=now, because=because)


def appeal(dispute: Dispute, by: UUID, rules: DisputesSettings, now: Instant) -> Dispute | DisputeRefusal:
    """Ask the operator, once, within a window as long as that of the verdict."""
    if by not in (dispute.contested.customer_id, dispute.contested.provider_id):
        return DisputeRefusal.DISPUTE_NO_PARTY
    if dispute.state is not DisputeState.RULED or dispute.ruled_at is None:
        return DisputeRefusal.DISPUTE_STATE
    if dispute.appeals >= rules.appeals:
        return DisputeRefusal.APPEALS_USED_UP
    if now - dispute.ruled_at >= rules.window_s * SECOND:
        return DisputeRefusal.DISPUTE_TOO_LATE
    return replace(dispute, state=DisputeState.APPEALED, appeals=dispute.appeals + 1)


def decide_appeal(dispute: Dispute, *, upheld: bool, because: str) -> Dispute | DisputeRefusal:
    """The operator's word, which is the last."""
    if dispute.state is not DisputeState.APPEALED:
        return DisputeRefusal.DISPUTE_STATE
    told = f"{dispute.because} The operator decided that the verdict {_stands(upheld)}: {because}"
    return replace(dispute, state=DisputeState.FINAL, upheld=upheld, because=told)


def finish(dispute: Dispute, rules: DisputesSettings, now: Instant) -> Dispute | DisputeRefusal:
    """A ruling that nobody appealed against in time is final."""
    waiting = dispute.ruled_at is None or now - dispute.ruled_at < rules.window_s * SECOND
    if dispute.state is not DisputeState.RULED or waiting:
        return DisputeRefusal.DISPUTE_STATE
    return replace(dispute, state=DisputeState.FINAL)


def compensations(dispute: Dispute) -> Consequences:
    """What a final ruling moves. Whoever is wrong pays the jury: whoever opened, by the deposit, or the provider.

    A reward that was paid for a wrong result goes back to the customer; that result is a finding like any other. One
    that was refused for a right result is paid from what pays for checks, since the pool had refunded it, and whoever
    called it wrong is found wrong.
    """
    assert dispute.state is DisputeState.FINAL, "money moves when a ruling is final"
    contested = dispute.contested
    if dispute.upheld:
        paid = Movement(_purse(dispute), AccountKind.AUDIT_BUDGET, dispute.deposit_uc, "the jury, by the loser")
        return Consequences((paid,), 0, dispute.because)
    if not contested.passed:
        owing = Movement(AccountKind.AUDIT_BUDGET, AccountKind.PROVIDER_LOCKED, contested.reward_uc, "it was right")
        return Consequences((owing,), 0, dispute.because)
    back = Movement(AccountKind.PROVIDER_LOCKED, AccountKind.CUSTOMER, contested.reward_uc, "it was wrong")
    return Consequences((back,), dispute.deposit_uc, dispute.because)


def _purse(dispute: Dispute) -> AccountKind:
    own = dispute.opened_by == dispute.contested.provider_id
    return AccountKind.PROVIDER_AVAILABLE if own else AccountKind.CUSTOMER


def _stands(upheld: bool) -> str:
    return "stands" if upheld else "is overturned"
