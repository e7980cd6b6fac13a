"""The agent's pulse: every beat reads the machine's state, applies the owner's rules, and tells the pool.

Without a link, beats are kept in the spool. The first beat on a new link comes at a random moment within the period, so
that agents which lost their links together do not beat together for ever after.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from random import Random

import structlog

from tidemill.agent.machine import Hardware, beat_of
from tidemill.agent.standing import AgentStanding, in_hand, reading_of
from tidemill.agent.work.work import WorkInHand
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.nodes.rules.rule_book import rules_of
from tidemill.core.nodes.rules.rules import sense
from tidemill.host.clocks import steady, utc_offset_s, wall
from tidemill.link.dialled.reports import Reporter, as_json
from tidemill.link.dialled.session import LinkSession

log = structlog.get_logger()

_FIRST_BEAT_S = 30.0


class Pulse:
    """Beats for as long as it runs, with a link and without."""

    def __init__(
        self,
        standing: AgentStanding,
        reporting: Reporter,
        hardware: Hardware,
        work: WorkInHand,
        dice: Random,
        look_again: Callable[[], None],
    ) -> None:
        """Calls `look_again` when the devices are no longer those that were detected."""
        self._standing = standing
        self._reporting = reporting
        self._hardware = hardware
        self._work = work
        self._dice = dice
        self._look_again = look_again
        self._session: LinkSession | None = None
        self._every_s = _FIRST_BEAT_S
        self._due = steady()
        self._rescheduled = asyncio.Event()
        self._number = 0

    def linked(self, session: LinkSession) -> None:
        """Beat on this link from now on, in its rhythm."""
        self._session = session
        self._every_s = session.beat_s
        self._due = _instant_after(self._dice.random() * self._every_s)
        self._rescheduled.set()

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rescheduled.wait(), max(0, self._due - steady()) / SECOND)
            self._rescheduled.clear()
            if steady() >= self._due:
                self._due = _instant_after(self._every_s)
                await self._beat()

    async def obey_rules(self) -> None:
        """Rest if the rules or the machine say so."""
        begun_work = in_hand(self._standing.reasons(wall()))
        if begun_work is not None:
            await self._work.rest(begun_work)
        self._standing.news.set()

    async def _beat(self) -> None:
        standing, now = self._standing, wall()
        standing.state = await self._hardware.state()
        rules = rules_of(standing.book)
        reading = reading_of(standing.state, self._work.own_uses_pct)
        standing.senses = sense(standing.senses, reading, rules, standing.limits, now)
        standing.round_trip_us = self._session.round_trip_us if self._session else None
        await self.obey_rules()
        await self._reporting.tell("clock", as_json({"utc_offset_s": utc_offset_s()}))
        await self._send()
        if self._devices_changed():
            self._look_again()

    async def _send(self) -> None:
        standing = self._standing
        assert standing.state
        self._number += 1
        took_us = standing.round_trip_us
        beat = beat_of(standing.state, self._number, None if took_us is None else min(took_us // 1000, 2**31))
        if self._session is None or not self._session.beat(beat):
            try:
                await self._reporting.spool.keep_beat(beat, wall())
            except Fault as fault:
                log.warning("beat not kept", cause=str(fault))

    def _devices_changed(self) -> bool:
        machine, state = self._standing.machine, self._standing.state
        if machine is None or state is None or len(machine.devices) != len(state.devices):
            return True
        pairs = zip(machine.devices, state.devices, strict=True)
        return any((device.failing is None) != (now.failing is None) for device, now in pairs)


def _instant_after(wait_s: float) -> Instant:
    return Instant(steady() + int(wait_s * SECOND))
