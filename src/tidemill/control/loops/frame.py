"""The frame around every loop: tick, pause, back off, count, stop.

Any number of copies of a loop may run, in one process or in many. The database keeps them from doing work twice: rows
are leased with a token, which is compared when the decision is applied; work that only one may do at a time is a duty.
A fault ends the tick, never the loop. A loop waits while its switch is stopped, or while it needs the time and the
clock is in doubt.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import ClassVar

import structlog

from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.events.log import Event, RecordedEvent
from tidemill.core.faults import Fault
from tidemill.core.operations.switches import Switch, stopping_switch
from tidemill.core.pace import Backoff, between_ticks
from tidemill.store.operations import switches

log = structlog.get_logger()


@dataclass(frozen=True)
class Tick:
    """What one tick did. `more` asks for the next tick at once."""

    seen: int = 0
    applied: int = 0
    more: bool = False


class Loop(ABC):
    """One kind of work. `obeys` names the switch that stops it, `wakes_on` the events that make it tick at once."""

    name: ClassVar[str]
    wakes_on: ClassVar[frozenset[type[Event]]] = frozenset()
    obeys: ClassVar[Switch | None] = None
    needs_trusted_clock: ClassVar[bool] = True

    def __init__(self, parts: Parts, *, every_s: float) -> None:
        self.parts = parts
        self.every_s = every_s

    @abstractmethod
    async def tick(self, now: Instant) -> Tick:
        """Load a batch, decide, apply. Raises a fault when the world fails; the frame tries again later."""

    def heard(self, recorded: Sequence[RecordedEvent]) -> bool:
        """Take note of new events that are in `wakes_on`. Answers whether to tick now. Most loops note nothing."""
        return True

    async def close(self) -> None:
        """Let go of what outlives a tick. Most loops hold nothing."""
        return


class LoopRunner:
    """Runs one loop until it is stopped."""

    def __init__(self, loop: Loop, random: Random) -> None:
        self.loop = loop
        self._parts = loop.parts
        self._random = random
        rules = loop.parts.settings.loops
        self._backoff = Backoff(rules.backoff_first_s, rules.backoff_most_s)
        self._woken = asyncio.Event()
        self._stopping = False
        self._failures = 0

    @property
    def failing(self) -> bool:
        """Whether the last tick failed."""
        return self._failures > 0

    def wake(self) -> None:
        """Tick now rather than later."""
        self._woken.set()

    def hear(self, recorded: Sequence[RecordedEvent]) -> None:
        """Tell the loop of new events that are in its `wakes_on`."""
        if self.loop.heard(recorded):
            self.wake()

    def stop(self) -> None:
        """Finish the current tick and end."""
        self._stopping = True
        self.wake()

    async def run(self) -> None:
        try:
            while not self._stopping:
                pause_s = await self._attempt()
                await self._pause(pause_s)
        finally:
            await self.loop.close()

    async def _attempt(self) -> float:
        """One guarded tick. Answers how long to wait before the next."""
        self._woken.clear()
        started = perf_counter()
        try:
            tick = await self._tick()
        except Fault as fault:
            self._failures += 1
            self._parts.metrics.ticks.labels(self.loop.name, "failed").observe(perf_counter() - started)
            log.warning("loop failed", loop=self.loop.name, cause=str(fault), failures=self._failures)
            return self._backoff.after(self._failures, self._random.random())
        if self._failures:
            log.info("loop recovered", loop=self.loop.name, failures=self._failures)
        self._failures = 0
        self._parts.metrics.ticks.labels(self.loop.name, "done").observe(perf_counter() - started)
        self._parts.metrics.applied.labels(self.loop.name).inc(tick.applied)
        return between_ticks(self.loop.every_s, more=tick.more, draw=self._random.random())

    async def _tick(self) -> Tick:
        is_held = await self._is_held()
        self._parts.metrics.loop_stopped.labels(self.loop.name).set(is_held)
        return Tick() if is_held else await self.loop.tick(self._parts.clock.now())

    async def _is_held(self) -> bool:
        if self.loop.needs_trusted_clock and not self._parts.clock.trusted:
            return True
        if self.loop.obeys is None:
            return False
        async with self._parts.loop_database.connection() as connection:
            states = await switches.states(connection)
        return stopping_switch(self.loop.obeys, states.values()) is not None

    async def _pause(self, pause_s: float) -> None:
        if pause_s == 0:
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(pause_s):
                await self._woken.wait()
        except TimeoutError:
            return
