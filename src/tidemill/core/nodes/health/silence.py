"""Whether a node is online: its silence counts only while we were listening.

The pool keeps one number for all its processes: how long it has been able to hear its nodes. Each node remembers that
number from when it was last heard, and is offline when the difference is too large. While no process runs, or the
database is away, the number does not grow, so our own outage blames nobody. When many nodes should be heard and none
is, the pool itself is deaf: the number does not grow either, until one is heard again.

Whoever gave work to a lost node decides what becomes of it: the event `node.offline` is the effect that they follow.
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
    """How long we have listened; the last tick and the first without a gap before it; since when we hear no node."""

    listened_us: int
    at: Instant | None = None
    since: Instant | None = None
    deaf_since: Instant | None = None


@dataclass(frozen=True)
class NodesToHear:
    """How many nodes should be heard, and when any last was: by any process, from any node that is not offline."""

    nodes: int
    owners: int
    heard_at: Instant | None


def listen(before: ListeningState, ears: NodesToHear, rules: HealthRules, now: Instant) -> ListeningState:
    """The pool's listening after a tick. After a gap of more than two periods we were away, and nothing is added."""
    passed_us = -1 if before.at is None else now - before.at
    unbroken = 0 <= passed_us <= 2 * rules.tick_us
    since = before.since if unbroken and before.since is not None else now
    if _hears_nobody(ears, rules, now):
        # After our own outage no node has called yet. That is no news before we have waited as long ourselves.
        waited = now - since > _DEAF_BEATS * rules.beat_us
        return ListeningState(before.listened_us, now, since, before.deaf_since or (now if waited else None))
    return ListeningState(before.listened_us + (passed_us if unbroken else 0), now, since)


def silent_below_us(listening: ListeningState, rules: HealthRules) -> int:
    """A node last heard when we had listened for less than this is offline."""
    return listening.listened_us - rules.offline_after_us


def fell_deaf(before: ListeningState, after: ListeningState) -> bool:
    return before.deaf_since is None and after.deaf_since is not None


def hears_again(before: ListeningState, after: ListeningState) -> bool:
    return before.deaf_since is not None and after.deaf_since is None


def _hears_nobody(ears: NodesToHear, rules: HealthRules, now: Instant) -> bool:
    many = ears.owners >= DEAF_OWNERS or ears.nodes >= DEAF_NODES
    return many and (ears.heard_at is None or now - ears.heard_at > _DEAF_BEATS * rules.beat_us)
