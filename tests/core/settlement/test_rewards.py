"""What an attempt pays, by the market plan."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.settlement.rewards import (
    HOUR_MS,
    AttemptPay,
    PaidAttempt,
    RewardPlan,
    attempt_pay,
    cost_max_uc,
    split,
    sums,
)

PLAN = RewardPlan()
PRICES = st.integers(0, 10**9)
TIMES = st.integers(0, 100 * HOUR_MS)


def test_a_provider_gets_the_price_they_set_and_the_customer_pays_a_tenth_more() -> None:
    assert attempt_pay(PLAN, 100_000_000, HOUR_MS, HOUR_MS) == AttemptPay(100_000_000, 10_000_000, 0)


def test_slowness_never_pays() -> None:
    assert attempt_pay(PLAN, 100_000_000, HOUR_MS, 3 * HOUR_MS) == attempt_pay(PLAN, 100_000_000, HOUR_MS, HOUR_MS)


def test_who_is_early_gets_a_tenth_of_what_was_not_used() -> None:
    early = attempt_pay(PLAN, 100_000_000, HOUR_MS, HOUR_MS * 9 // 10)
    assert early == AttemptPay(90_000_000, 9_000_000, 1_000_000)


@given(PRICES, TIMES, TIMES)
def test_trading_with_oneself_always_loses(hourly_uc: int, quoted_ms: int, used_ms: int) -> None:
    one = attempt_pay(PLAN, hourly_uc, quoted_ms, used_ms)
    assert 100 * (one.reward_uc + one.bonus_uc) <= 99 * one.cost_uc
    assert one.cost_uc <= cost_max_uc(PLAN, hourly_uc, max(1, quoted_ms))


@given(st.integers(0, 10**12))
def test_a_commission_is_divided_and_nothing_of_it_is_lost(commission_uc: int) -> None:
    parts = split(RewardPlan(burn_ppm=333_333), commission_uc)
    assert parts.pool_uc + parts.fund_uc + parts.burn_uc == commission_uc
    assert min(parts.pool_uc, parts.fund_uc, parts.burn_uc) >= 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), PRICES, TIMES, TIMES)), st.integers(0, 10**12))
def test_bonuses_shrink_to_what_the_fund_has(rows: list[tuple[int, int, int, int, int]], fund_uc: int) -> None:
    paid = [PaidAttempt(UUID(int=job), UUID(int=owner), attempt_pay(PLAN, *figures)) for job, owner, *figures in rows]
    total = sums(paid, fund_uc)
    assert sum(total.bonuses_uc.values()) <= min(fund_uc, sum(one.due.bonus_uc for one in paid))
    assert sum(total.rewards_uc.values()) == sum(one.due.reward_uc for one in paid)
    assert sum(total.commissions_uc.values()) == sum(one.due.commission_uc for one in paid)
