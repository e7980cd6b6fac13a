"""Detects the machine at the start, now and then, and when a device changes. The pool is told of every difference.

The line's speed is measured once a day, the first time soon after the machine has joined.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import structlog

from tidemill.agent.link.line_speed import measure_line, read_speed, write_speed
from tidemill.agent.machine import Hardware
from tidemill.agent.standing import AgentStanding
from tidemill.core.clock import DAY
from tidemill.core.faults import Fault
from tidemill.core.nodes.machine.hardware import Network, facts_of
from tidemill.core.nodes.rules.rule_book import rules_of
from tidemill.host.clocks import wall
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.session import LinkSession

log = structlog.get_logger()

_DETECT_S = 600.0
_REST_S = 30.0
_SPEED_S = 60.0
_SETTLE_S = 5.0


class MachineWatch:
    """Keeps what is known of the machine current, here and at the pool."""

    def __init__(
        self, standing: AgentStanding, reporting: Reporter, hardware: Hardware, dice: Random, speed_file: Path
    ) -> None:
        self.detected = asyncio.Event()
        self._standing = standing
        self._reporting = reporting
        self._hardware = hardware
        self._dice = dice
        self._speed_file = speed_file
        self._session: LinkSession | None = None
        self._again = asyncio.Event()
        standing.speed = read_speed(speed_file)

    def look_again(self) -> None:
        self._again.set()

    def linked(self, session: LinkSession) -> None:
        self._session = session

    async def detecting(self) -> None:
        """Detect again and again. Always rest in between: a device may come and go all the time."""
        while True:
            self._again.clear()
            await self._detect()
            self.detected.set()
            await asyncio.sleep(_REST_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), _DETECT_S * (0.9 + self._dice.random() / 5))

    async def measuring(self) -> None:
        """Measure the line once a day, when there is a link."""
        while True:
            await asyncio.sleep(_SETTLE_S * (1 + self._dice.random()))
            session, speed = self._session, self._standing.speed
            is_due = speed is None or not 0 <= wall() - speed.at < DAY
            if is_due and session and session.is_open and session.round_trip_us is not None:
                await self._measure(session)
                await asyncio.sleep(_SPEED_S)

    async def tell(self) -> None:
        """Tell the pool what the machine is."""
        if (machine := self._standing.machine) is None:
            return
        speed, region = self._standing.speed, rules_of(self._standing.book).region
        network = Network(region=region)
        if speed is not None:
            network = Network(speed.down_bps, speed.up_bps, speed.latency_ms, region)
        await self._reporting.tell("machine", facts_of(replace(machine, network=network)))

    async def _detect(self) -> None:
        try:
            self._standing.machine = await self._hardware.machine()
        except Fault as fault:
            self._standing.complain("machine", str(fault))
            log.warning("hardware not detected", cause=str(fault))
        else:
            self._standing.complain("machine", None)
            await self.tell()

    async def _measure(self, session: LinkSession) -> None:
        assert session.round_trip_us is not None
        speed = await measure_line(session.streams, session.round_trip_us, wall())
        if speed is None:
            return
        self._standing.speed = speed
        self._standing.news.set()
        try:
            await asyncio.to_thread(write_speed, self._speed_file, speed)
        except OSError as error:
            log.warning("speed not kept", cause=str(error))
        await self.tell()
