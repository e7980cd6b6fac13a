"""Hellos are decided in batches: those that come while a batch is being decided are the next one.

A registry that cannot answer sends everybody away with a time to come back that differs from caller to caller.
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
    """Whoever has said hello and waits for an answer; the doorway's own limit bounds how many they are."""

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
            here = [(connection, hello) for connection, hello in batch if not connection.is_lost]
            if here:
                for (connection, _), answer in zip(here, await self._decided(here), strict=True):
                    self._answer(connection, answer)

    async def _decided(
        self, batch: Sequence[tuple[HeldConnection, Hello]]
    ) -> Sequence[AdmissionGrant | AdmissionDenial]:
        """Who has gone is told first: an agent that comes back at once is not taken for another with its identity."""
        try:
            await self._presence.tell_gone()
            return await self._registry.admit([AgentCall(hello, connection.address) for connection, hello in batch])
        except Fault:
            return [self._busy() for _ in batch]

    def _busy(self) -> AdmissionDenial:
        return AdmissionDenial("busy", _BUSY, _RETRY_MS + self._chance.randrange(_RETRY_SPREAD_MS))
