"""Pays passed attempts out of the job's hold: to providers, to the pool, to the bonus fund; in one ledger batch.

One transfer pays all attempts of an owner at a job in a batch, and each attempt names it. The rest of the hold of a job
that ended is released in the same batch. Nobody is paid more than was held: otherwise nothing of the batch is settled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.currency import CREDIT
from tidemill.core.faults import Fault
from tidemill.core.ids import Ids
from tidemill.core.ledger import Entry, LedgerAccount, PostingRefusal, Release, Transfer
from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.settlement.rewards import AttemptPay, PaidAttempt, PaySums, RewardPlan, split, sums
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection

_COMMISSION, _FUND, _BURN = (
    LedgerAccount(kind) for kind in (AccountKind.COMMISSION, AccountKind.BONUS_FUND, AccountKind.BURN)
)


class Unpayable(Fault):
    """The ledger refuses to pay out of holds of some jobs: an account is frozen, or a hold is over."""

    code = "unpayable"

    def __init__(self, refused: Sequence[tuple[Transfer, PostingRefusal]]) -> None:
        entry, refusal = refused[0]
        super().__init__(f"{entry.cause} cannot be paid. {refusal.sentence}")
        self.hold_ids = {entry.hold_id for entry, _ in refused}


class PassedAttempt(NamedTuple):
    """An attempt that passed: its job, the customer and hold that pay, the owner who did the work, and the pay."""

    job_id: UUID
    customer_id: UUID
    hold_id: UUID
    owner_id: UUID
    due: AttemptPay


@dataclass(frozen=True)
class Bill:
    """The summed pay of attempts, and the reward transfers by job and owner, which are not posted yet."""

    jobs: Mapping[UUID, PassedAttempt]
    owners: frozenset[UUID]
    total: PaySums
    rewards: Mapping[tuple[UUID, UUID], UUID]


async def bill(transaction: Connection, passed: Sequence[PassedAttempt], ids: Ids, now: Instant) -> Bill:
    """Add up what is to be paid. Paying locks the ledger, so the caller pays last."""
    fund_uc = await ledger.available_uc(transaction, _FUND) if any(attempt.due.bonus_uc for attempt in passed) else 0
    total = sums([PaidAttempt(attempt.job_id, attempt.owner_id, attempt.due) for attempt in passed], fund_uc)
    rewards = {key: ids.new(now) for key, amount_uc in total.rewards_uc.items() if amount_uc}
    owners = frozenset(attempt.owner_id for attempt in passed)
    return Bill({attempt.job_id: attempt for attempt in passed}, owners, total, rewards)


async def pay(
    transaction: Connection, owed: Bill, ended_hold_ids: Iterable[UUID], plan: RewardPlan, ids: Ids, now: Instant
) -> None:
    """Pay what is owed, and release the rest of the holds of jobs that are over."""
    entries: list[Entry] = [
        _capture(reward_id, owed.jobs[key[0]], _provider(key[1]), owed.total.rewards_uc[key], "reward")
        for key, reward_id in owed.rewards.items()
    ]
    for job_id, commission_uc in owed.total.commissions_uc.items():
        entries += [
            _capture(ids.new(now), owed.jobs[job_id], account_id, amount_uc, "commission")
            for account_id, amount_uc in _receivers(plan, commission_uc)
        ]
    entries += [
        Transfer(ids.new(now), _FUND.id, _provider(owner_id), amount_uc, CREDIT, "early_bonus", f"owner:{owner_id}")
        for owner_id, amount_uc in owed.total.bonuses_uc.items()
    ]
    entries += [Release(ids.new(now), hold_id, "job ended") for hold_id in ended_hold_ids]
    await _post(transaction, entries, owed.owners, ids, now)


def _capture(transfer_id: UUID, job: PassedAttempt, to_id: UUID, amount_uc: int, kind: str) -> Transfer:
    from_id = _customer(job.customer_id)
    return Transfer(transfer_id, from_id, to_id, amount_uc, CREDIT, kind, f"job:{job.job_id}", job.hold_id)


def _receivers(plan: RewardPlan, commission_uc: int) -> list[tuple[UUID, int]]:
    """The accounts that share a commission, with their amounts."""
    parts = split(plan, commission_uc)
    every = ((_COMMISSION.id, parts.pool_uc), (_FUND.id, parts.fund_uc), (_BURN.id, parts.burn_uc))
    return [(account_id, amount_uc) for account_id, amount_uc in every if amount_uc]


async def _post(
    transaction: Connection, entries: Sequence[Entry], owners: Iterable[UUID], ids: Ids, now: Instant
) -> None:
    """Post the entries. A bonus that the fund cannot pay after all is not paid."""
    if not entries:
        return
    unknown = [LedgerAccount(AccountKind.PROVIDER_LOCKED, owner_id) for owner_id in sorted(owners)]
    await ledger.open_accounts(transaction, [*unknown, _COMMISSION, _FUND, _BURN], now)
    outcomes = await ledger.post(transaction, entries, ids, now)
    refused = [
        (entry, outcome.refusal)
        for entry, outcome in zip(entries, outcomes, strict=True)
        if outcome.refusal is not None and isinstance(entry, Transfer) and entry.hold_id is not None
    ]
    if refused:
        raise Unpayable(refused)


@lru_cache(maxsize=100_000)
def _customer(account_id: UUID) -> UUID:
    return LedgerAccount(AccountKind.CUSTOMER, account_id).id


@lru_cache(maxsize=100_000)
def _provider(account_id: UUID) -> UUID:
    return LedgerAccount(AccountKind.PROVIDER_LOCKED, account_id).id
