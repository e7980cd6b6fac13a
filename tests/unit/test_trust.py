"""The rules of trust: rates, exposure, answers, auditors, draws, newcomers, stake and the split of payments."""

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import DAY, Instant
from tidemill.core.money import CREDIT_UC
from tidemill.core.settings.money import StakeSettings
from tidemill.core.settings.trust import (
    AuditSettings,
    ExposureSettings,
    FindingsSettings,
    NewcomersSettings,
    VerificationSettings,
)
from tidemill.core.stakes import decayed_stake_uc, least_stake_uc, owners_least_stake_uc, recommended_stake_uc
from tidemill.core.verification import draws
from tidemill.core.verification.answers import Answer, AnswersRefusal, Judgement, judge
from tidemill.core.verification.auditors import AuditorRefusal, Candidate, choose_auditor, choose_jury
from tidemill.core.verification.draws import Purpose
from tidemill.core.verification.exposure import ExposureRefusal, Holdings, Room, at_risk_uc, room, take_on
from tidemill.core.verification.findings import WrongResult, charge
from tidemill.core.verification.newcomers import held_back_uc, is_new, looks_among_newcomers, throttle
from tidemill.core.verification.rates import Standing, after_audit, assumed_collusion, audit_rate
from tidemill.core.work.paying import MarketPlan, due

AUDIT = AuditSettings()
SECRET = bytes(range(32))


def node(number: int) -> UUID:
    return UUID(int=number)


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
    found = audit_rate(Standing(right, failures), reward, at_risk, 0.2, AUDIT)
    assert found.rate == pytest.approx(rate)
    assert found.because.endswith(".")


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(10, 10**6), st.floats(0.2, 0.9))
def test_whatever_is_at_stake_cheating_must_expect_to_lose_one_and_a_half_times_its_reward(
    reward: int, at_risk: int, right: int, collusion: float
) -> None:
    """Also for who cheats so rarely that no look back finds a second one; and no charge exceeds a severe finding."""
    rate = audit_rate(Standing(right), reward, at_risk, collusion, AUDIT).rate
    charged = charge(WrongResult(node(1), node(2), reward, rate), collusion, AUDIT).amount_uc
    assert rate * (1 - collusion) * (reward + charged) >= 1.5 * reward * (1 - 1e-9)
    if rate < 1:
        assert charged <= at_risk + 1 + 1e-9 * (reward + at_risk)


def test_a_wrong_result_starts_the_record_anew() -> None:
    assert after_audit(Standing(400), right=False).right_in_a_row == 0
    assert after_audit(Standing(400), right=True).right_in_a_row == 401


def test_as_many_auditors_are_assumed_to_collude_as_the_largest_owner_has() -> None:
    assert assumed_collusion(0.05, AUDIT) == 0.2
    assert assumed_collusion(0.5, AUDIT) == 0.5
    assert assumed_collusion(1.0, AUDIT) == 0.99


@pytest.mark.parametrize(
    ("holdings", "left"),
    [
        (Holdings(stake_uc=100), 50),
        (Holdings(stake_uc=100, unsettled_uc=20), 30),
        (Holdings(stake_uc=100, unsettled_uc=80), 0),
        (Holdings(stake_uc=100, held_back_uc=10), 60),
        (Holdings(stake_uc=100, owed_uc=50), 50),
        (Holdings(stake_uc=100, owed_uc=70), 30),
        (Holdings(stake_uc=100, owed_uc=500), 0),
        (Holdings(), 0),
    ],
)
def test_unsettled_rewards_are_bounded_by_the_deposit_behind_them(holdings: Holdings, left: int) -> None:
    exposure, findings = ExposureSettings(), FindingsSettings()
    assert room(holdings, exposure, findings).left_uc == left
    assert isinstance(take_on(left, holdings, exposure, findings), Room)
    assert take_on(left + 1, holdings, exposure, findings) is ExposureRefusal.EXPOSURE_REACHED
    assert at_risk_uc(holdings, findings) >= holdings.unsettled_uc


def answers(*keys: str) -> list[Answer]:
    """One answer an owner; a capital is the house's, an exclamation mark a failure."""
    return [
        Answer(node(at), node(100 + at), key.lower().encode(), failed="!" in key, house=key.isupper())
        for at, key in enumerate(keys)
    ]


@pytest.mark.parametrize(
    ("given_keys", "judgement", "wrong"),
    [
        ("aa", Judgement.AGREED, []),
        ("ab", Judgement.THIRD_NEEDED, []),
        ("aab", Judgement.ONE_IS_WRONG, [2]),
        ("aba", Judgement.ONE_IS_WRONG, [1]),
        ("baa", Judgement.ONE_IS_WRONG, [0]),
        ("abA", Judgement.ONE_IS_WRONG, [1]),
        ("aBB", Judgement.ONE_IS_WRONG, [0]),
        ("abc", Judgement.NOT_DETERMINISTIC, []),
        ("aabb", Judgement.THIRD_NEEDED, []),
        ("!!", Judgement.TASK_AT_FAULT, []),
        ("a!!", Judgement.TASK_AT_FAULT, []),
        ("!a", Judgement.THIRD_NEEDED, []),
        ("!aa", Judgement.ONE_IS_WRONG, [0]),
    ],
)
def test_who_stands_alone_is_wrong(given_keys: str, judgement: Judgement, wrong: list[int]) -> None:
    ruling = judge(answers(*given_keys), VerificationSettings())
    assert not isinstance(ruling, AnswersRefusal)
    assert (ruling.judgement, ruling.wrong) == (judgement, tuple(map(node, wrong)))


def test_an_answer_of_another_numeric_class_says_nothing() -> None:
    other = [*answers("a"), Answer(node(5), node(6), b"b", numeric_class="H100")]
    assert judge(other, VerificationSettings()) is AnswersRefusal.ANSWERS_NOT_COMPARABLE


def test_two_nodes_of_one_owner_are_one_voice_and_so_is_one_attempt_twice() -> None:
    one, other = answers("a", "b")
    twin = Answer(node(7), one.owner_id, b"a")
    assert judge([one, other, twin], VerificationSettings()) is AnswersRefusal.ANSWERS_NOT_INDEPENDENT
    assert judge([one, other, other], VerificationSettings()) is AnswersRefusal.ANSWERS_NOT_INDEPENDENT


@given(st.permutations(range(3)))
def test_the_order_of_answers_does_not_matter(order: list[int]) -> None:
    given_answers = answers("a", "b", "a")
    ruling = judge([given_answers[at] for at in order], VerificationSettings())
    assert not isinstance(ruling, AnswersRefusal)
    assert ruling.wrong == (node(1),)


CANDIDATES = [
    Candidate(node(1), node(11), 900),
    Candidate(node(2), node(11), 900),
    Candidate(node(3), node(12), 600),
    Candidate(node(4), node(13), 599),
    Candidate(node(5), node(14), 0, house=True),
]


def drawn(draw: float, involved: set[UUID], candidates: list[Candidate]) -> int:
    chosen = choose_auditor(candidates, involved, draw, AUDIT)
    assert not isinstance(chosen, AuditorRefusal)
    return chosen.candidates[0].node_id.int


def test_the_house_checks_wherever_a_node_of_it_is_free() -> None:
    two = [*CANDIDATES, Candidate(node(6), node(14), 0, house=True)]
    assert {drawn(place, {node(11), node(14)}, two) for place in np.linspace(0, 0.9999, 50)} == {5, 6}


def test_where_no_house_is_auditors_are_independent_and_have_a_record() -> None:
    places, owners = np.linspace(0, 0.9999, 400), CANDIDATES[:4]
    assert {drawn(place, set(), owners) for place in places} == {1, 2, 3}
    assert {drawn(place, {node(11)}, owners) for place in places} == {3}
    beyond = {drawn(place, set(), owners) for place in (1.0, 1.5)}
    assert beyond == {3}, "a draw out of bounds chooses somebody all the same"


def test_a_verdict_waits_when_nobody_is_independent() -> None:
    assert choose_auditor(CANDIDATES[:4], {node(11), node(12)}, 0.5, AUDIT) is AuditorRefusal.NO_INDEPENDENT_AUDITOR


def test_no_two_jurors_are_of_one_owner() -> None:
    assert choose_jury(CANDIDATES[:4], set(), [0.1, 0.1, 0.1], AUDIT) is AuditorRefusal.NO_INDEPENDENT_AUDITOR
    for first in np.linspace(0, 0.99, 30):
        jury = choose_jury(CANDIDATES, {node(13)}, [first, 0.3, 0.6], AUDIT)
        assert not isinstance(jury, AuditorRefusal)
        assert len({juror.owner_id for juror in jury.candidates}) == 3


def test_a_pool_of_one_owner_and_houses_can_judge() -> None:
    houses = [Candidate(node(at), node(50), 0, house=True) for at in range(3)]
    jury = choose_jury(houses, {node(50)}, [0.9, 0.9, 0.9], AUDIT)
    assert not isinstance(jury, AuditorRefusal)
    assert len({juror.node_id for juror in jury.candidates}) == 3


def test_draws_are_even_and_nobody_can_pass_off_another_secret() -> None:
    many = [draws.draw(SECRET, Purpose.AUDIT, node(at)) for at in range(4000)]
    assert 0 <= min(many) < max(many) < 1
    assert np.mean([draw < 0.02 for draw in many]) == pytest.approx(0.02, abs=0.008)
    assert draws.is_secret_of(SECRET, draws.commitment(SECRET))
    assert not draws.is_secret_of(SECRET[::-1], draws.commitment(SECRET))
    assert not draws.is_secret_of(SECRET + b"x", draws.commitment(SECRET))


def test_draws_for_one_purpose_tell_nothing_of_another() -> None:
    pairs = [[draws.draw(SECRET, purpose, node(at)) for at in range(2000)] for purpose in (Purpose.AUDIT, Purpose.TIE)]
    assert abs(np.corrcoef(pairs)[0, 1]) < 0.1
    assert draws.draw(SECRET, Purpose.JURY, node(1), 0) != draws.draw(SECRET, Purpose.JURY, node(1), 1)


def test_a_sample_does_not_depend_on_the_order_or_on_repetition() -> None:
    subjects = [node(at) for at in range(100)]
    chosen = draws.sample(SECRET, Purpose.LOOK_BACK, subjects, 40)
    assert chosen == draws.sample(SECRET, Purpose.LOOK_BACK, subjects[::-1] * 3, 40)
    assert len(set(chosen)) == 40


@pytest.mark.parametrize(("days", "results", "new"), [(0, 0, True), (8, 49, True), (6, 500, True), (7, 50, False)])
def test_an_owner_is_new_until_both_time_and_results_are_enough(days: int, results: int, new: bool) -> None:
    assert is_new(Instant(0), results, Instant(days * DAY), NewcomersSettings()) is new


def test_half_of_a_newcomers_reward_is_held_back() -> None:
    assert held_back_uc(101, new=True, rules=NewcomersSettings()) == 50
    assert held_back_uc(101, new=False, rules=NewcomersSettings()) == 0


@pytest.mark.parametrize(
    ("had", "capacity", "first"),
    [(0, 0.5, True), (0.049, 0.5, True), (0.05, 0.5, False), (0.01, 0.01, False), (0, 0, False)],
)
def test_newcomers_come_first_until_they_had_their_share_and_never_for_more_than_they_can_do(
    had: float, capacity: float, first: bool
) -> None:
    found = looks_among_newcomers(had, capacity, NewcomersSettings())
    assert found.on is first
    assert found.because.endswith(".")


@pytest.mark.parametrize(("checks", "work", "on"), [(0, 0, False), (10, 100, False), (11, 100, True), (5, 0, False)])
def test_newcomers_wait_when_checks_cost_more_than_their_budget(checks: int, work: int, on: bool) -> None:
    found = throttle(checks, work, AUDIT)
    assert found.on is on
    assert found.because.endswith(".")


@pytest.mark.parametrize(
    ("gib", "stake"), [(4, 25), (12, 25), (16, 50), (24, 50), (40, 150), (48, 150), (80, 400), (192, 400)]
)
def test_the_least_stake_follows_the_memory(gib: int, stake: int) -> None:
    rules = StakeSettings()
    assert least_stake_uc(gib * 1024, rules) == stake * CREDIT_UC
    assert recommended_stake_uc(least_stake_uc(gib * 1024, rules), rules) == 2 * stake * CREDIT_UC


def test_the_stake_of_an_owner_is_the_sum_over_devices() -> None:
    assert owners_least_stake_uc([8192, 81_920, 24_576], StakeSettings()) == 475 * CREDIT_UC


@given(st.integers(0, 10**12), st.integers(0, 400))
def test_a_stake_decays_by_a_hundredth_a_day_after_a_week_and_never_below_nothing(stake: int, days: int) -> None:
    rules = StakeSettings()
    left = decayed_stake_uc(stake, days * DAY, rules)
    assert 0 <= left <= stake
    assert left == stake if days <= 7 else left <= stake * 0.99 ** (days - 7) + 1
    assert decayed_stake_uc(stake, (days + 1) * DAY, rules) <= left


@given(st.integers(1, 10**12), st.integers(1, 10**8), st.integers(1, 10**8), st.integers(10_102, 500_000))
def test_trading_with_oneself_always_loses(hourly: int, quoted: int, used: int, commission: int) -> None:
    """By the plan that pays attempts: whatever is quoted and used, reward and bonus are less than the payment."""
    paid = due(MarketPlan(commission_ppm=commission), hourly, quoted, used)
    assert 100 * (paid.reward_uc + paid.bonus_uc) <= 99 * paid.cost_uc or paid.bonus_uc == 0
    assert paid.reward_uc + paid.bonus_uc < paid.cost_uc
