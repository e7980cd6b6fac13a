"""The rules of trust: rates, charges, exposure, newcomers, stake, reputation and the split of payments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.money import CREDIT_UC
from tidemill.core.settings.sections.trust import NewcomersSettings
from tidemill.core.settlement.pay import PayTerms, RewardPlan, UsedTime, attempt_pay
from tidemill.core.trust.audits.rates import assumed_collusion, audit_rates
from tidemill.core.trust.charges import charges_uc, dispute_deposit_uc
from tidemill.core.trust.exposure import exposure_limits_uc
from tidemill.core.trust.newcomers import kept_share, throttle
from tidemill.core.trust.reputation import Misstep, ReputationRules, composites, penalty_points, reputations, suspended
from tidemill.core.trust.rules import AuditRules, DisputesRules, ExposureRules, FindingsRules
from tidemill.core.trust.stake import StakeRules, least_stake_uc, recommended_stake_uc

AUDIT = AuditRules()


def audit_rate(right: int, failures: float, reward: int, at_risk: int, collusion: float) -> float:
    counts, rewards, risks = (np.array([value]) for value in (right, reward, at_risk))
    return float(audit_rates(counts, np.array([failures]), rewards, risks, collusion, AUDIT)[0])


@pytest.mark.parametrize(
    ("right", "failures", "reward", "at_risk", "rate"),
    [
        (0, 0.0, 1, 10**9, 1.0),
        (9, 0.0, 1, 10**9, 1.0),
        (10, 0.0, 1, 10**9, 0.1),
        (25, 0.0, 1, 10**9, 0.04),
        (50, 0.0, 1, 10**9, 0.02),
        (5000, 0.0, 1, 10**9, 0.02),
        (5000, 0.0, 1000, 14_000, 0.125),
        (5000, 0.0, 1000, 0, 1.0),
        (5000, 0.2, 1000, 14_000, 0.125),
        (5000, 0.21, 1000, 14_000, 0.25),
        (5000, 0.9, 1000, 500, 1.0),
    ],
)
def test_the_audit_rate_is_the_largest_of_three(
    right: int, failures: float, reward: int, at_risk: int, rate: float
) -> None:
    assert audit_rate(right, failures, reward, at_risk, 0.2) == pytest.approx(rate)


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(10, 10**6), st.floats(0.2, 0.9))
def test_whatever_is_at_stake_cheating_must_expect_to_lose_one_and_a_half_times_its_reward(
    reward: int, at_risk: int, right: int, collusion: float
) -> None:
    """Also for who cheats so rarely that no look back finds a second one; and no charge exceeds a severe finding."""
    rate = audit_rate(right, 0.0, reward, at_risk, collusion)
    charged = int(charges_uc(np.array([reward]), np.array([rate]), collusion, AUDIT)[0])
    assert rate * (1 - collusion) * (reward + charged) >= 1.5 * reward * (1 - 1e-9)
    if rate < 1:
        assert charged <= at_risk + 1 + 1e-9 * (reward + at_risk)


def test_as_many_auditors_are_assumed_to_collude_as_the_largest_owner_has() -> None:
    assert assumed_collusion(0.05, AUDIT) == 0.2
    assert assumed_collusion(0.5, AUDIT) == 0.5
    assert assumed_collusion(1.0, AUDIT) == 0.99


@pytest.mark.parametrize(
    ("stake", "held_back", "owed", "limit"),
    [(100, 0, 0, 50), (100, 10, 0, 60), (100, 0, 50, 50), (100, 0, 70, 30), (100, 0, 500, 0), (0, 0, 0, 0)],
)
def test_unsettled_rewards_are_bounded_by_the_deposit_behind_them(
    stake: int, held_back: int, owed: int, limit: int
) -> None:
    stakes, held, owes = (np.array([value]) for value in (stake, held_back, owed))
    assert exposure_limits_uc(stakes, held, owes, ExposureRules(), FindingsRules()).tolist() == [limit]


def test_whoever_loses_a_dispute_pays_the_jury() -> None:
    assert dispute_deposit_uc(100, DisputesRules()) == 300


@pytest.mark.parametrize(("capacity", "kept"), [(0.5, 0.05), (0.01, 0.01), (0, 0)])
def test_no_more_placements_are_kept_for_newcomers_than_they_can_do(capacity: float, kept: float) -> None:
    assert kept_share(capacity, NewcomersSettings()) == kept


@pytest.mark.parametrize(("checks", "work", "on"), [(0, 0, False), (10, 100, False), (11, 100, True), (5, 0, False)])
def test_newcomers_wait_when_checks_cost_more_than_their_budget(checks: int, work: int, on: bool) -> None:
    found = throttle(checks, work, AUDIT)
    assert found.on is on
    assert found.because.endswith(".")


@pytest.mark.parametrize(
    ("gib", "stake"), [(4, 25), (12, 25), (16, 50), (24, 50), (40, 150), (48, 150), (80, 400), (192, 400)]
)
def test_the_least_stake_follows_the_memory(gib: int, stake: int) -> None:
    rules = StakeRules()
    assert least_stake_uc(gib * 1024, rules) == stake * CREDIT_UC
    assert recommended_stake_uc(least_stake_uc(gib * 1024, rules), rules) == 2 * stake * CREDIT_UC


@pytest.mark.parametrize(
    ("shares", "results", "penalties", "points"),
    [
        ((0, 1, 1, 9), 0, 0, 300),
        ((1, 1, 1, 1), 50, 0, 650),
        ((1, 1, 1, 1), 450, 0, 930),
        ((1, 1, 1, 1), 450, 150, 780),
        ((1, 1, 1, 1), 450, 5000, 0),
        ((0.5, 1, 1, 1), 450, 0, 705),
        ((1, 7, 9, 5), 450, 0, 930),
    ],
)
def test_a_newcomer_starts_at_thirty_and_a_record_speaks_when_it_is_long(
    shares: tuple[float, float, float, float], results: int, penalties: int, points: int
) -> None:
    success, speed, uptime, stake = (np.array([share], dtype=float) for share in shares)
    made = composites(success, speed, uptime, stake, np.array([float(results)]), ReputationRules())
    assert reputations(made, np.array([penalties])).tolist() == [points]


def test_missteps_take_points_by_their_weight_and_who_has_too_few_gets_no_work() -> None:
    rules = ReputationRules()
    assert [penalty_points(misstep, rules) for misstep in Misstep] == [50, 150, 300]
    assert suspended(np.array([99, 100]), rules).tolist() == [True, False]


@given(st.integers(1, 10**12), st.integers(1, 10**8), st.integers(1, 10**8), st.integers(10_102, 500_000))
def test_trading_with_oneself_always_loses(hourly: int, quoted: int, used: int, commission: int) -> None:
    """By the plan that pays attempts: whatever is quoted and used, reward and bonus are less than the payment."""
    paid = attempt_pay(RewardPlan(commission_ppm=commission), PayTerms(hourly, quoted), UsedTime(used, used))
    assert 100 * (paid.reward_uc + paid.bonus_uc) <= 99 * paid.cost_uc or paid.bonus_uc == 0
    assert paid.reward_uc + paid.bonus_uc < paid.cost_uc
