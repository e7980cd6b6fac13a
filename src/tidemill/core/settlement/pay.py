"""What one attempt pays: by the pool's clock and by the amount of work, never by a node's word alone.

Known work, whose operations can be counted, pays the time that it takes at the reference speed of the device's model,
however long it took: a slow machine earns no more for the same work. Unknown work, a customer's own program, pays the
least of three times: what the node says, what passed by the pool's clock from offer to receipt, and what was quoted. An
attempt that passes pays at least a minimum, which covers its start. An early result gets a bonus out of the bonus fund,
as far as that goes, and never so much that trading with oneself would pay.

An attempt that its customer stops pays for the time that has passed. Its provider gets what the pool had heard of it by
then. Of a program that took much longer than the same run by the house, the provider gets what that shows: either the
node waited, or the program did, and neither gains by it. In both cases the rest goes into the audit budget.

Amounts are whole micro-credits: rewards that are earned by a verified result are rounded up, so that no verified work
is free, and so are commissions; all else is rounded down.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

HOUR_MS = 3_600_000
ONE_PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class RewardPlan:
    """The shares of the plan; each is a setting. The loss from trading with oneself is a share of the payment."""

    commission_ppm: int = 100_000
    fund_ppm: int = 200_000
    burn_ppm: int = 0
    bonus_ppm: int = 100_000
    bonus_max_ppm: int = 100_000
    self_trade_loss_ppm: int = 10_000
    minimum_uc: int = 0
    """The least reward of a result that passes, at any node that asks for money at all."""


class PayTerms(NamedTuple):
    """The terms that an attempt was placed on."""

    hourly_uc: int
    """What an hour of the task's share of the machine costs."""

    quoted_ms: int
    """The longest time that unknown work is paid for."""

    work_ms: int = 0
    """The time that known work takes at the reference speed of the device's model; zero for unknown work."""

    @property
    def longest_ms(self) -> int:
        """The longest time that is paid for."""
        return self.work_ms or self.quoted_ms


class UsedTime(NamedTuple):
    """How long an attempt took: as its node says, and from offer to receipt by the pool's clock. `shown_ms` is the most
    that a run by the house shows, if there was one."""

    told_ms: int
    passed_ms: int
    shown_ms: int | None = None

    @property
    def believed_ms(self) -> int:
        return min(self.told_ms, self.passed_ms)

    @property
    def earned_ms(self) -> int:
        """What its provider is paid for."""
        return self.believed_ms if self.shown_ms is None else min(self.believed_ms, self.shown_ms)


@dataclass(frozen=True, slots=True)
class AttemptPay:
    """What one attempt pays. What a customer pays beyond the reward and the commission goes into the audit budget."""

    reward_uc: int
    commission_uc: int
    bonus_uc: int = 0
    unshown_uc: int = 0

    @property
    def cost_uc(self) -> int:
        """What the customer pays. The bonus is not part of it."""
        return self.reward_uc + self.commission_uc + self.unshown_uc


def attempt_pay(plan: RewardPlan, terms: PayTerms, used: UsedTime) -> AttemptPay:
    """What an attempt pays whose result passed."""
    billed_uc, reward_uc = (
        max(_up(terms.hourly_uc * ms, HOUR_MS), plan.minimum_uc) if terms.hourly_uc else 0
        for ms in (
            terms.work_ms or max(1, min(took_ms, terms.quoted_ms)) for took_ms in (used.believed_ms, used.earned_ms)
        )
    )
    commission_uc = _up(billed_uc * plan.commission_ppm, ONE_PPM)
    bonus_uc = _bonus_uc(plan, terms, used, reward_uc, _up(reward_uc * plan.commission_ppm, ONE_PPM))
    return AttemptPay(reward_uc, commission_uc, bonus_uc, billed_uc - reward_uc)


def cost_max_uc(plan: RewardPlan, terms: PayTerms) -> int:
    """The most that a task can cost on these terms, whatever comes of it."""
    longest = UsedTime(terms.longest_ms, terms.longest_ms)
    return max(attempt_pay(plan, terms, longest).cost_uc, stopped_pay(plan, terms, longest.passed_ms, 0).cost_uc)


def stopped_pay(plan: RewardPlan, terms: PayTerms, passed_ms: int, heard_ms: int) -> AttemptPay:
    """What an attempt pays that its customer stopped so long after its offer. The pool last heard of its progress after
    `heard_ms`."""
    billed_ms = min(max(0, passed_ms), terms.longest_ms)
    billed_uc = terms.hourly_uc * billed_ms // HOUR_MS
    reward_uc = terms.hourly_uc * min(max(0, heard_ms), billed_ms) // HOUR_MS
    return AttemptPay(reward_uc, _up(billed_uc * plan.commission_ppm, ONE_PPM), 0, billed_uc - reward_uc)


def with_audits(pay: AttemptPay, terms: PayTerms, runs: int, run_ms: int, cost_max_uc: int) -> AttemptPay:
    """The same with so many runs by the house, each of which took so long, as far as the hold goes."""
    charge_uc = min(runs * _up(terms.hourly_uc * run_ms, HOUR_MS), max(0, cost_max_uc - pay.cost_uc))
    return replace(pay, unshown_uc=pay.unshown_uc + charge_uc)


def _bonus_uc(plan: RewardPlan, terms: PayTerms, used: UsedTime, reward_uc: int, commission_uc: int) -> int:
    """What an early result gets besides. It counts from the middle of the quote, by the pool's clock."""
    middle_ms = terms.work_ms or terms.quoted_ms // 2
    unused_uc = max(0, terms.hourly_uc * (middle_ms - used.passed_ms) // HOUR_MS)
    keeps_uc = (reward_uc + commission_uc) * (ONE_PPM - plan.self_trade_loss_ppm) // ONE_PPM - reward_uc
    most_uc = min(reward_uc * plan.bonus_max_ppm // ONE_PPM, max(0, keeps_uc))
    return min(unused_uc * plan.bonus_ppm // ONE_PPM, most_uc)


def _up(amount: int, by: int) -> int:
    return -(-amount // by)
