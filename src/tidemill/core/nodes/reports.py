"""The effects of a node's reports about itself. Each is a claim: bounded, checked, accepted or refused with figures.

Of each kind only the last of a batch counts, since each is complete. An unreadable report is refused with an event and
changes nothing; it never blocks the reports after it, or other nodes. A node can cause only so many events by itself:
changes beyond that are accepted without an event.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar
from uuid import UUID

from tidemill.core.bounded_json import Malformed, Text, Whole, read_json
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import Event
from tidemill.core.jobs.attempt_reports import AttemptReport
from tidemill.core.nodes.events import NodeRulesChanged
from tidemill.core.nodes.health.events import NodeFactsRefused, NodeHardwareChanged, NodeReportsDropped
from tidemill.core.nodes.health.telemetry import PastBeat, spaced
from tidemill.core.nodes.machine import hardware
from tidemill.core.nodes.machine.abilities import SANDBOX, NodeAbilities, abilities_of
from tidemill.core.nodes.machine.hardware import HardwareObjection, Machine, facts_of, machine_of
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin, RulesRefusal
from tidemill.core.nodes.rules.windows import OFFSET_MAX_S

MACHINE, RULES, CLOCK, LEAVE, CHALLENGE = "machine", "rules", "clock", "leave", "challenge"

EVENT_EVERY_US = 30 * SECOND
EVENTS_SAVED = 20
"""How many events a node may cause at once; one more is allowed each time the interval below has passed."""

_SMALL_BYTES_MAX = 4096
_KNOWN = (MACHINE, RULES, CLOCK, LEAVE, SANDBOX)


@dataclass(frozen=True)
class Fact:
    """A report of a kind, as it arrived. Kinds that are unknown here are passed on."""

    kind: str
    body: bytes


@dataclass(frozen=True)
class DroppedReport:
    """One report that the agent could not keep."""

    damaged: bool


NodeReport: TypeAlias = Fact | PastBeat | DroppedReport | AttemptReport
One = TypeVar("One")


@dataclass(frozen=True)
class StoredNode:
    """The stored state of a node."""

    account_id: UUID
    node_id: UUID
    machine: Mapping[str, Any] | None
    rules: RuleBook
    utc_offset_s: int
    past_until: Instant | None = None
    abilities: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ReportEffects:
    """What to do. None where nothing changes; `disagrees` says that the node must be sent the rules again."""

    machine: Machine | None = None
    abilities: NodeAbilities | None = None
    rules: RuleBook | None = None
    disagrees: bool = False
    utc_offset_s: int | None = None
    leaves: str | None = None
    beats: tuple[PastBeat, ...] = ()
    events: tuple[Event, ...] = ()
    others: tuple[Fact, ...] = ()
    attempt_reports: tuple[AttemptReport, ...] = ()


@dataclass(frozen=True)
class ClockFacts:
    """The node's clock: the body of the kind `clock`."""

    utc_offset_s: Annotated[int, Whole(-OFFSET_MAX_S, OFFSET_MAX_S)]


@dataclass(frozen=True)
class LeaveFacts:
    """Why it leaves: the body of the kind `leave`."""

    reason: Annotated[str, Text(300)] = ""


def fresh_reports(received: int, first: int, batch: Sequence[One]) -> Sequence[One] | None:
    """The new reports of a batch, after so many were received. None if reports before it are missing."""
    return None if first > received + 1 else batch[received + 1 - first :]


def weigh_reports(stored: StoredNode, reports: Sequence[NodeReport], now: Instant) -> ReportEffects:
    """Everything that follows from a node's fresh reports."""
    last_bodies = {fact.kind: fact.body for fact in reports if isinstance(fact, Fact)}
    machine, machine_events = _machine(stored, last_bodies[MACHINE]) if MACHINE in last_bodies else (None, ())
    rules, disagrees, rules_events = _rules(stored, last_bodies[RULES]) if RULES in last_bodies else (None, False, ())
    offset_s, clock_events = _offset(stored, last_bodies[CLOCK]) if CLOCK in last_bodies else (None, ())
    carries, sandbox_events = _carries(stored, last_bodies[SANDBOX]) if SANDBOX in last_bodies else (None, ())
    return ReportEffects(
        machine=machine,
        abilities=carries,
        rules=rules,
        disagrees=disagrees,
        utc_offset_s=offset_s,
        leaves=_reason(last_bodies[LEAVE]) if LEAVE in last_bodies else None,
        beats=tuple(spaced((report for report in reports if isinstance(report, PastBeat)), stored.past_until, now)),
        events=(*machine_events, *rules_events, *clock_events, *sandbox_events, *_dropped(stored, reports)),
        others=tuple(fact for fact in reports if isinstance(fact, Fact) and fact.kind not in _KNOWN),
        attempt_reports=tuple(report for report in reports if isinstance(report, AttemptReport)),
    )


def events_allowed(events: int, told_until: Instant | None, now: Instant) -> tuple[int, Instant]:
    """How many of so many events a node may still cause, and until when its share is then used up."""
    used_until = max(told_until or now, now)
    room = max(0, EVENTS_SAVED - -(-(used_until - now) // EVENT_EVERY_US))
    allowed = min(events, room)
    return allowed, Instant(used_until + allowed * EVENT_EVERY_US)


def _machine(stored: StoredNode, body: bytes) -> tuple[Machine | None, tuple[Event, ...]]:
    if _says_the_same(body, stored.machine):
        return None, ()
    machine = machine_of(body)
    objections = (machine,) if isinstance(machine, HardwareObjection) else hardware.objections(machine)
    if objections or isinstance(machine, HardwareObjection):
        return None, (_refused(stored, MACHINE, objections[0].refusal.code, objections[0].sentence),)
    claimed, earlier = json.loads(facts_of(machine)), stored.machine or {}
    changed = tuple(sorted(name for name in {*claimed, *earlier} if claimed.get(name) != earlier.get(name)))
    # A network's rate is measured again and again, and always differs.
    telling = tuple(name for name in changed if name != "network")
    names = tuple(device.name for device in machine.devices)
    event = NodeHardwareChanged(stored.account_id, stored.node_id, telling, names)
    return (machine if changed else None), ((event,) if telling else ())


def _says_the_same(body: bytes, machine: Mapping[str, Any] | None) -> bool:
    """Whether a body is the one already accepted: most are, and need no closer look."""
    try:
        return machine is not None and json.loads(body) == machine
    except (ValueError, RecursionError):
        return False


def _rules(stored: StoredNode, body: bytes) -> tuple[RuleBook | None, bool, tuple[Event, ...]]:
    reported = rule_book.from_json(body)
    if isinstance(reported, RuleBook) and rule_book.leaps(stored.rules, reported):
        reported = RulesRefusal.RULE_DATED_AHEAD
    if not isinstance(reported, RuleBook):
        return None, False, (_refused(stored, RULES, reported.code, reported.sentence),)
    merged = rule_book.merge(stored.rules, reported)
    disagrees = merged != reported
    if merged == stored.rules:
        return None, disagrees, ()
    names = [name for name, entry in merged.entries.items() if stored.rules.entries.get(name) != entry]
    newest = max((merged.entries[name] for name in names), key=lambda entry: entry.at)
    as_json = rule_book.book_json(merged)
    values = {name: as_json[name]["value"] for name in names}
    return merged, disagrees, (NodeRulesChanged(stored.account_id, stored.node_id, values, RuleOrigin.NODE, newest.by),)


def _offset(stored: StoredNode, body: bytes) -> tuple[int | None, tuple[Event, ...]]:
    clock = read_json(ClockFacts, body, _SMALL_BYTES_MAX)
    if isinstance(clock, Malformed):
        return None, (_refused(stored, CLOCK, "clock_malformed", clock.sentence),)
    return (None if clock.utc_offset_s == stored.utc_offset_s else clock.utc_offset_s), ()


def _carries(stored: StoredNode, body: bytes) -> tuple[NodeAbilities | None, tuple[Event, ...]]:
    if _says_the_same(body, stored.abilities):
        return None, ()
    abilities = abilities_of(body)
    if isinstance(abilities, Malformed):
        return None, (_refused(stored, SANDBOX, "sandbox_malformed", abilities.sentence),)
    return abilities, ()


def _reason(body: bytes) -> str:
    """Why a node leaves. It leaves even if the reason cannot be read."""
    leave = read_json(LeaveFacts, body, _SMALL_BYTES_MAX)
    return "" if isinstance(leave, Malformed) else leave.reason


def _dropped(stored: StoredNode, reports: Sequence[NodeReport]) -> tuple[Event, ...]:
    damaged = [report.damaged for report in reports if isinstance(report, DroppedReport)]
    if not damaged:
        return ()
    return (NodeReportsDropped(stored.account_id, stored.node_id, damaged.count(False), damaged.count(True)),)


def _refused(stored: StoredNode, about: str, code: str, sentence: str) -> NodeFactsRefused:
    return NodeFactsRefused(stored.account_id, stored.node_id, about, code, sentence)
