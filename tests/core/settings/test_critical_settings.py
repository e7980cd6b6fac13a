"""Critical settings: no change takes effect before its time, alone, or by one person's word."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.accounts.operator_word import OperatorWord, OperatorWordRefusal
from tidemill.core.accounts.roles import name_of_account
from tidemill.core.clock import DAY, HOUR, Instant
from tidemill.core.events.log import Event
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.settings import Settings, SettingScope, build, catalogue
from tidemill.core.settings.checks import CHECKS
from tidemill.core.settings.critical import (
    DELAY,
    SettingAccepted,
    SettingChange,
    SettingChangeRefusal,
    SettingChangeState,
    SettingProposed,
    SettingsDecision,
    SettingsRemembered,
    SettingWithdrawn,
    allowed,
    critical,
    critical_values,
    decide,
    settle,
    takes_effect_at,
    ties,
    with_values,
)

NOW = Instant(1_800_000_000_000_000)
DEFAULTS = critical_values(Settings(home=Path("/srv/tidemill")))
COMMISSION, BURN, FUND = "money.commission", "money.burn", "bonus_fund.commission"


def started(
    wanted: dict[str, str], *changes: SettingChange, accepted: dict[str, str] | None = None, now: Instant = NOW
) -> SettingsDecision:
    known = DEFAULTS if accepted is None else accepted
    return decide(DEFAULTS | wanted, known, {one.name: one for one in changes}, by="ann", now=now)


def told(decision: SettingsDecision) -> list[type[Event]]:
    return [type(event) for event in decision.events]


ANN, BOB = name_of_account(UUID(int=1)), name_of_account(UUID(int=2))


def word(by: str, since: int = 0) -> OperatorWord:
    return OperatorWord(by, Instant(since), DAY)


def approved_by_two(change: SettingChange) -> SettingChange:
    for by in (ANN, BOB):
        settled = settle(change, approve=True, reason="agreed", word=word(by), now=NOW)
        assert isinstance(settled, SettingChange)
        change = settled
    return change


def pending(name: str = COMMISSION, value: str = "12%", *, ago: int = HOUR) -> SettingChange:
    return SettingChange(name, value, "ann", Instant(NOW - ago))


def test_the_first_start_accepts_what_is_configured() -> None:
    decision = started({COMMISSION: "12%"}, accepted={})
    assert decision.in_force == decision.accepted == DEFAULTS | {COMMISSION: "12%"}
    assert (decision.waiting, told(decision)) == ([], [SettingsRemembered])


def test_a_setting_that_a_new_version_made_critical_is_accepted_and_the_others_are_not() -> None:
    known = {name: value for name, value in DEFAULTS.items() if name != BURN}
    decision = started({COMMISSION: "12%", BURN: "5%"}, accepted=known)
    assert decision.accepted == {BURN: "5%"}
    assert decision.in_force[COMMISSION] == "10%"


def test_nothing_happens_when_nothing_has_changed() -> None:
    decision = started({})
    assert decision == SettingsDecision(DEFAULTS, {}, [], [], [])


def test_another_value_waits_and_the_accepted_one_stays_in_force() -> None:
    decision = started({COMMISSION: "12%"})
    assert decision.in_force == DEFAULTS
    assert decision.waiting == [SettingChange(COMMISSION, "12%", "ann", NOW)]
    assert decision.events == [SettingProposed(COMMISSION, "10%", "12%", "ann")]


def test_starting_again_does_not_begin_the_delay_anew() -> None:
    decision = started({COMMISSION: "12%"}, pending())
    assert (decision.waiting, decision.events) == ([pending()], [])


@pytest.mark.parametrize(("ago", "ripe"), [(DAY - 1, False), (DAY, True), (-HOUR, False)])
def test_a_change_takes_effect_when_its_delay_is_over(ago: int, ripe: bool) -> None:
    decision = started({COMMISSION: "12%"}, pending(ago=ago))
    assert decision.in_force[COMMISSION] == ("12%" if ripe else "10%")
    assert decision.accepted == ({COMMISSION: "12%"} if ripe else {})
    assert decision.forgotten == ([COMMISSION] if ripe else [])
    assert told(decision) == ([SettingAccepted] if ripe else [])


def test_a_change_that_is_no_longer_configured_is_withdrawn_however_ripe_it_was() -> None:
    decision = started({}, pending(ago=2 * DAY))
    assert (decision.in_force, decision.forgotten) == (DEFAULTS, [COMMISSION])
    assert decision.events == [SettingWithdrawn(COMMISSION, "12%", "ann")]


def test_another_value_begins_its_own_delay_and_needs_its_own_approval() -> None:
    approved = replace(
        pending(ago=2 * DAY), state=SettingChangeState.APPROVED, decided_by="bob", decided_at=NOW, reason="x"
    )
    for old in (pending(ago=2 * DAY), approved):
        decision = started({COMMISSION: "50%"}, old)
        assert decision.in_force == DEFAULTS
        assert decision.waiting == [SettingChange(COMMISSION, "50%", "ann", NOW)]
        assert told(decision) == [SettingProposed, SettingWithdrawn]


def test_a_shorter_delay_waits_for_the_delay_that_is_in_force() -> None:
    decision = started({DELAY: "0s", COMMISSION: "12%"}, pending(DELAY, "0s"), pending())
    assert decision.in_force == DEFAULTS
    later = started({DELAY: "0s", COMMISSION: "12%"}, pending(DELAY, "0s", ago=DAY), pending(ago=HOUR))
    assert (later.in_force[DELAY], later.in_force[COMMISSION]) == ("0s", "10%"), "it rules from the next start on"


def test_an_approved_change_takes_effect_at_once_and_a_rejected_one_never() -> None:
    approved = approved_by_two(pending())
    assert started({COMMISSION: "12%"}, approved).in_force[COMMISSION] == "12%"
    rejected = settle(pending(), approve=False, reason="too much", word=word("bob"), now=NOW)
    assert isinstance(rejected, SettingChange)
    for days in (0, 1, 1000):
        decision = started({COMMISSION: "12%"}, rejected, now=Instant(NOW + days * DAY))
        assert (decision.in_force, decision.waiting) == (DEFAULTS, [rejected])
    assert takes_effect_at(rejected, DEFAULTS) is None
    assert takes_effect_at(approved, DEFAULTS) == NOW
    assert takes_effect_at(pending(), DEFAULTS) == NOW - HOUR + DAY


def test_two_people_with_accounts_approve_and_everybody_says_why() -> None:
    vouched = settle(pending(), approve=True, reason="agreed", word=word(ANN), now=NOW)
    assert vouched == replace(pending(), vouched_by=ANN)
    assert started({COMMISSION: "12%"}, vouched).in_force == DEFAULTS
    alone = settle(vouched, approve=True, reason="me", word=word(ANN), now=NOW)
    assert alone is SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED
    assert settle(vouched, approve=True, reason=" ", word=word(BOB), now=NOW) is ReasonRefusal.REASON_MISSING
    taken_back = settle(vouched, approve=False, reason="a mistake", word=word("ann"), now=NOW)
    assert isinstance(taken_back, SettingChange)
    assert settle(taken_back, approve=True, reason="no", word=word(BOB), now=NOW) is SettingChangeRefusal.CHANGE_DECIDED


@pytest.mark.parametrize("nobody", ["operator", "root", "ann", "another user of the machine"])
def test_whoever_has_the_machine_counts_neither_as_the_first_nor_as_the_second(nobody: str) -> None:
    for change in (pending(), replace(pending(), vouched_by=ANN)):
        refused = settle(change, approve=True, reason="me", word=word(nobody), now=NOW)
        assert refused is SettingChangeRefusal.OWN_LOGIN_NEEDED


def test_the_word_of_a_new_operator_does_not_count_at_once() -> None:
    """An operator gave the role to a second account of their own, and approved with that, too."""
    for change in (pending(), replace(pending(), vouched_by=ANN)):
        refused = settle(change, approve=True, reason="me, too", word=word(BOB, NOW - HOUR), now=NOW)
        assert refused is OperatorWordRefusal.OPERATOR_TOO_NEW
        assert isinstance(settle(change, approve=True, reason="me", word=word(BOB, NOW - DAY), now=NOW), SettingChange)


def test_a_pool_with_one_operator_waits_for_the_delay() -> None:
    vouched = replace(pending(ago=DAY), vouched_by=ANN)
    assert started({COMMISSION: "12%"}, vouched).in_force[COMMISSION] == "12%"


def test_changes_that_a_check_ties_together_take_effect_together() -> None:
    wanted = {BURN: "90%", FUND: "5%", COMMISSION: "12%"}
    approved = approved_by_two(pending(BURN, "90%"))
    decision = started(wanted, approved, pending(FUND, "5%"), pending(ago=DAY))
    assert decision.in_force == DEFAULTS | {COMMISSION: "12%"}, "what is not tied to them need not wait for them"
    both = approved_by_two(pending(FUND, "5%"))
    decision = started(wanted, approved, both, pending())
    assert decision.in_force == DEFAULTS | {BURN: "90%", FUND: "5%"}


def test_a_check_speaks_of_critical_settings_only_or_of_none() -> None:
    """Else a change that waits could contradict one that does not, and nothing would start."""
    for check in CHECKS:
        assert len({name in critical() for name in check.names}) == 1, check.sentence
    assert sorted(name for group in ties() for name in group) == sorted(critical())
    assert {BURN, FUND} in ties()


def test_what_moves_money_or_trust_is_critical_and_belongs_to_the_pool() -> None:
    assert {COMMISSION, BURN, FUND, DELAY} <= critical().keys()
    assert "money.self_trade_loss" in critical()
    assert all(one.scope is SettingScope.POOL for one in critical().values())
    assert len(critical()) < len(catalogue()) / 4, "who must wait for everything learns to get around it"


@given(
    wanted=st.dictionaries(st.sampled_from([COMMISSION, BURN, FUND]), st.sampled_from(["12%", "8%"]), max_size=3),
    ago=st.integers(0, 3 * DAY),
)
def test_what_is_in_force_is_accepted_or_ripe(wanted: dict[str, str], ago: int) -> None:
    decision = started(wanted, *(pending(name, value, ago=ago) for name, value in wanted.items()))
    for name, value in decision.in_force.items():
        assert value == DEFAULTS[name] or (value == wanted[name] and ago >= DAY)
    assert {change.name for change in decision.waiting} == {
        name for name, value in wanted.items() if decision.in_force[name] != value
    }


def test_every_critical_value_survives_being_remembered() -> None:
    toml = {
        "money": {"commission": "12.5%"},
        "trail": {"critical_delay_s": "2d"},
    }
    settings = build(toml=toml, toml_name="f", environment={}, home=Path("/srv")).settings
    assert with_values(Settings(home=Path("/srv")), critical_values(settings)) == settings


def test_values_that_contradict_each_other_count_as_never_accepted_with_all_that_is_tied_to_them() -> None:
    settings = Settings(home=Path("/srv"))
    assert allowed(settings, {BURN: "95%", FUND: "6%", COMMISSION: "12%"}) == {COMMISSION: "12%"}
    assert allowed(settings, {BURN: "95%", COMMISSION: "12%"}) == {COMMISSION: "12%"}, "with the fund configured"
    assert allowed(settings, {BURN: "2%", COMMISSION: "12%"}) == {BURN: "2%", COMMISSION: "12%"}


def test_a_value_that_is_not_allowed_any_more_counts_as_never_accepted() -> None:
    strange = {COMMISSION: "12%", BURN: "101%", FUND: "soon", "host": "127.0.0.1", "gone.for_good": "1"}
    assert allowed(Settings(home=Path("/srv")), strange) == {COMMISSION: "12%"}
