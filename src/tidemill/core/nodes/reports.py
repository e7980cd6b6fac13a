"""What becomes of a node's reports about itself. Every one is a claim: bounded, checked, taken or refused with figures.

Of each kind only the last of a batch counts, since each tells the whole. What cannot be read is refused and told, and
changes nothing; it never stands in the way of what comes after it, nor of other nodes. A node can make only so many
events by itself: what it changes beyond that is taken all the same, and not told.
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
"""A node makes so many events at once, and one more each time such a while has passed."""

_SMALL_BYTES_MAX = 4096
_KNOWN = (MACHINE, RULES, CLOCK, LEAVE, SANDBOX)


@dataclass(frozen=True)
class Fact:
    """A report of a kind, as it arrived. Kinds that nobody here knows are handed on."""

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
    """What the pool has of a node, as it is stored."""

    account_id: UUID
    node_id: UUID
    machine: Mapping[str, Any] | None
    rules: RuleBook
    utc_offset_s: int
    past_until: Instant | None = None
    abilities: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ReportEffects:
    """What is to be done. None where nothing changes; `disagrees` says that the node must be told the rules again."""

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
class _Clock:
    utc_offset_s: Annotated[int, Whole(-OFFSET_MAX_S, OFFSET_MAX_S)]


@dataclass(frozen=True)
class _Leave:
    reason: Annotated[str, Text(300)] = ""


def fresh_reports(received: int, first: int, said: Sequence[One]) -> Sequence[One] | None:
    """What of a batch is new, after so many were received. None if reports are missing before it."""
    return None if first > received + 1 else said[received + 1 - first :]


def weigh_reports(known: StoredNode, said: Sequence[NodeReport], now: Instant) -> ReportEffects:
    """Everything that follows from a node's fresh reports."""
    last = {fact.kind: fact.body for fact in said if isinstance(fact, Fact)}
    machine, machine_events = _machine(known, last[MACHINE]) if MACHINE in last else (None, ())
    rules, disagrees, rules_events = _rules(known, last[RULES]) if RULES in last else (None, False, ())
    offset_s, clock_events = _offset(known, last[CLOCK]) if CLOCK in last else (None, ())
    carries, sandbox_events = _carries(known, last[SANDBOX]) if SANDBOX in last else (None, ())
    return ReportEffects(
        machine=machine,
        abilities=carries,
        rules=rules,
        disagrees=disagrees,
        utc_offset_s=offset_s,
        leaves=_reason(last[LEAVE]) if LEAVE in last else None,
        beats=tuple(spaced((one for one in said if isinstance(one, PastBeat)), known.past_until, now)),
        events=(*machine_events, *rules_events, *clock_events, *sandbox_events, *_dropped(known, said)),
        others=tuple(fact for fact in said if isinstance(fact, Fact) and fact.kind not in _KNOWN),
        attempt_reports=tuple(one for one in said if isinstance(one, AttemptReport)),
    )


def events_allowed(events: int, told_until: Instant | None, now: Instant) -> tuple[int, Instant]:
    """How many of so many events a node may still make, and until when its share is used up then."""
    used_until = max(told_until or now, now)
    room = max(0, EVENTS_SAVED - -(-(used_until - now) // EVENT_EVERY_US))
    told = min(events, room)
    return told, Instant(used_until + told * EVENT_EVERY_US)


def _machine(known: StoredNode, body: bytes) -> tuple[Machine | None, tuple[Event, ...]]:
    if _says_the_same(body, known.machine):
        return None, ()
    machine = machine_of(body)
    objections = (machine,) if isinstance(machine, HardwareObjection) else hardware.objections(machine)
    if objections or isinstance(machine, HardwareObjection):
        return None, (_refused(known, MACHINE, objections[0].refusal.code, objections[0].sentence),)
    stored, before = json.loads(facts_of(machine)), known.machine or {}
    changed = tuple(sorted(name for name in {*stored, *before} if stored.get(name) != before.get(name)))
    # What a network carries is measured again and again, and is never twice the same.
    telling = tuple(name for name in changed if name != "network")
    names = tuple(device.name for device in machine.devices)
    event = NodeHardwareChanged(known.account_id, known.node_id, telling, names)
    return (machine if changed else None), ((event,) if telling else ())


def _says_the_same(body: bytes, machine: Mapping[str, Any] | None) -> bool:
    """Whether a body is what was already taken: most are, and need not be looked at closely again."""
    try:
        return machine is not None and json.loads(body) == machine
    except (ValueError, RecursionError):
        return False


def _rules(known: StoredNode, body: bytes) -> tuple[RuleBook | None, bool, tuple[Event, ...]]:
    said = rule_book.from_json(body)
    if isinstance(said, RuleBook) and rule_book.leaps(known.rules, said):
        said = RulesRefusal.RULE_DATED_AHEAD
    if not isinstance(said, RuleBook):
        return None, False, (_refused(known, RULES, said.code, said.sentence),)
    merged = rule_book.merge(known.rules, said)
    disagrees = merged != said
    if merged == known.rules:
        return None, disagrees, ()
    names = [name for name, entry in merged.entries.items() if known.rules.entries.get(name) != entry]
    newest = max((merged.entries[name] for name in names), key=lambda entry: entry.at)
    shown = rule_book.book_json(merged)
    values = {name: shown[name]["value"] for name in names}
    return merged, disagrees, (NodeRulesChanged(known.account_id, known.node_id, values, RuleOrigin.NODE, newest.by),)


def _offset(known: StoredNode, body: bytes) -> tuple[int | None, tuple[Event, ...]]:
    clock = read_json(_Clock, body, _SMALL_BYTES_MAX)
    if isinstance(clock, Malformed):
        return None, (_refused(known, CLOCK, "clock_malformed", clock.sentence),)
    return (None if clock.utc_offset_s == known.utc_offset_s else clock.utc_offset_s), ()


def _carries(known: StoredNode, body: bytes) -> tuple[NodeAbilities | None, tuple[Event, ...]]:
    if _says_the_same(body, known.abilities):
        return None, ()
    carries = abilities_of(body)
    if isinstance(carries, Malformed):
        return None, (_refused(known, SANDBOX, "sandbox_malformed", carries.sentence),)
    return carries, ()


def _reason(body: bytes) -> str:
    """Why a node leaves. It leaves also when it cannot say why."""
    leave = read_json(_Leave, body, _SMALL_BYTES_MAX)
    return "" if isinstance(leave, Malformed) else leave.reason


def _dropped(known: StoredNode, said: Sequence[NodeReport]) -> tuple[Event, ...]:
    damaged = [one.damaged for one in said if isinstance(one, DroppedReport)]
    if not damaged:
        return ()
    return (NodeReportsDropped(known.account_id, known.node_id, damaged.count(False), damaged.count(True)),)


def _refused(known: StoredNode, about: str, code: str, sentence: str) -> NodeFactsRefused:
    return NodeFactsRefused(known.account_id, known.node_id, about, code, sentence)
