"""Who is owed what for a batch of attempts: providers, the pool, the bonus fund, the audit budget.

One obligation pays all attempts of an owner at a job in a batch, and each attempt names it. What one attempt pays is
decided in `pay`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from tidemill.core.ledger.accounts import AccountKind, LedgerAccount
from tidemill.core.settlement.obligations import Obligation
from tidemill.core.settlement.pay import ONE_PPM, AttemptPay, RewardPlan

BONUS_FUND = LedgerAccount(AccountKind.BONUS_FUND)
_COMMISSION, _BURN = LedgerAccount(AccountKind.COMMISSION), LedgerAccount(AccountKind.BURN)
_AUDIT_BUDGET = LedgerAccount(AccountKind.AUDIT_BUDGET)


@dataclass(frozen=True, slots=True)
class PaidAttempt:
    """One attempt that is paid for: its owner, its job, and what it pays."""

    job_id: UUID
    owner_id: UUID
    due: AttemptPay
    is_verified: bool = True


class HoldOf(NamedTuple):
    """The customer who pays for a job, and the hold that it is paid from."""

    customer_id: UUID
    hold_id: UUID


@dataclass(frozen=True)
class PaySums:
    """What a batch of attempts pays, added up: a transfer each."""

    rewards_uc: dict[tuple[UUID, UUID], int]
    """By job and owner."""

    commissions_uc: dict[UUID, int]
    unshown_uc: dict[UUID, int]
    """By job."""

    bonuses_uc: dict[UUID, int]
    """By owner."""


def sums(paid: Iterable[PaidAttempt], fund_uc: int) -> PaySums:
    """Add up what attempts pay. Bonuses shrink to what the fund has, all by the same share."""
    rewards: dict[tuple[UUID, UUID], int] = defaultdict(int)
    commissions: dict[UUID, int] = defaultdict(int)
    unshown: dict[UUID, int] = defaultdict(int)
    bonuses: dict[UUID, int] = defaultdict(int)
    for attempt in paid:
        rewards[attempt.job_id, attempt.owner_id] += attempt.due.reward_uc
        commissions[attempt.job_id] += attempt.due.commission_uc
        if attempt.due.unshown_uc:
            unshown[attempt.job_id] += attempt.due.unshown_uc
        bonuses[attempt.owner_id] += attempt.due.bonus_uc
    wanted_uc = sum(bonuses.values())
    share_uc, whole_uc = (min(fund_uc, wanted_uc), wanted_uc) if wanted_uc else (0, 1)
    shrunk = {owner: bonus * share_uc // whole_uc for owner, bonus in bonuses.items()}
    return PaySums(
        dict(rewards), dict(commissions), unshown, {owner: bonus for owner, bonus in shrunk.items() if bonus}
    )


def owed_for(
    paid: Iterable[PaidAttempt],
    reward_ids: Mapping[tuple[UUID, UUID], UUID],
    holds: Mapping[UUID, HoldOf],
    fund_uc: int,
    plan: RewardPlan,
    new_id: Callable[[], UUID],
) -> list[Obligation]:
    """What is owed for attempts: to providers and to the pool out of holds, and bonuses out of the fund."""
    total = sums(paid, fund_uc)
    rewards = [
        _captured(reward_ids[job_id, owner_id], job_id, holds[job_id], _provider(owner_id), amount_uc, "reward")
        for (job_id, owner_id), amount_uc in total.rewards_uc.items()
        if amount_uc
    ]
    commissions = [
        _captured(new_id(), job_id, holds[job_id], receiver, amount_uc, "commission")
        for job_id, commission_uc in total.commissions_uc.items()
        for receiver, amount_uc in _receivers(plan, commission_uc)
    ]
    bonuses = [
        Obligation(new_id(), BONUS_FUND, _provider(owner_id), amount_uc, "early_bonus", f"owner:{owner_id}")
        for owner_id, amount_uc in total.bonuses_uc.items()
    ]
    unshown = [
        _captured(new_id(), job_id, holds[job_id], _AUDIT_BUDGET, amount_uc, "unshown_time")
        for job_id, amount_uc in total.unshown_uc.items()
    ]
    return [*rewards, *commissions, *unshown, *bonuses]


def _captured(id_: UUID, job_id: UUID, hold: HoldOf, payee: LedgerAccount, amount_uc: int, kind: str) -> Obligation:
    return Obligation(id_, customer_account(hold.customer_id), payee, amount_uc, kind, f"job:{job_id}", hold.hold_id)


def _receivers(plan: RewardPlan, commission_uc: int) -> Iterator[tuple[LedgerAccount, int]]:
    """The accounts that share a commission, with their amounts."""
    parts = split(plan, commission_uc)
    every = ((_COMMISSION, parts.pool_uc), (BONUS_FUND, parts.fund_uc), (_BURN, parts.burn_uc))
    return ((account, amount_uc) for account, amount_uc in every if amount_uc)


@lru_cache(maxsize=100_000)
def customer_account(account_id: UUID) -> LedgerAccount:
    return LedgerAccount(AccountKind.CUSTOMER, account_id)


@lru_cache(maxsize=100_000)
def _provider(account_id: UUID) -> LedgerAccount:
    return LedgerAccount(AccountKind.PROVIDER_LOCKED, account_id)


@dataclass(frozen=True, slots=True)
class CommissionSplit:
    """Where a commission goes."""

    pool_uc: int
    fund_uc: int
    burn_uc: int


def split(plan: RewardPlan, commission_uc: int) -> CommissionSplit:
    """Divide a commission; the indivisible rest stays with the pool."""
    fund_uc, burn_uc = commission_uc * plan.fund_ppm // ONE_PPM, commission_uc * plan.burn_ppm // ONE_PPM
    return CommissionSplit(commission_uc - fund_uc - burn_uc, fund_uc, burn_uc)
