"""Findings, disputes and reputation: single decisions, and what no order of them can do."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tidemill.core.clock import DAY, HOUR, Instant
from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.reputation import (
    FromCustomer,
    Misstep,
    Record,
    penalised,
    repaid,
    reputation,
    success_by_value,
)
from tidemill.core.settings.money import BonusFundSettings
from tidemill.core.settings.trust import AuditSettings, DisputesSettings, FindingsSettings, ReputationSettings
from tidemill.core.verification import disputes
from tidemill.core.verification.consequences import Consequences, consequences, on_leaving
from tidemill.core.verification.disputes import Contested, Dispute, DisputeRefusal, DisputeState, Vote, compensations
from tidemill.core.verification.exposure import Holdings
from tidemill.core.verification.findings import (
    Case,
    CaseRefusal,
    Charge,
    Offence,
    Severity,
    WrongResult,
    charge,
    checked,
    open_case,
    repaid_uc,
    severe_at_once,
    slashed_uc,
)

FINDINGS, AUDIT, FUND, DISPUTES = FindingsSettings(), AuditSettings(), BonusFundSettings(), DisputesSettings()
REPUTATION = ReputationSettings()
SECRET = bytes(32)
CUSTOMER, PROVIDER, STRANGER = (UUID(int=number) for number in (91, 92, 93))


def attempt(number: int) -> UUID:
    return UUID(int=1000 + number)


WRONG = WrongResult(attempt(0), PROVIDER, 100, 0.02)


def charged(*wrong: WrongResult) -> dict[WrongResult, Charge]:
    return {one: charge(one, 0.2, AUDIT) for one in wrong}


def followed(case: Case, *wrong: bool) -> Case:
    for attempt_id, is_wrong in zip(sorted(case.sampled), wrong, strict=False):
        after = checked(case, attempt_id, wrong=is_wrong, rules=FINDINGS)
        assert isinstance(after, Case)
        case = after
    return case


def test_a_case_looks_at_forty_of_the_unsettled_results_and_not_at_the_wrong_one_again() -> None:
    case = open_case(WRONG, [attempt(at) for at in range(100)], SECRET, FINDINGS)
    assert len(case.sampled) == len(case.further) == 40
    assert WRONG.attempt_id not in case.sampled
    assert not case.closed


def test_one_wrong_result_among_right_ones_touches_no_stake() -> None:
    case = followed(open_case(WRONG, [attempt(at) for at in range(11)], SECRET, FINDINGS), *[False] * 10)
    assert case.severity is Severity.ISOLATED
    found = consequences(case, charged(WRONG), Holdings(5000, 0, 700), FINDINGS, FUND)
    assert AccountKind.STAKE_ASSIGNED not in {movement.debit for movement in found.movements}
    assert sum(movement.amount_uc for movement in found.movements) == 700
    assert found.owed_uc == charge(WRONG, 0.2, AUDIT).amount_uc - 600
    assert "stake is not touched" in found.because


def test_an_owner_without_other_unsettled_results_has_nothing_to_look_at() -> None:
    assert open_case(WRONG, [WRONG.attempt_id], SECRET, FINDINGS).severity is Severity.ISOLATED


def test_one_more_wrong_result_of_a_small_owner_is_severe_wherever_it_was_found() -> None:
    case = open_case(WRONG, [attempt(at) for at in range(41)], SECRET, FINDINGS)
    for found_in in (min(case.sampled), attempt(5000)):
        after = checked(case, found_in, wrong=True, rules=FINDINGS)
        assert isinstance(after, Case)
        assert after.severity is Severity.SEVERE
    taken = consequences(after, charged(WRONG), Holdings(5001, 30, 700), FINDINGS, FUND)
    by_debit = {
        kind: sum(one.amount_uc for one in taken.movements if one.debit is kind)
        for kind in (AccountKind.STAKE_ASSIGNED, AccountKind.PROVIDER_LOCKED)
    }
    assert by_debit == {AccountKind.STAKE_ASSIGNED: 2500, AccountKind.PROVIDER_LOCKED: 730}
    assert taken.owed_uc == 0


def test_of_an_owner_with_more_results_as_many_again_are_looked_at_before_it_is_severe() -> None:
    case = open_case(WRONG, [attempt(at) for at in range(1000)], SECRET, FINDINGS)
    first, last = sorted(case.sampled)[0], sorted(case.further)[0]
    once = checked(case, first, wrong=True, rules=FINDINGS)
    assert isinstance(once, Case)
    assert not once.closed
    assert len(once.sampled) == 80
    twice = checked(once, last, wrong=True, rules=FINDINGS)
    assert isinstance(twice, Case)
    assert twice.severity is Severity.SEVERE
    for attempt_id in sorted(once.sampled - {first}):
        after = checked(once, attempt_id, wrong=False, rules=FINDINGS)
        assert isinstance(after, Case)
        once = after
    assert once.severity is Severity.ISOLATED
    other = WrongResult(first, PROVIDER, 100, 0.02)
    found = consequences(once, charged(WRONG, other), Holdings(5000, 0, 700), FINDINGS, FUND)
    assert sum(movement.amount_uc for movement in found.movements) == 700
    assert found.owed_uc == 2 * charge(WRONG, 0.2, AUDIT).amount_uc - 500


@pytest.mark.parametrize("offence", Offence)
def test_what_cannot_be_an_accident_is_severe_at_once(offence: Offence) -> None:
    case = severe_at_once(WRONG, offence)
    assert case.closed
    assert offence.value in case.because
    assert consequences(case, charged(WRONG), Holdings(10), FINDINGS, FUND).movements


def test_a_closed_case_stays_closed_and_nothing_counts_twice() -> None:
    case = open_case(WRONG, [attempt(at) for at in range(4)], SECRET, FINDINGS)
    first = sorted(case.sampled)[0]
    once = checked(case, first, wrong=False, rules=FINDINGS)
    assert isinstance(once, Case)
    assert checked(once, first, wrong=False, rules=FINDINGS) is CaseRefusal.CHECKED_ALREADY
    assert checked(once, first, wrong=True, rules=FINDINGS) is CaseRefusal.CHECKED_ALREADY
    assert checked(once, WRONG.attempt_id, wrong=True, rules=FINDINGS) is CaseRefusal.CHECKED_ALREADY
    assert checked(once, attempt(77), wrong=False, rules=FINDINGS) is CaseRefusal.NOT_IN_CASE
    closed = followed(case, False, False, False)
    for attempt_id in (first, attempt(77), WRONG.attempt_id):
        for wrong in (True, False):
            assert checked(closed, attempt_id, wrong=wrong, rules=FINDINGS) is CaseRefusal.CASE_CLOSED


def test_what_is_owed_is_repaid_by_halves_and_kept_from_a_leaving_stake() -> None:
    assert repaid_uc(100, 1000, FINDINGS) == 50
    assert repaid_uc(100, 20, FINDINGS) == 20
    left = on_leaving(Holdings(stake_uc=70, owed_uc=100))
    assert (left.movements[0].amount_uc, left.owed_uc) == (70, 30)
    assert not on_leaving(Holdings(stake_uc=70)).movements


CONTESTED = Contested(attempt(1), CUSTOMER, PROVIDER, passed=True, reward_uc=100, decided_at=Instant(0))


def opened(by: UUID = CUSTOMER, contested: Contested = CONTESTED) -> Dispute:
    made = disputes.contest(contested, by, 300, b"e" * 32, None, rules=DISPUTES, now=Instant(HOUR))
    assert isinstance(made, Dispute)
    return made


def votes(*right: bool) -> list[Vote]:
    return [Vote(UUID(int=at), one) for at, one in enumerate(right)]


def ruled(dispute: Dispute, *right: bool) -> Dispute:
    made = disputes.rule(dispute, votes(*right), DISPUTES, Instant(2 * HOUR))
    assert isinstance(made, Dispute)
    return made


def final(dispute: Dispute, *right: bool) -> Dispute:
    made = disputes.finish(ruled(dispute, *right), DISPUTES, Instant(3 * DAY))
    assert isinstance(made, Dispute)
    return made


@pytest.mark.parametrize(
    ("by", "balance", "earlier", "now", "refusal"),
    [
        (STRANGER, 300, None, HOUR, DisputeRefusal.DISPUTE_NO_PARTY),
        (CUSTOMER, 299, None, HOUR, DisputeRefusal.DISPUTE_DEPOSIT_SHORT),
        (CUSTOMER, 300, None, DAY, DisputeRefusal.DISPUTE_TOO_LATE),
        (PROVIDER, 300, opened(), HOUR, DisputeRefusal.DISPUTED_ALREADY),
    ],
)
def test_a_dispute_is_opened_once_in_time_by_a_party_with_a_deposit(
    by: UUID, balance: int, earlier: Dispute | None, now: int, refusal: DisputeRefusal
) -> None:
    made = disputes.contest(CONTESTED, by, balance, b"", earlier, rules=DISPUTES, now=Instant(now))
    assert made is refusal


@pytest.mark.parametrize(
    ("passed", "right", "upheld", "moved"),
    [
        (True, (True, True, False), True, (AccountKind.CUSTOMER, AccountKind.AUDIT_BUDGET, 300)),
        (True, (False, True, False), False, (AccountKind.PROVIDER_LOCKED, AccountKind.CUSTOMER, 100)),
        (False, (False, False, False), True, (AccountKind.CUSTOMER, AccountKind.AUDIT_BUDGET, 300)),
        (False, (True, True, False), False, (AccountKind.AUDIT_BUDGET, AccountKind.PROVIDER_LOCKED, 100)),
    ],
)
def test_the_majority_decides_and_the_loser_pays(
    passed: bool, right: tuple[bool, ...], upheld: bool, moved: tuple[AccountKind, AccountKind, int]
) -> None:
    dispute = final(opened(contested=replace(CONTESTED, passed=passed)), *right)
    assert dispute.upheld is upheld
    (movement,) = compensations(dispute).movements
    assert (movement.debit, movement.credit, movement.amount_uc) == moved


def test_a_jury_is_complete_and_nobody_votes_twice_or_in_their_own_case() -> None:
    for wrong in (votes(True, True), [*votes(True, True), Vote(UUID(int=0), True)]):
        assert disputes.rule(opened(), wrong, DISPUTES, Instant(0)) is DisputeRefusal.JURY_INCOMPLETE
    partial = [*votes(True, True), Vote(PROVIDER, True)]
    assert disputes.rule(opened(), partial, DISPUTES, Instant(0)) is DisputeRefusal.JURY_INCOMPLETE


def test_there_is_one_appeal_and_what_is_final_stays_final() -> None:
    dispute = ruled(opened(), True, True, True)
    appealed = disputes.appeal(dispute, PROVIDER, DISPUTES, Instant(5 * HOUR))
    assert isinstance(appealed, Dispute)
    decided = disputes.decide_appeal(appealed, upheld=False, because="the evidence was cut.")
    assert isinstance(decided, Dispute)
    assert decided.state is DisputeState.FINAL
    for done in (decided, final(opened(), True, True, True)):
        assert disputes.rule(done, votes(False, False, False), DISPUTES, Instant(0)) is DisputeRefusal.DISPUTE_STATE
        assert disputes.appeal(done, PROVIDER, DISPUTES, Instant(0)) is DisputeRefusal.DISPUTE_STATE
        assert disputes.decide_appeal(done, upheld=True, because="") is DisputeRefusal.DISPUTE_STATE
        assert disputes.finish(done, DISPUTES, Instant(9 * DAY)) is DisputeRefusal.DISPUTE_STATE
    late = disputes.appeal(dispute, PROVIDER, DISPUTES, Instant(DAY + 2 * HOUR))
    assert late is DisputeRefusal.DISPUTE_TOO_LATE
    assert disputes.appeal(dispute, STRANGER, DISPUTES, Instant(0)) is DisputeRefusal.DISPUTE_NO_PARTY
    once_more = disputes.appeal(replace(dispute, appeals=1), PROVIDER, DISPUTES, Instant(5 * HOUR))
    assert once_more is DisputeRefusal.APPEALS_USED_UP


def test_a_newcomer_starts_at_thirty() -> None:
    assert reputation(Record(uptime=1, stake_of_recommended=9, speed=1), REPUTATION).points == 300


def many_customers(results: int, right: float = 1.0) -> tuple[FromCustomer, ...]:
    return tuple(FromCustomer(results // 10, int(1000 * right), 1000) for _ in range(10))


@pytest.mark.parametrize(
    ("record", "points"),
    [
        (Record(many_customers(50), 1, 1, 1), 650),
        (Record(many_customers(450), 1, 1, 1), 930),
        (Record(many_customers(450), 1, 1, 1, penalty_points=150), 780),
        (Record(many_customers(450), 1, 1, 1, penalty_points=5000), 0),
        (Record(many_customers(450, 0.5), 1, 1, 1), 705),
        (Record(many_customers(450), 7, 9, 5), 930),
    ],
)
def test_a_record_speaks_when_it_is_long(record: Record, points: int) -> None:
    found = reputation(record, REPUTATION)
    assert found.points == points
    assert found.because.endswith(".")


def test_a_single_friend_makes_a_record_five_times_slower() -> None:
    friend = (FromCustomer(100, 10**9, 10**9),)
    assert success_by_value(friend, REPUTATION) == (1.0, pytest.approx(20))
    mixed = (*many_customers(100, 0.5), FromCustomer(100, 10**6, 10**6))
    assert success_by_value(mixed, REPUTATION)[0] < 0.98, "a friend's large orders do not hide what others got"


@given(st.lists(st.sampled_from([*Misstep, 1, 3, 20]), max_size=40))
def test_no_order_of_missteps_and_successes_makes_reputation_from_nothing(events: list[Misstep | int]) -> None:
    clean = record = Record(many_customers(450), 1, 1, 1)
    successes = 0
    for event in events:
        if isinstance(event, Misstep):
            record = penalised(record, event, REPUTATION)
        else:
            record, successes = repaid(record, event, REPUTATION), successes + event
        assert 0 <= reputation(record, REPUTATION).points <= reputation(clean, REPUTATION).points
    steps = {Misstep.LIGHT: 50, Misstep.MEDIUM: 150, Misstep.SEVERE: 300}
    earned = sum(steps[event] for event in events if isinstance(event, Misstep))
    assert record.penalty_points >= earned - successes


class AnyOrder(RuleBasedStateMachine):
    """Verdicts, findings, disputes, settlements and replays of all of them, in any order, with one owner's money and
    reputation."""

    def __init__(self) -> None:
        super().__init__()
        self.money = dict.fromkeys(AccountKind, 0)
        self.money[AccountKind.CUSTOMER] = self.money[AccountKind.AUDIT_BUDGET] = 10**6
        self.money[AccountKind.STAKE_ASSIGNED] = 5000
        self.brought = sum(self.money.values())
        self.owed = self.unsettled = self.next = 0
        self.paid: dict[UUID, int] = {}
        self.case: Case | None = None
        self.closed: list[Case] = []
        self.disputes: dict[UUID, Dispute] = {}
        self.refused: dict[UUID, int] = {}
        self.paid_after_all = self.taken_points = 0
        self.record = Record()

    def apply(self, found: Consequences) -> None:
        for movement in found.movements:
            assert movement.amount_uc > 0
            self.money[movement.debit] -= movement.amount_uc
            self.money[movement.credit] += movement.amount_uc
        self.owed += found.owed_uc
        self.unsettled = self.money[AccountKind.PROVIDER_LOCKED]

    def close(self) -> None:
        if self.case is None or not self.case.closed:
            return
        holdings = Holdings(self.money[AccountKind.STAKE_ASSIGNED], 0, self.unsettled, self.owed)
        others = [
            WrongResult(one, PROVIDER, self.paid.pop(one), 0.5) for one in sorted(self.case.wrong & set(self.paid))
        ]
        self.apply(consequences(self.case, charged(self.case.found, *others), holdings, FINDINGS, FUND))
        self.penalise(Misstep.MEDIUM)
        if self.case.severity is not Severity.ISOLATED:
            self.paid.clear()
            self.penalise(Misstep.SEVERE)
        self.closed.append(self.case)
        self.case = None

    def penalise(self, misstep: Misstep) -> None:
        before = self.record.penalty_points
        self.record = penalised(self.record, misstep, REPUTATION)
        self.taken_points += self.record.penalty_points - before

    @rule(reward=st.integers(1, 300))
    def pass_a_result(self, reward: int) -> None:
        self.next += 1
        self.record = repaid(self.record, 1, REPUTATION)
        self.paid[attempt(self.next)] = reward
        self.money[AccountKind.CUSTOMER] -= reward
        self.money[AccountKind.PROVIDER_LOCKED] += reward
        self.unsettled += reward

    @precondition(lambda self: self.paid and self.case is None)
    @rule(draw=st.data(), rate=st.floats(0.02, 1))
    def find_one_wrong(self, draw: st.DataObject, rate: float) -> None:
        attempt_id = draw.draw(st.sampled_from(sorted(self.paid)))
        found = WrongResult(attempt_id, PROVIDER, self.paid.pop(attempt_id), rate)
        self.case = open_case(found, sorted(self.paid), SECRET, FINDINGS)
        self.close()

    @precondition(lambda self: self.case is not None)
    @rule(draw=st.data(), wrong=st.booleans())
    def check_one_more(self, draw: st.DataObject, wrong: bool) -> None:
        assert self.case is not None
        after = checked(self.case, draw.draw(st.sampled_from(sorted(self.case.sampled))), wrong=wrong, rules=FINDINGS)
        self.case = after if isinstance(after, Case) else self.case
        self.close()

    @precondition(lambda self: self.closed)
    @rule(draw=st.data(), wrong=st.booleans(), number=st.integers(0, 50))
    def replay_against_a_closed_case(self, draw: st.DataObject, wrong: bool, number: int) -> None:
        case = draw.draw(st.sampled_from(self.closed))
        assert checked(case, attempt(number), wrong=wrong, rules=FINDINGS) is CaseRefusal.CASE_CLOSED

    @precondition(lambda self: self.paid and self.case is None)
    @rule(draw=st.data(), right=st.tuples(*[st.booleans()] * 3))
    def dispute_one(self, draw: st.DataObject, right: tuple[bool, bool, bool]) -> None:
        attempt_id = draw.draw(st.sampled_from(sorted(self.paid)))
        reward = self.paid[attempt_id]
        contested = Contested(attempt_id, CUSTOMER, PROVIDER, True, reward, Instant(0))
        earlier = self.disputes.get(attempt_id)
        balance = self.money[AccountKind.CUSTOMER]
        made = disputes.contest(contested, CUSTOMER, balance, b"", earlier, rules=DISPUTES, now=Instant(1))
        if earlier is not None:
            assert made is DisputeRefusal.DISPUTED_ALREADY
            return
        assert isinstance(made, Dispute)
        self.disputes[attempt_id] = done = final(made, *right)
        if self.unsettled >= reward:
            self.apply(compensations(done))
        if not done.upheld:
            del self.paid[attempt_id]

    @rule(reward=st.integers(1, 300))
    def refuse_a_result(self, reward: int) -> None:
        self.next += 1
        self.refused[attempt(self.next)] = reward

    @precondition(lambda self: self.refused)
    @rule(draw=st.data(), right=st.tuples(*[st.booleans()] * 3))
    def contest_a_refusal(self, draw: st.DataObject, right: tuple[bool, bool, bool]) -> None:
        """As often as the provider likes: it is ruled on once."""
        attempt_id = draw.draw(st.sampled_from(sorted(self.refused)))
        contested = Contested(attempt_id, CUSTOMER, PROVIDER, False, self.refused[attempt_id], Instant(0))
        earlier, balance = self.disputes.get(attempt_id), self.money[AccountKind.PROVIDER_AVAILABLE]
        made = disputes.contest(contested, PROVIDER, balance, b"", earlier, rules=DISPUTES, now=Instant(1))
        if earlier is not None:
            assert made is DisputeRefusal.DISPUTED_ALREADY
        elif balance < 3 * contested.reward_uc:
            assert made is DisputeRefusal.DISPUTE_DEPOSIT_SHORT
        else:
            assert isinstance(made, Dispute)
            self.disputes[attempt_id] = done = final(made, *right)
            self.apply(compensations(done))
            self.paid_after_all += 0 if done.upheld else contested.reward_uc

    @precondition(lambda self: self.disputes)
    @rule(draw=st.data(), upheld=st.booleans())
    def replay_against_a_final_dispute(self, draw: st.DataObject, upheld: bool) -> None:
        done = draw.draw(st.sampled_from(list(self.disputes.values())))
        again = (
            disputes.rule(done, votes(upheld, upheld, upheld), DISPUTES, Instant(HOUR)),
            disputes.appeal(done, PROVIDER, DISPUTES, Instant(HOUR)),
            disputes.decide_appeal(done, upheld=upheld, because=""),
            disputes.finish(done, DISPUTES, Instant(9 * DAY)),
        )
        assert set(again) == {DisputeRefusal.DISPUTE_STATE}

    @precondition(lambda self: self.case is None and self.unsettled)
    @rule()
    def settle_everything(self) -> None:
        repaid_now = repaid_uc(self.unsettled, self.owed, FINDINGS)
        self.owed -= repaid_now
        self.money[AccountKind.PROVIDER_LOCKED] -= self.unsettled
        self.money[AccountKind.AUDIT_BUDGET] += repaid_now
        self.money[AccountKind.PROVIDER_AVAILABLE] += self.unsettled - repaid_now
        self.unsettled = 0
        self.paid.clear()

    @invariant()
    def nothing_is_made_or_lost(self) -> None:
        assert sum(self.money.values()) == self.brought
        assert self.money[AccountKind.PROVIDER_LOCKED] == self.unsettled
        assert min(self.money.values()) >= 0
        assert self.owed >= 0
        assert self.money[AccountKind.STAKE_ASSIGNED] <= 5000

    @invariant()
    def nobody_has_more_than_customers_paid(self) -> None:
        own = (AccountKind.PROVIDER_LOCKED, AccountKind.PROVIDER_AVAILABLE)
        paid = 10**6 - self.money[AccountKind.CUSTOMER] + self.paid_after_all
        assert sum(self.money[kind] for kind in own) <= paid
        assert self.paid_after_all <= sum(self.refused.values())

    @invariant()
    def only_passed_results_give_reputation_back(self) -> None:
        passed = self.next - len(self.refused)
        assert self.taken_points - passed * REPUTATION.repaid_points <= self.record.penalty_points <= self.taken_points
        assert reputation(self.record, REPUTATION).points <= reputation(Record(), REPUTATION).points


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_severe_finding_takes_half_of_a_stake_whatever_its_size() -> None:
    assert [slashed_uc(stake, FINDINGS) for stake in (0, 1, 2, 25_000_000)] == [0, 0, 1, 12_500_000]
