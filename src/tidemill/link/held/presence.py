"""Who is here, told to the registry once a second in one call: the newest beat of each link, and which links are over.

What could not be told is kept for the next time. There is at most one of each for a node, so nothing grows.
"""

import asyncio
from collections.abc import Callable
from uuid import UUID

from tidemill.core.clock import Clock
from tidemill.core.faults import Fault
from tidemill.link.held.registry import BeatArrival, LinkGeneration, Registry, Supersession
from tidemill.wire.messages import BeatMessage

_EVERY_S = 1.0


class Presence:
    """What was heard since it was last told."""

    def __init__(self, registry: Registry, clock: Clock, answer: Callable[[Supersession], None]) -> None:
        self._registry = registry
        self._clock = clock
        self._answer = answer
        self._beats: dict[UUID, BeatArrival] = {}
        self._alive: dict[UUID, LinkGeneration] = {}
        self._gone: dict[UUID, LinkGeneration] = {}
        self._telling_gone = asyncio.Lock()

    def beaten(self, held: LinkGeneration, beat: BeatMessage) -> None:
        self._beats[held.node_id] = BeatArrival(held, beat, self._clock.now())
        self._alive[held.node_id] = held

    def alive(self, held: LinkGeneration) -> None:
        self._alive[held.node_id] = held

    def gone(self, held: LinkGeneration) -> None:
        self._gone[held.node_id] = _newer(held, self._gone.get(held.node_id))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.tell()

    async def tell(self) -> bool:
        """Tell everything. Answers whether the registry took it."""
        try:
            await self._tell_heard()
            await self.tell_gone()
        except Fault:
            return False
        return True

    async def _tell_heard(self) -> None:
        beats, alive = self._beats, self._alive
        if not alive:
            return
        self._beats, self._alive = {}, {}
        try:
            for superseded in await self._registry.heard(list(beats.values()), list(alive.values())):
                self._answer(superseded)
        except BaseException:
            self._beats, self._alive = beats | self._beats, alive | self._alive
            raise

    async def tell_gone(self) -> None:
        """Returns when the registry knows of everybody who had gone before."""
        async with self._telling_gone:
            gone, self._gone = self._gone, {}
            if not gone:
                return
            try:
                await self._registry.gone(list(gone.values()))
            except BaseException:
                for held in gone.values():
                    self.gone(held)
                raise


def _newer(one: LinkGeneration, other: LinkGeneration | None) -> LinkGeneration:
    return other if other and other.generation > one.generation else one
