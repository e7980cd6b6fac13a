"""Who is here: once a second, the registry gets the newest beat of each link, and the links that are over.

What the registry could not take is kept for the next time, at most one of each for a node, so nothing grows.
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
    """What nodes sent since the registry was last told."""

    def __init__(self, registry: Registry, clock: Clock, answer: Callable[[Supersession], None]) -> None:
        self._registry = registry
        self._clock = clock
        self._answer = answer
        self._beats: dict[UUID, BeatArrival] = {}
        self._alive: dict[UUID, LinkGeneration] = {}
        self._gone: dict[UUID, LinkGeneration] = {}
        self._telling_gone = asyncio.Lock()

    def beaten(self, link: LinkGeneration, beat: BeatMessage) -> None:
        self._beats[link.node_id] = BeatArrival(link, beat, self._clock.now())
        self._alive[link.node_id] = link

    def alive(self, link: LinkGeneration) -> None:
        self._alive[link.node_id] = link

    def gone(self, link: LinkGeneration) -> None:
        self._gone[link.node_id] = _newer(link, self._gone.get(link.node_id))

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
        """Tell the registry which links are over. Returns when it knows all that ended before the call."""
        async with self._telling_gone:
            gone, self._gone = self._gone, {}
            if not gone:
                return
            try:
                await self._registry.gone(list(gone.values()))
            except BaseException:
                for link in gone.values():
                    self.gone(link)
                raise


def _newer(link: LinkGeneration, other: LinkGeneration | None) -> LinkGeneration:
    return other if other and other.generation > link.generation else link
