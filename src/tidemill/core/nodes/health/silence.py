"""Whether a node is there: silence counts only as far as we were listening.

The pool keeps one number for all its processes: how long it has been able to hear its nodes. Each node remembers what
that number was when it was heard last. A node is offline when the difference is too large. While no process runs, or
the database is away, nobody ticks and nothing is added, so our own outage blames nobody. And when many should be heard
and nobody at all is, we are the deaf ones: nothing is added either, until one is heard again.

What becomes of the work of a node that is lost is decided by whoever gave the work: the event `node.offline` is the
effect that they follow.
"""

from dataclasses import dataclass

from tidemill.core.clock import Instant

DEAF_OWNERS = 2
DEAF_NODES = 5
"""When nodes of so many owners, or so many nodes, fall silent together, the fault is ours."""

_DEAF_BEATS = 3


@dataclass(frozen=True)
class HealthRules:
    """How often we tick, how often nodes beat, and how much silence is too much."""

    tick_us: int
    beat_us: int
    offline_after_us: int


@dataclass(frozen=True)
class ListeningState:
    """How long we have listened; the last tick and the first without a gap before it; since when we hear nobody."""

    listened_us: int
    at: Instant | None = None
    since: Instant | None = None
    deaf_since: Instant | None = None


@dataclass(frozen=True)
class NodesToHear:
    """What should be heard, and when something last was: by any process, from any node that is not offline."""

    nodes: int
    owners: int
    heard_at: Instant | None


def listen(before: ListeningState, ears: NodesToHear, rules: HealthRules, now: Instant) -> ListeningState:
    """The pool's listening after a tick. After a gap of more than two periods we were away, and it adds nothing."""
    passed_us = -1 if before.at is None else now - before.at
    unbroken = 0 <= passed_us <= 2 * rules.tick_us
    since = before.since if unbroken and before.since is not None else now
    if _hears_nobody(ears, rules, now):
        # After an outage of our own nobody has called yet. That is no news before we have waited as long ourselves.
        waited = now - since > _DEAF_BEATS * rules.beat_us
        return ListeningState(before.listened_us, now, since, before.deaf_since or (now if waited else None))
    return ListeningState(before.listened_us + (passed_us if unbroken else 0), now, since)


def silent_below_us(listening: ListeningState, rules: HealthRules) -> int:
    """Who was heard last when we had listened for less than this is offline."""
    return listening.listened_us - rules.offline_after_us


def fell_deaf(before: ListeningState, after: ListeningState) -> bool:
    return before.deaf_since is None and after.deaf_since is not None


def hears_again(before: ListeningState, after: ListeningState) -> bool:
    return before.deaf_since is not None and after.deaf_since is None


def _hears_nobody(ears: NodesToHear, rules: HealthRules, now: Instant) -> bool:
    many = ears.owners >= DEAF_OWNERS or ears.nodes >= DEAF_NODES
    return many and (ears.heard_at is None or now - ears.heard_at > _DEAF_BEATS * rules.beat_us)
