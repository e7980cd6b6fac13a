"""How the agent stands right now: its link, its machine, its owner's rules, and why it may not work.

All parts of an agent write to this one value, and the machine's owner sees it. Every change sets `news`.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidemill import __version__
from tidemill.agent.home.identity import Membership
from tidemill.agent.link.line_speed import LineSpeed
from tidemill.core.clock import Instant, as_datetime
from tidemill.core.nodes.machine.hardware import Machine, MachineState
from tidemill.core.nodes.no_work_reasons import BegunWork, NoWorkCause, NoWorkReason
from tidemill.core.nodes.rules.rule_book import RuleBook, book_json, rules_of
from tidemill.core.nodes.rules.rules import HeatLimits, MachineReading, Senses, objections
from tidemill.host.clocks import utc_offset_s


class LinkState(StrEnum):
    CALLING = "calling"
    LINKED = "linked"
    WAITING = "waiting"
    OVER = "over"


@dataclass(frozen=True)
class LinkStanding:
    """The state of the link; without one, why, and when the agent calls again."""

    state: LinkState
    url: str
    since: Instant
    sentence: str = ""
    again_at: Instant | None = None
    generation: int | None = None


@dataclass
class AgentStanding:
    """Everything that the machine's owner is shown."""

    membership: Membership
    limits: HeatLimits
    link: LinkStanding
    started_at: Instant
    book: RuleBook = field(default_factory=RuleBook)
    accepted: bool = True
    oldest: str = ""
    machine: Machine | None = None
    state: MachineState | None = None
    senses: Senses | None = None
    speed: LineSpeed | None = None
    round_trip_us: int | None = None
    complaints: dict[str, str] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def complain(self, about: str, sentence: str | None) -> None:
        """Show a complaint about a part, or with None remove it."""
        if sentence is None:
            self.complaints.pop(about, None)
        else:
            self.complaints[about] = sentence
        self.news.set()

    def reasons(self, now: Instant) -> list[NoWorkReason]:
        """Every reason against working now that this machine itself knows."""
        reasons = [*self._own_reasons(), *self._rule_reasons(now)]
        return sorted(reasons, key=lambda reason: list(NoWorkCause).index(reason.why))

    def shown(
        self, now: Instant, *, work: Mapping[str, object], waiting: int, complaint: str | None
    ) -> dict[str, object]:
        """The status as JSON. `work` describes the attempts in hand."""
        return {
            "version": __version__,
            "node_id": None if self.membership.node_id is None else str(self.membership.node_id),
            "pool": self.membership.pool_fingerprint,
            "started_at": as_datetime(self.started_at).isoformat(),
            "link": self._link_json(),
            "work": {
                **work,
                "may_take": not self.reasons(now),
                "reasons": [{"code": reason.why.value, "sentence": reason.sentence} for reason in self.reasons(now)],
            },
            "versions": {"accepted": self.accepted, "oldest": self.oldest},
            "reports_waiting": waiting,
            "rules": book_json(self.book),
            "devices": self._devices_json(),
            "speed": None if self.speed is None else vars(self.speed),
            "complaints": [*self.complaints.values(), *([complaint] if complaint else [])],
        }

    def _own_reasons(self) -> Iterator[NoWorkReason]:
        if not self.accepted:
            oldest = f"{self.oldest} or newer" if self.oldest else "a newer one"
            yield NoWorkReason(
                NoWorkCause.VERSION_NOT_ACCEPTED,
                f"The pool gives no work to version {__version__} of this program: upgrade it to {oldest}.",
            )
        for device in self.state.devices if self.state else ():
            if device.failing:
                yield NoWorkReason(
                    NoWorkCause.FAILING_DEVICE,
                    f"Device {device.index} fails: {device.failing}",
                    device=str(device.index),
                )

    def _rule_reasons(self, now: Instant) -> Iterator[NoWorkReason]:
        return objections(rules_of(self.book), self.senses, self.limits, now, utc_offset_s())

    def _link_json(self) -> dict[str, object]:
        link = self.link
        return {
            "state": link.state.value,
            "url": link.url,
            "since": as_datetime(link.since).isoformat(),
            "sentence": link.sentence,
            "again_at": None if link.again_at is None else as_datetime(link.again_at).isoformat(),
            "generation": link.generation,
            "round_trip_ms": None if self.round_trip_us is None else self.round_trip_us // 1000,
        }

    def _devices_json(self) -> list[dict[str, object]]:
        states = {state.index: state for state in self.state.devices} if self.state else {}
        devices: list[dict[str, object]] = []
        for device in self.machine.devices if self.machine else ():
            state = states.get(device.index)
            devices.append(
                {
                    "name": device.name,
                    "memory_mib": device.memory_mib,
                    "utilisation_pct": state and state.utilisation_pct,
                    "temperature_c": state and state.temperature_c,
                    "power_w": state and state.power_w,
                    "failing": device.failing if state is None else state.failing,
                }
            )
        return devices


def reading_of(state: MachineState, own_uses_pct: Mapping[int, float]) -> MachineReading:
    """What rules look at. `others_pct` leaves out the share of each device that our own work may use."""
    temperatures = [device.temperature_c for device in state.devices if device.temperature_c is not None]
    powers = [device.power_w for device in state.devices if device.power_w is not None]
    uses = [None if device.failing else device.utilisation_pct for device in state.devices]
    own_uses = [own_uses_pct.get(device.index, 0.0) for device in state.devices]
    others_pct = [max(0.0, use - own) for use, own in zip(uses, own_uses, strict=True) if use is not None]
    return MachineReading(
        temperature_c=max(temperatures, default=None),
        power_w=max(powers, default=None),
        others_pct=max(others_pct) if others_pct and len(others_pct) == len(uses) else None,
    )


def in_hand(reasons: list[NoWorkReason]) -> BegunWork | None:
    """What to do with work in hand; None if it may go on and more may come."""
    if not reasons:
        return None
    return BegunWork.STOP if any(reason.in_hand is BegunWork.STOP for reason in reasons) else BegunWork.FINISH
