"""All links of one process: which nodes they belong to, what is sent on them, and how they end.

One timer looks after all of them, a slice at a time. What agents send goes to the registry in batches; its answers go
back. A node has at most one link here: the newest generation wins, and the older link is closed.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from random import Random, SystemRandom
from typing import TypeAlias
from uuid import UUID

import structlog

from tidemill.core.clock import Clock
from tidemill.core.faults import Fault
from tidemill.core.signatures import Identity
from tidemill.link.held.connection import HeldConnection, LinkCounters, ListeningTime
from tidemill.link.held.deliveries import Deliveries
from tidemill.link.held.door import Door, LinkRules
from tidemill.link.held.presence import Admissions, Presence
from tidemill.link.held.registry import (
    Acknowledgement,
    AdmissionDenial,
    AdmissionGrant,
    LinkGeneration,
    Registry,
    ReportsAnswer,
    Supersession,
)
from tidemill.link.held.speed import PURPOSE, SpeedTest
from tidemill.link.held.streams import ChannelBroken, HeldStream
from tidemill.wire.link import PoolLink
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import BeatMessage, Hello, Instruction, Reports
from tidemill.wire.upgrade import Rejection, UpgradeRequest

log = structlog.get_logger()

Serve: TypeAlias = Callable[[HeldStream], Awaitable[None]]

_TURN_S = 0.25
_ROUND_S = 5.0
_DRAIN_S = 1.5
_DRAIN_STEPS = 30
_FAREWELL_S = 2.0
_SERVING_MAX = 10_000
_SUPERSEDED = "Another link of this node has taken the place of this one."
_PASSING = frozenset({"silent", "not_reading"})
"""Ends that honest agents on bad networks meet, too: they are no offence."""


class Links:
    """The links of a process. `run` must be running for anything to be decided; `connection` makes a protocol."""

    def __init__(
        self, registry: Registry, identity: Identity, clock: Clock, rules: LinkRules, chance: Random | None = None
    ) -> None:
        chance = chance or SystemRandom()
        self.counters = LinkCounters()
        self.time = ListeningTime(lambda: time.monotonic_ns() // 1000)
        self.turn = 0
        self._registry = registry
        self._identity = identity
        self._rules = rules
        self._chance = chance
        self._door = Door(rules)
        self._presence = Presence(registry, clock, self._superseded)
        self._admissions = Admissions(registry, self._presence, self._answered, chance)
        self._deliveries = Deliveries(registry, self._delivered, chance)
        self._held: dict[UUID, HeldConnection] = {}
        self._turns = max(1, round(min(_ROUND_S, rules.beat_ms / 1000 / 4) / _TURN_S))
        self._slots: list[set[HeldConnection]] = [set() for _ in range(self._turns)]
        self._connections_made = 0
        self._emptied = asyncio.Event()
        self._hurried: list[HeldConnection] = []
        self._purposes: dict[str, Serve] = {PURPOSE: SpeedTest().serve}
        self._serving: set[asyncio.Future[None]] = set()

    async def run(self) -> None:
        """Decide and look after the links until cancelled. Only a bug ends it otherwise."""
        async with asyncio.TaskGroup() as group:
            for part in (self._admissions.run, self._deliveries.run, self._presence.run, self._look_after):
                group.create_task(part(), name=part.__qualname__)

    def connection(self, **_: object) -> HeldConnection:
        """A protocol for a connection that asks for a link. The arguments that an HTTP server adds are not needed."""
        connection = HeldConnection(self, PoolLink(self._identity, secrets.token_bytes(32), self.time.now()))
        connection.slot = self._connections_made % self._turns
        self._connections_made += 1
        self._slots[connection.slot].add(connection)
        return connection

    # What control and the gateway ask

    def link_generations(self) -> Mapping[UUID, int]:
        """The nodes whose links are here, and their generations."""
        return {
            node_id: connection.node_link.generation
            for node_id, connection in self._held.items()
            if connection.node_link
        }

    @property
    def open(self) -> int:
        return len(self._held)

    @property
    def shaking_hands(self) -> int:
        return self._door.shaking

    def instruct(self, node_id: UUID, instructions: Sequence[Instruction]) -> bool:
        """Send instructions. Answers whether the node's link is here."""
        connection = self._held.get(node_id)
        if connection is None or connection.link.state is not LinkPhase.OPEN:
            return False
        if instructions:
            connection.link.instruct(instructions)
            connection.flush()
        return True

    def close(self, node_id: UUID, code: str, sentence: str) -> bool:
        """End a node's link. Answers whether it was here."""
        connection = self._held.get(node_id)
        if connection is None:
            return False
        connection.close(code, sentence)
        return True

    def open_channel(self, node_id: UUID, purpose: str, about: bytes = b"") -> HeldStream:
        """A new channel to a node. Raises `ChannelBroken` if its link is not here, or has too many."""
        connection = self._held.get(node_id)
        if connection is None:
            raise ChannelBroken("not_held")
        return connection.open_channel(node_id, purpose, about)

    def accept(self, purpose: str, serve: Serve) -> None:
        """Serve the channels that agents open for this purpose with `serve`."""
        assert purpose not in self._purposes, f"{purpose} is served already"
        self._purposes[purpose] = serve

    async def drain(self) -> None:
        """Let nobody in any more, and send all agents away, a few at a time, so that other processes can take them."""
        self._door.closed = True
        leaving = self._all()
        self._chance.shuffle(leaving)
        size = max(1, -(-len(leaving) // _DRAIN_STEPS))
        for start in range(0, len(leaving), size):
            for connection in leaving[start : start + size]:
                connection.close("leaving", "This process of the pool is stopping: another one will take the link.")
            await asyncio.sleep(_DRAIN_S / _DRAIN_STEPS)
        await self._farewell()

    async def _farewell(self) -> None:
        """Wait a little for agents that still have something to read, then close."""
        if any(self._slots):
            self._emptied.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), _FAREWELL_S)
        for connection in self._all():
            connection.abort()
        for task in self._serving:
            task.cancel()
        await asyncio.sleep(0)
        if not await self._presence.tell():
            log.warning("links ended untold", cause="the registry did not answer")

    # What connections tell

    def knocked(self, connection: HeldConnection, request: UpgradeRequest) -> Rejection | None:
        visitor = self._door.knock(connection.peer, request)
        if isinstance(visitor, Rejection):
            code = f"http_{int(visitor.status)}"
            self.counters.refused[code] += 1
            address = self._door.address_of(connection.peer, request)
            self._registry.refused(code, visitor.sentence, address, None)
            return visitor
        connection.visitor = visitor
        return None

    def greeted(self, connection: HeldConnection, hello: Hello) -> None:
        self._admissions.add(connection, hello)

    def beaten(self, connection: HeldConnection, beat: BeatMessage) -> None:
        if connection.node_link:
            connection.told_at = self.time.now()
            self._presence.beaten(connection.node_link, beat)

    def alive(self, connection: HeldConnection) -> None:
        if connection.node_link:
            connection.told_at = self.time.now()
            self._presence.alive(connection.node_link)

    def reported(self, connection: HeldConnection, reports: Reports) -> None:
        self._deliveries.add(connection, reports)

    def channel_opened(self, connection: HeldConnection, stream: HeldStream) -> None:
        serve = self._purposes.get(stream.purpose)
        if serve is None or len(self._serving) >= _SERVING_MAX:
            stream.cancel("unknown_purpose" if serve is None else "busy")
            return
        task = asyncio.ensure_future(_serve(serve, stream))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    def hurried(self, connection: HeldConnection) -> None:
        self._hurried.append(connection)

    def broke(self, connection: HeldConnection, code: str, sentence: str) -> None:
        self.counters.refused[code] += 1
        if code not in _PASSING:
            node_id = connection.node_link.node_id if connection.node_link else None
            self._registry.refused(code, sentence, connection.address, node_id)

    def lost(self, connection: HeldConnection) -> None:
        self._slots[connection.slot].discard(connection)
        if self._door.closed and not any(self._slots):
            self._emptied.set()
        self._deliveries.forget(connection)
        if connection.visitor:
            self._door.leave(connection.visitor)
        if node_link := connection.node_link:
            self._presence.gone(node_link)
            if self._held.get(node_link.node_id) is connection:
                del self._held[node_link.node_id]

    # What the registry answers

    def _answered(self, connection: HeldConnection, answer: AdmissionGrant | AdmissionDenial) -> None:
        if isinstance(answer, AdmissionDenial):
            self.counters.refused[answer.code] += 1
            connection.link.refuse(answer.code, answer.sentence, answer.retry_ms)
            connection.flush()
        elif connection.is_lost or connection.link.state is not LinkPhase.ANSWERING:
            self._presence.gone(answer.link)  # it did not wait for its welcome
        else:
            self._welcome(connection, answer)

    def _welcome(self, connection: HeldConnection, admitted: AdmissionGrant) -> None:
        node_link = connection.node_link = admitted.link
        assert connection.visitor, "nobody greets before they came through the door"
        self._door.let_in(connection.visitor)
        connection.link.welcome(
            node_id=node_link.node_id.bytes,
            generation=node_link.generation,
            received=admitted.received,
            beat_ms=self._rules.beat_ms,
        )
        if admitted.instructions:
            connection.link.instruct(admitted.instructions)
        self.counters.welcomed += 1
        connection.told_at = self.time.now()
        self._make_current(connection, node_link)
        connection.flush()

    def _make_current(self, connection: HeldConnection, node_link: LinkGeneration) -> None:
        other = self._held.get(node_link.node_id)
        if other and other.node_link and other.node_link.generation > node_link.generation:
            connection.close("superseded", _SUPERSEDED)
            return
        self._held[node_link.node_id] = connection
        if other:
            self._deliveries.forget(other)  # it may linger; a node is heard on one link
            other.close("superseded", _SUPERSEDED)

    def _delivered(self, connection: HeldConnection, outcome: ReportsAnswer) -> None:
        if isinstance(outcome, Acknowledgement):
            connection.link.acknowledge(outcome.number)
            if outcome.instructions:
                connection.link.instruct(outcome.instructions)
            connection.flush()
        else:
            self.counters.refused[outcome.code] += 1
            connection.close(outcome.code, outcome.sentence)

    def _superseded(self, superseded: Supersession) -> None:
        connection = self._held.get(superseded.link.node_id)
        if connection and connection.node_link == superseded.link:
            connection.close(superseded.code, superseded.sentence)

    def _all(self) -> list[HeldConnection]:
        return [connection for slot in self._slots for connection in slot]

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(_TURN_S)
            now = self.time.mark()
            self.turn += 1
            hurried, self._hurried = self._hurried, []
            for connection in hurried:
                connection.hear_more()
            for connection in list(self._slots[self.turn % self._turns]):
                connection.tick(now)


async def _serve(serve: Serve, stream: HeldStream) -> None:
    """Serve a channel. If that fails, only the channel is cancelled; its link and the process go on."""
    try:
        await serve(stream)
    except Fault as fault:
        stream.cancel(getattr(fault, "why", None) or fault.code)
    except Exception:
        log.exception("channel failed", purpose=stream.purpose, node_id=str(stream.node_id))
        stream.cancel("failed")
    finally:
        stream.let_go()
