"""Who comes, who is here, and who has gone.

Hellos are decided in batches: those that come while one batch is decided form the next. If the registry cannot answer,
every caller is sent away, each with a different time to come back. Once a second the registry gets the newest beat of
each link, and the links that are over. What it could not take is kept for the next time, at most one of each for a
node, so nothing grows.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from uuid import UUID

from tidemill.core.clock import Clock
from tidemill.core.faults import Fault
from tidemill.link.held.connection import HeldConnection
from tidemill.link.held.registry import (
    AdmissionDenial,
    AdmissionGrant,
    AgentCall,
    BeatArrival,
    LinkGeneration,
    Registry,
    Supersession,
)
from tidemill.wire.messages import BeatMessage, Hello

_EVERY_S = 1.0

HELLOS_MAX = 500
_GATHER_S = 0.005
_RETRY_MS = 1_000
_RETRY_SPREAD_MS = 4_000
_BUSY = "The pool cannot decide who comes in right now: come back soon."


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


class Admissions:
    """The callers that have said hello and wait for an answer; the door's limit bounds how many there are."""

    def __init__(
        self,
        registry: Registry,
        presence: Presence,
        answer: Callable[[HeldConnection, AdmissionGrant | AdmissionDenial], None],
        chance: Random,
    ) -> None:
        self._registry, self._presence = registry, presence
        self._answer = answer
        self._chance = chance
        self._waiting: list[tuple[HeldConnection, Hello]] = []
        self._wanted = asyncio.Event()

    def add(self, connection: HeldConnection, hello: Hello) -> None:
        self._waiting.append((connection, hello))
        self._wanted.set()

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(_GATHER_S)
            batch, self._waiting = self._waiting[:HELLOS_MAX], self._waiting[HELLOS_MAX:]
            if not self._waiting:
                self._wanted.clear()
            connected = [(connection, hello) for connection, hello in batch if not connection.is_lost]
            if connected:
                for (connection, _), answer in zip(connected, await self._decide(connected), strict=True):
                    self._answer(connection, answer)

    async def _decide(
        self, batch: Sequence[tuple[HeldConnection, Hello]]
    ) -> Sequence[AdmissionGrant | AdmissionDenial]:
        """Report lost links first: else an agent that comes back at once is taken for a clone of itself."""
        try:
            await self._presence.tell_gone()
            return await self._registry.admit([AgentCall(hello, connection.address) for connection, hello in batch])
        except Fault:
            return [self._busy() for _ in batch]

    def _busy(self) -> AdmissionDenial:
        return AdmissionDenial("busy", _BUSY, _RETRY_MS + self._chance.randrange(_RETRY_SPREAD_MS))


def _newer(link: LinkGeneration, other: LinkGeneration | None) -> LinkGeneration:
    return other if other and other.generation > link.generation else link
