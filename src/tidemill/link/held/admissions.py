"""Hellos are decided in batches: hellos that come while one batch is decided form the next.

If the registry cannot answer, every caller is sent away, each with a different time to come back.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from tidemill.core.faults import Fault
from tidemill.link.held.connection import HeldConnection
from tidemill.link.held.presence import Presence
from tidemill.link.held.registry import AdmissionDenial, AdmissionGrant, AgentCall, Registry
from tidemill.wire.messages import Hello

BATCH_MAX = 500
_GATHER_S = 0.005
_RETRY_MS = 1_000
_RETRY_SPREAD_MS = 4_000
_BUSY = "The pool cannot decide who comes in right now: come back soon."


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
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
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
