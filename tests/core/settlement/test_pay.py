"""What an attempt pays: by the pool's clock and by the amount of work."""

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.settlement.pay import (
    HOUR_MS,
    AttemptPay,
    PayTerms,
    RewardPlan,
    UsedTime,
    attempt_pay,
    cost_max_uc,
    stopped_pay,
)

PLAN = RewardPlan()
PRICE_UC = 100_000_000
AN_HOUR = PayTerms(PRICE_UC, HOUR_MS)
TERMS = st.builds(
    PayTerms, st.integers(0, 10**9), st.integers(1, 100 * HOUR_MS), st.just(0) | st.integers(1, 100 * HOUR_MS)
)
TIMES = st.builds(UsedTime, st.integers(0, 100 * HOUR_MS), st.integers(0, 100 * HOUR_MS))
PLANS = st.builds(RewardPlan, minimum_uc=st.integers(0, 10**6))


def used(ms: int) -> UsedTime:
    return UsedTime(ms, ms)


def test_a_provider_gets_the_price_they_set_and_the_customer_pays_a_tenth_more() -> None:
    assert attempt_pay(PLAN, AN_HOUR, used(HOUR_MS)) == AttemptPay(100_000_000, 10_000_000, 0)


def test_a_claim_beyond_what_the_pool_saw_or_quoted_is_not_paid() -> None:
    """A node added 700,000 s to `finished_at`, and was paid by it."""
    lie = UsedTime(told_ms=700_000_059, passed_ms=59)
    assert attempt_pay(PLAN, AN_HOUR, lie) == attempt_pay(PLAN, AN_HOUR, used(59))
    assert attempt_pay(PLAN, AN_HOUR, used(3 * HOUR_MS)) == attempt_pay(PLAN, AN_HOUR, used(HOUR_MS))


def test_known_work_pays_the_same_however_long_it_took() -> None:
    terms = PayTerms(PRICE_UC, 10 * HOUR_MS, HOUR_MS)
    fast, slow = (attempt_pay(PLAN, terms, used(ms)) for ms in (HOUR_MS, 9 * HOUR_MS))
    assert fast == slow == AttemptPay(100_000_000, 10_000_000, 0)


def test_an_early_result_gets_a_tenth_of_what_was_not_used_up_to_the_middle_of_the_quote() -> None:
    assert attempt_pay(PLAN, AN_HOUR, used(HOUR_MS // 2)).bonus_uc == 0
    assert attempt_pay(PLAN, AN_HOUR, used(HOUR_MS * 4 // 10)) == AttemptPay(40_000_000, 4_000_000, 1_000_000)


def test_no_node_gets_a_bonus_by_its_own_clock() -> None:
    assert attempt_pay(PLAN, AN_HOUR, UsedTime(told_ms=1, passed_ms=HOUR_MS)).bonus_uc == 0


def test_a_result_that_passes_pays_at_least_a_minimum_but_nothing_where_nothing_is_asked() -> None:
    plan = RewardPlan(minimum_uc=100)
    assert attempt_pay(plan, PayTerms(200_000, 1000), used(1000)) == AttemptPay(100, 10, 0)
    assert attempt_pay(plan, PayTerms(0, 1000), used(10)) == AttemptPay(0, 0, 0)


def test_of_time_that_no_run_by_the_house_shows_nothing_is_the_owners() -> None:
    """A node kept its receipt back for an hour, and was paid for it; or the program did, and paid for nothing."""
    dawdled = attempt_pay(PLAN, AN_HOUR, UsedTime(HOUR_MS, HOUR_MS, shown_ms=HOUR_MS // 10))
    assert dawdled == AttemptPay(10_000_000, 10_000_000, 0, 90_000_000)
    assert dawdled.cost_uc == attempt_pay(PLAN, AN_HOUR, used(HOUR_MS)).cost_uc
    assert attempt_pay(PLAN, AN_HOUR, UsedTime(9, 9, shown_ms=10)) == attempt_pay(PLAN, AN_HOUR, used(9))


def test_who_stops_a_task_pays_for_the_time_that_passed_and_the_owner_gets_what_was_heard_of() -> None:
    assert stopped_pay(PLAN, AN_HOUR, HOUR_MS // 2, HOUR_MS // 4) == AttemptPay(25_000_000, 5_000_000, 0, 25_000_000)
    assert stopped_pay(PLAN, AN_HOUR, 5 * HOUR_MS, 0).cost_uc == 110_000_000
    assert stopped_pay(PLAN, AN_HOUR, 1000, 5000).unshown_uc == 0


@given(PLANS, TERMS, TIMES)
def test_trading_with_oneself_always_loses(plan: RewardPlan, terms: PayTerms, time: UsedTime) -> None:
    passed, stopped = attempt_pay(plan, terms, time), stopped_pay(plan, terms, time.passed_ms, time.told_ms)
    assert 100 * (passed.reward_uc + passed.bonus_uc) <= 99 * passed.cost_uc
    assert 100 * stopped.reward_uc <= 99 * stopped.cost_uc


@given(PLANS, TERMS, TIMES)
def test_no_task_costs_more_than_is_held_for_it(plan: RewardPlan, terms: PayTerms, time: UsedTime) -> None:
    most_uc = cost_max_uc(plan, terms)
    assert attempt_pay(plan, terms, time).cost_uc <= most_uc
    assert stopped_pay(plan, terms, time.passed_ms, time.told_ms).cost_uc <= most_uc


@given(TERMS, TIMES, st.integers(0, 10**12))
def test_a_node_that_lies_about_its_time_gains_nothing(terms: PayTerms, time: UsedTime, lie_ms: int) -> None:
    truth = attempt_pay(PLAN, terms, UsedTime(time.passed_ms, time.passed_ms))
    told = attempt_pay(PLAN, terms, UsedTime(lie_ms, time.passed_ms))
    assert told.reward_uc + told.bonus_uc <= truth.reward_uc + truth.bonus_uc
