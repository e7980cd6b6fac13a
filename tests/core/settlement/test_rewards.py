"""Who is owed what for a batch of attempts."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.settlement.pay import HOUR_MS, PayTerms, RewardPlan, UsedTime, attempt_pay
from tidemill.core.settlement.rewards import PaidAttempt, split, sums

PLAN = RewardPlan()
PRICES = st.integers(0, 10**9)
TIMES = st.integers(0, 100 * HOUR_MS)


@given(st.integers(0, 10**12))
def test_a_commission_is_divided_and_nothing_of_it_is_lost(commission_uc: int) -> None:
    parts = split(RewardPlan(burn_ppm=333_333), commission_uc)
    assert parts.pool_uc + parts.fund_uc + parts.burn_uc == commission_uc
    assert min(parts.pool_uc, parts.fund_uc, parts.burn_uc) >= 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), PRICES, TIMES, TIMES)), st.integers(0, 10**12))
def test_bonuses_shrink_to_what_the_fund_has(rows: list[tuple[int, int, int, int, int]], fund_uc: int) -> None:
    paid = [
        PaidAttempt(UUID(int=job), UUID(int=owner), attempt_pay(PLAN, PayTerms(price, quoted), UsedTime(used, used)))
        for job, owner, price, quoted, used in rows
    ]
    total = sums(paid, fund_uc)
    assert sum(total.bonuses_uc.values()) <= min(fund_uc, sum(one.due.bonus_uc for one in paid))
    assert sum(total.rewards_uc.values()) == sum(one.due.reward_uc for one in paid)
    assert sum(total.commissions_uc.values()) == sum(one.due.commission_uc for one in paid)
