"""The owner's rules: at which price, when, and up to which heat and power a node works; and whether it may work now.

An owner's limit can only be stricter than the pool's. A crossed limit holds until the reading has clearly come down, so
that a node does not start and stop every second. A missing reading never counts as good: a machine whose use is unknown
is not idle, and a hot one whose sensor is silent stays hot.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.no_work_reasons import NoWorkCause, NoWorkReason
from tidemill.core.nodes.rules import windows
from tidemill.core.nodes.rules.windows import Window

UNSEEN_US = 120 * SECOND
"""After such a gap between two readings nobody knows what the machine did: idle time counts from now on."""

_POWER_RESUME = 0.9


class WorkMode(StrEnum):
    """What the owner wants of the node: work, finish what it has and no more, or stop at once."""

    RUN = "run"
    DRAIN = "drain"
    PAUSE = "pause"


@dataclass(frozen=True)
class IdleRule:
    """The machine counts as idle when others' processes have used less than this of every device for so long."""

    below_pct: int
    for_s: int


@dataclass(frozen=True)
class NodeRules:
    """An owner's settings. None and the empty tuple mean that there is no such rule."""

    price_uc: int | None = None
    minimum_price_uc: int | None = None
    windows: tuple[Window, ...] = ()
    only_when_idle: IdleRule | None = None
    power_limit_w: int | None = None
    temperature_limit_c: int | None = None
    labels: tuple[str, ...] = ()
    region: str | None = None
    work: WorkMode = WorkMode.RUN

    @property
    def asked_uc(self) -> int | None:
        """The price of a device-hour. It is never below the minimum, not even by the owner's own price."""
        prices = [price for price in (self.price_uc, self.minimum_price_uc) if price is not None]
        return max(prices, default=None)


@dataclass(frozen=True)
class HeatLimits:
    """Above the first a node pauses, and at the second it resumes."""

    pause_above_c: float
    resume_at_c: float


@dataclass(frozen=True)
class MachineReading:
    """The machine at this moment: its hottest device, its hungriest, and how much others use the busiest."""

    temperature_c: float | None
    power_w: float | None
    others_pct: float | None


@dataclass(frozen=True)
class Senses:
    """The state derived from readings, each weighed with the state before."""

    reading: MachineReading
    hot: bool
    hungry: bool
    idle_since: Instant | None
    seen_at: Instant


def heat_limits(rules: NodeRules, pool: HeatLimits) -> HeatLimits:
    """The stricter of the owner's limit and the pool's, with the pool's distance between pausing and resuming."""
    if rules.temperature_limit_c is None or rules.temperature_limit_c >= pool.pause_above_c:
        return pool
    gap_c = pool.pause_above_c - pool.resume_at_c
    return HeatLimits(rules.temperature_limit_c, rules.temperature_limit_c - gap_c)


def sense(before: Senses | None, reading: MachineReading, rules: NodeRules, pool: HeatLimits, now: Instant) -> Senses:
    """Weigh a new reading."""
    limits = heat_limits(rules, pool)
    return Senses(
        reading=reading,
        hot=_is_over(
            before is not None and before.hot, reading.temperature_c, limits.pause_above_c, limits.resume_at_c
        ),
        hungry=rules.power_limit_w is not None
        and _is_over(
            before is not None and before.hungry,
            reading.power_w,
            rules.power_limit_w,
            rules.power_limit_w * _POWER_RESUME,
        ),
        idle_since=_idle_since(before, reading, rules, now),
        seen_at=now,
    )


def objections(
    rules: NodeRules, senses: Senses | None, pool: HeatLimits, now: Instant, utc_offset_s: int
) -> Iterator[NoWorkReason]:
    """Every rule that forbids working now, in the order of `NoWorkCause`."""
    if senses and senses.hot:
        yield _too_hot(senses.reading, heat_limits(rules, pool))
    if senses and senses.hungry and rules.power_limit_w is not None:
        yield _too_much_power(senses.reading, rules.power_limit_w)
    if rules.work is WorkMode.PAUSE:
        yield NoWorkReason(NoWorkCause.PAUSED, "Its owner has paused this node: resume it when it may work again.")
    if rules.work is WorkMode.DRAIN:
        yield NoWorkReason(
            NoWorkCause.DRAINING, "This node finishes what it has and takes no new work: resume it to change that."
        )
    if not windows.is_open(rules.windows, now, utc_offset_s):
        yield _outside(rules, now, utc_offset_s)
    if senses and rules.only_when_idle and not _is_idle(rules.only_when_idle, senses, now):
        yield _not_idle(rules.only_when_idle, senses, now)


def _is_over(before: bool, value: float | None, above: float, at_most: float) -> bool:
    """Whether a limit is crossed: once the value is above one bound, until it is at most the other."""
    if value is None:
        return before
    return value > above or (before and value > at_most)


def _idle_since(before: Senses | None, reading: MachineReading, rules: NodeRules, now: Instant) -> Instant | None:
    """Since when nobody else uses the machine. Unseen time, and a clock that went back, do not count."""
    rule = rules.only_when_idle
    if rule is None or reading.others_pct is None or reading.others_pct >= rule.below_pct:
        return None
    if before is None or before.idle_since is None or not 0 <= now - before.seen_at <= UNSEEN_US:
        return now
    return min(before.idle_since, now)


def _is_idle(rule: IdleRule, senses: Senses, now: Instant) -> bool:
    return senses.idle_since is not None and now - senses.idle_since >= rule.for_s * SECOND


def _too_hot(reading: MachineReading, limits: HeatLimits) -> NoWorkReason:
    is_now = "does not say" if reading.temperature_c is None else f"is {reading.temperature_c:g} °C"
    return NoWorkReason(
        NoWorkCause.TOO_HOT,
        f"The hottest device {is_now}; work goes on at {limits.resume_at_c:g} °C, after it was above "
        f"{limits.pause_above_c:g} °C. Look at its fans and the air around it.",
    )


def _too_much_power(reading: MachineReading, limit_w: int) -> NoWorkReason:
    is_now = "does not say" if reading.power_w is None else f"draws {reading.power_w:g} W"
    return NoWorkReason(
        NoWorkCause.TOO_MUCH_POWER,
        f"A device {is_now}; work goes on at {limit_w * _POWER_RESUME:g} W, after it was above your limit of "
        f"{limit_w} W.",
    )


def _outside(rules: NodeRules, now: Instant, utc_offset_s: int) -> NoWorkReason:
    opens = windows.opens_at(rules.windows, now, utc_offset_s)
    then = "" if opens is None else f", next on {windows.spoken_time(opens, utc_offset_s)}"
    spoken = windows.spoken_windows(rules.windows)
    return NoWorkReason(
        NoWorkCause.OUTSIDE_WINDOW, f"This node works only {spoken}, by its own clock{then}.", until=opens
    )


def _not_idle(rule: IdleRule, senses: Senses, now: Instant) -> NoWorkReason:
    rule_text = f"it works only when others have used less than {rule.below_pct} % of it for {rule.for_s} s"
    others_pct = senses.reading.others_pct
    if others_pct is None:
        return NoWorkReason(NoWorkCause.NOT_IDLE, f"Whether others use this machine cannot be told, and {rule_text}.")
    if senses.idle_since is None:
        return NoWorkReason(NoWorkCause.NOT_IDLE, f"Others use {others_pct:g} % of this machine, and {rule_text}.")
    until = Instant(senses.idle_since + rule.for_s * SECOND)
    still_s = min(rule.for_s, max(1, (until - now) // SECOND))
    return NoWorkReason(
        NoWorkCause.NOT_IDLE, f"This machine has to stay idle for {still_s} s more: {rule_text}.", until=until
    )
