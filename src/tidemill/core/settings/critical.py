"""Settings that move money or trust: a change takes effect after a delay, or when two operators have approved it.

The pool remembers the accepted value of each. A process that is configured otherwise proposes a change and works with
the accepted value until the change is ripe. Changes that a check ties together take effect together, so that the values
in force always pass the checks. Values are compared as texts, each as its kind shows it.

Whoever starts a process may be any operator, so that counts for nothing: both who approve have accounts of their own,
and have been operators for a while.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import Event
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal
from tidemill.core.settings.checks import CHECKS
from tidemill.core.settings.definition import Definition
from tidemill.core.settings.kinds.kind import UnreadableValue
from tidemill.core.settings.tree import Settings, by_name, catalogue, value_of

DELAY = "trail.critical_delay_s"


class SettingChangeState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True)
class SettingChange:
    """Another value that somebody has configured, the first operator who approved it, and the last decision on it."""

    name: str
    value: str
    proposed_by: str
    proposed_at: Instant
    state: SettingChangeState = SettingChangeState.PENDING
    decided_by: str | None = None
    decided_at: Instant | None = None
    reason: str | None = None
    vouched_by: str | None = None


class SettingChangeRefusal(Refusal):
    NO_SUCH_CHANGE = "No change of this setting waits: `tidemill admin settings` lists those that do."
    CHANGE_DECIDED = "An operator has decided on this change already; nothing was changed."
    OWN_LOGIN_NEEDED = (
        "An approval takes two people, and this does not show which one you are: log in as an operator, or wait."
    )
    ANOTHER_OPERATOR_NEEDED = "You have approved this change already: another operator has to, or wait."


@dataclass(frozen=True)
class _OfSetting:
    name: str

    @property
    def subject(self) -> str:
        return f"setting:{self.name}"


@dataclass(frozen=True)
class SettingsRemembered(Event, kind="settings.remembered", audited=True):
    """The pool saw these critical settings for the first time, and remembers their values."""

    values: dict[str, str]


@dataclass(frozen=True)
class SettingAccepted(_OfSetting, Event, kind="settings.accepted", audited=True):
    """A critical setting has another value from now on, because it was approved or its delay is over."""

    old: str
    new: str
    because: str


@dataclass(frozen=True)
class SettingProposed(_OfSetting, Event, kind="settings.change_proposed", audited=True):
    """A process was started with another value of a critical setting. It waits."""

    old: str
    new: str
    by: str


@dataclass(frozen=True)
class SettingWithdrawn(_OfSetting, Event, kind="settings.change_withdrawn", audited=True):
    """A process was started without a change that waited."""

    new: str
    by: str


@dataclass(frozen=True)
class SettingDecided(_OfSetting, Event, kind="settings.change_decided", audited=True):
    """An operator approved the change of a critical setting as the first (`vouched`) or the second, or rejected it."""

    new: str
    state: str
    reason: str
    by: str


@dataclass(frozen=True)
class SettingsDecision:
    """The values in force, and what the pool has to remember: newly accepted values, changes to keep and to forget."""

    in_force: Mapping[str, str]
    accepted: Mapping[str, str]
    waiting: Sequence[SettingChange]
    forgotten: Sequence[str]
    events: Sequence[Event]


def decide(
    configured: Mapping[str, str],
    accepted: Mapping[str, str],
    changes: Mapping[str, SettingChange],
    *,
    by: str,
    now: Instant,
) -> SettingsDecision:
    """What a process started with these values works with. A setting that the pool does not know is accepted."""
    current = {name: accepted.get(name, value) for name, value in configured.items()}
    waiting = {
        name: _waiting(name, value, changes.get(name), by, now)
        for name, value in configured.items()
        if value != current[name]
    }
    ripe = _ripe(waiting, delay_us=_delay_us(current), now=now)
    new = {name: value for name, value in configured.items() if name not in accepted}
    changed = {name: waiting[name].value for name in ripe}
    return SettingsDecision(
        in_force=current | changed,
        accepted=new | changed,
        waiting=[change for name, change in waiting.items() if name not in ripe],
        forgotten=[name for name in changes if name not in waiting or name in ripe],
        events=[
            *_proposals(current, waiting, changes),
            *_withdrawals(waiting, changes, by),
            *(SettingAccepted(name, accepted[name], value, _why(waiting[name])) for name, value in changed.items()),
            *([SettingsRemembered(new)] if new else ()),
        ],
    )


def settle(
    change: SettingChange, *, approve: bool, reason: str, word: OperatorWord, now: Instant
) -> SettingChange | Refusal:
    """A change after an operator's decision. The first approval vouches for it, another operator's lets it in."""
    stored_reason = checked_reason(reason)
    if isinstance(stored_reason, ReasonRefusal):
        return stored_reason
    if change.state is not SettingChangeState.PENDING:
        return SettingChangeRefusal.CHANGE_DECIDED
    if approve and (refusal := _refuse_approval(change, word, now)):
        return refusal
    if approve and change.vouched_by is None:
        return replace(change, vouched_by=word.by)
    state = SettingChangeState.APPROVED if approve else SettingChangeState.REJECTED
    return replace(change, state=state, decided_by=word.by, decided_at=now, reason=stored_reason)


@cache
def critical() -> Mapping[str, Definition]:
    return {definition.name: definition for definition in catalogue() if definition.critical}


def critical_values(settings: Settings) -> dict[str, str]:
    """The critical settings as texts."""
    return {name: definition.kind.show(value_of(settings, definition)) for name, definition in critical().items()}


def allowed(settings: Settings, accepted: Mapping[str, str]) -> dict[str, str]:
    """The accepted values that this program still takes: a new version may have other settings, bounds and checks.

    Where accepted values are no longer allowed together, all that are tied to them count as never accepted. Then the
    configured values, which were checked, are in force at once: waiting with contradictory values helps nobody.
    """
    readable = {name: text for name, text in accepted.items() if name in critical() and _read(name, text) is not None}
    wrong = _contradicting(with_values(settings, readable))
    return {name: text for name, text in readable.items() if name not in wrong}


def with_values(settings: Settings, values: Mapping[str, str]) -> Settings:
    """The same settings with other values of critical ones."""
    sections: dict[str, dict[str, object]] = {}
    for name, text in values.items():
        definition = by_name()[name]
        sections.setdefault(definition.section, {})[definition.attribute] = _read(name, text)
    return replace(settings, **{name: replace(getattr(settings, name), **of) for name, of in sections.items()})


def takes_effect_at(change: SettingChange, accepted: Mapping[str, str]) -> Instant | None:
    """From when on a change is ripe by itself; None for one that was rejected."""
    if change.state is SettingChangeState.REJECTED:
        return None
    if change.state is SettingChangeState.APPROVED:
        return change.decided_at
    return Instant(change.proposed_at + _delay_us(accepted))


@cache
def ties() -> Sequence[frozenset[str]]:
    """Critical settings in groups: those that checks name together, directly or through others."""
    groups = [frozenset({name}) for name in critical()]
    for check in CHECKS:
        touched = [group for group in groups if group & set(check.names)]
        groups = [group for group in groups if group not in touched]
        if touched:
            groups.append(frozenset().union(*touched))
    return groups


def _refuse_approval(change: SettingChange, word: OperatorWord, now: Instant) -> Refusal | None:
    if not word.is_of_person:
        return SettingChangeRefusal.OWN_LOGIN_NEEDED
    return SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED if word.by == change.vouched_by else word.refuse(now)


def _contradicting(settings: Settings) -> set[str]:
    """Every critical setting that is tied to a failing check."""
    values = {name: value_of(settings, by_name()[name]) for check in CHECKS for name in check.names}
    wrong = {name for check in CHECKS if not check.is_met(*(values[n] for n in check.names)) for name in check.names}
    return {name for group in ties() if group & wrong for name in group}


def _waiting(name: str, value: str, change: SettingChange | None, by: str, now: Instant) -> SettingChange:
    """The change that waits already, or a new one if the value differs."""
    return change if change is not None and change.value == value else SettingChange(name, value, by, now)


def _ripe(waiting: Mapping[str, SettingChange], *, delay_us: int, now: Instant) -> list[str]:
    """The changes whose time has come, together with everything that they are tied to."""
    late = {name for name, change in waiting.items() if not _is_ripe(change, delay_us, now)}
    blocked = {name for group in ties() if group & late for name in group}
    return [name for name in waiting if name not in blocked]


def _is_ripe(change: SettingChange, delay_us: int, now: Instant) -> bool:
    waited = change.state is SettingChangeState.PENDING and now - change.proposed_at >= delay_us
    return waited or change.state is SettingChangeState.APPROVED


def _delay_us(accepted: Mapping[str, str]) -> int:
    """The accepted delay, never one that is only proposed."""
    value = _read(DELAY, accepted[DELAY])
    assert isinstance(value, float)
    return int(value * SECOND)


def _proposals(
    current: Mapping[str, str], waiting: Mapping[str, SettingChange], changes: Mapping[str, SettingChange]
) -> Iterable[Event]:
    new = (change for name, change in waiting.items() if changes.get(name) != change)
    return (SettingProposed(change.name, current[change.name], change.value, change.proposed_by) for change in new)


def _withdrawals(
    waiting: Mapping[str, SettingChange], changes: Mapping[str, SettingChange], by: str
) -> Iterable[Event]:
    withdrawn = (
        change for name, change in changes.items() if name not in waiting or waiting[name].value != change.value
    )
    return (SettingWithdrawn(change.name, change.value, by) for change in withdrawn)


def _why(change: SettingChange) -> str:
    is_approved = change.state is SettingChangeState.APPROVED
    return f"approved by {change.vouched_by} and {change.decided_by}" if is_approved else "delay over"


def _read(name: str, text: str) -> object | None:
    definition = by_name()[name]
    value = definition.kind.read(text)
    return None if isinstance(value, UnreadableValue) or not definition.within_bounds(value) else value
