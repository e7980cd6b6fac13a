"""Agents at the wire: many in one process, over real sockets, with real signatures, and no hardware behind them.

Each is one node, known by a key that follows from its number. It comes back by itself when its link breaks, and keeps
what it reported until the pool says that it is safe, as a real agent's spool does; when its process is killed, that is
lost. What it does with an offer is for whoever made it to say: `offered` and `called_off` are called with each order,
and `safe` with the number of the last report that the pool has. Where it works on challenges, it does so on this
machine, whatever it claims to be.
"""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from tests.worlds.databases.dispatch_world import result_of
from tidemill.agent.machine.prover import Prover
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.receipts import INLINE_MAX_BYTES, AttemptOutcome, Receipt, batch_bytes, sign_batch
from tidemill.core.nodes.challenge.messages import CHALLENGE
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine, facts_of
from tidemill.core.signatures import Identity
from tidemill.wire import messages
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink, Closed, Instructed, Joined, LinkEvent, Safe, TurnedAway
from tidemill.wire.link_frames import agent_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import Assignment, BeatMessage, Cancel, DeviceBeatMessage, Facts, Report, Wish

CORES = 4
MEMORY_MIB = 32_000
TICK_S = 0.25
FRAME = 64 * 1024
CARRIES = abilities_bytes(NodeAbilities(("matmul",), ()))


def simulated(number: int, cores: int = CORES, memory_mib: int = MEMORY_MIB) -> Machine:
    device = Device(0, DeviceKind.CPU, "a simulated processor", f"simulated-{number}", memory_mib, "6.1")
    return Machine("Linux", "6.1", "x86_64", "a simulated processor", cores, memory_mib, 500_000, (device,))


@dataclass(frozen=True)
class Door:
    """Where the pool's processes listen, by which fingerprint it is known, and what lets newcomers in."""

    ports: Sequence[int]
    known_by: str
    token: str


@dataclass
class Crowd:
    """The agents of one process. Their nodes' ids are kept in its home, so that it comes back as the same nodes."""

    home: Path
    door: Door
    numbers: Sequence[int]
    random: Random
    offered: Callable[["WireAgent", Assignment], None]
    called_off: Callable[["WireAgent", Cancel], None] = lambda *_: None
    claimed: Callable[[int], Machine] = simulated
    real: Machine | None = None
    """What challenges are worked on with; without it nobody answers them."""

    safe: Callable[["WireAgent", int], None] = lambda *_: None
    carries: bytes = CARRIES
    agents: "list[WireAgent]" = field(default_factory=list)
    away: "set[WireAgent]" = field(default_factory=set)
    _dialling: set[asyncio.Future[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Call the pool, and beat, until cancelled."""
        self.agents = [WireAgent(self, number) for number in self.numbers]
        for agent in self.agents:
            self.again(agent, 0.0)
        while True:
            await asyncio.sleep(TICK_S)
            for agent in self.agents:
                agent.tick()

    def again(self, agent: "WireAgent", within_s: float = 0.4) -> None:
        if agent in self.away:
            return
        dialling = asyncio.ensure_future(agent.dial(self.random.uniform(0, within_s)))
        self._dialling.add(dialling)
        dialling.add_done_callback(self._dialling.discard)

    def send_away(self, agent: "WireAgent") -> None:
        """Its link is cut, and it does not come back."""
        self.away.add(agent)
        if agent.transport:
            agent.transport.abort()

    def call_back(self, agent: "WireAgent") -> None:
        self.away.discard(agent)
        self.again(agent)

    def drop_links(self) -> None:
        """Every connection is cut, as a network does it."""
        for agent in self.agents:
            if agent.transport:
                agent.transport.abort()


class WireAgent(asyncio.Protocol):
    """One agent's end of its link, and what it reported that is not safe yet."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self.crowd = crowd
        self.number = number
        self.identity = Identity(hashlib.sha256(b"wire agent %d" % number).digest())
        self.transport: asyncio.Transport | None = None
        self.link: AgentLink | None = None
        self._kept = crowd.home / f"node-{number}"
        self._instance = secrets.token_bytes(16)
        self._node_id = bytes.fromhex(self._kept.read_text()) if self._kept.exists() else None
        self._spool: list[Report] = []
        self._safe: int | None = None
        self._beats = 0
        self._prover = Prover(lambda: crowd.real, self._told) if crowd.real else None
        self._proving: set[asyncio.Future[None]] = set()

    @property
    def node_id(self) -> UUID:
        assert self._node_id, "it has joined"
        return UUID(bytes=self._node_id)

    @property
    def has_joined(self) -> bool:
        return self._node_id is not None

    @property
    def is_linked(self) -> bool:
        return self.link is not None and self.link.state is LinkPhase.OPEN

    @property
    def last_number(self) -> int:
        """The number of its newest report; the pool says up to which number all are safe."""
        return (self._safe or 0) + len(self._spool)

    def report(self, *reports: Report) -> None:
        """Say something, now or as soon as there is a link again."""
        self._spool += reports
        if self.is_linked:
            assert self.link
            for one in reports:
                self.link.report(one)
            self.flush()

    def accept(self, offer: Assignment) -> None:
        self.report(messages.AcceptedMessage(offer.attempt_id, offer.lease))

    def decline(self, offer: Assignment, reason: str = "It is not a good day.") -> None:
        self.report(messages.DeclinedMessage(offer.attempt_id, offer.lease, reason))

    def progress(self, offer: Assignment) -> None:
        self.report(messages.ProgressMessage(offer.attempt_id, offer.lease, 500_000))

    def deliver(self, *receipts: Receipt) -> None:
        sent = batch_bytes(receipts)
        self.report(messages.ReceiptsMessage(sent, sign_batch(self.identity, sent)))

    def receipt(
        self, offer: Assignment, *, wrong: bool = False, failure: str | None = None, lease: int | None = None
    ) -> Receipt:
        """What an honest node signs of this offer, unless something else is asked for. Of a large result the hash."""
        asked = json.loads(offer.task)["parameters"]
        result = b"" if failure is not None else result_of(asked["seed"], asked["m"]) + (b"!" if wrong else b"")
        at = Instant(time.time_ns() // 1_000)
        return Receipt(
            task_id=UUID(bytes=offer.task_id),
            attempt_id=UUID(bytes=offer.attempt_id),
            node_id=self.node_id,
            lease=offer.lease if lease is None else lease,
            result_sha256=b"" if failure is not None else hashlib.sha256(result).digest(),
            artefact=None,
            inline=result if len(result) <= INLINE_MAX_BYTES else b"",
            envelopes=(),
            started_at=Instant(at - SECOND // 100),
            finished_at=at,
            device_ms=10,
            numeric_class="exact",
            proof=b"",
            outcome=AttemptOutcome.DONE if failure is None else AttemptOutcome.FAILED,
            exit_code=0 if failure is None else 1,
            reason=failure or "",
        )

    # The link

    async def dial(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        door = self.crowd.door
        token = door.token if self._node_id is None else None
        applicant = CallingAgent(self.identity, door.known_by, "tidemill/0.1.0", self._instance, self._node_id, token)
        made = None if self._safe is None else self._safe + len(self._spool)
        self.link = AgentLink(applicant, secrets.token_bytes(32), made, _now())
        port = self.crowd.random.choice(door.ports)
        self._framed = agent_end(self.link, f"ws://127.0.0.1:{port}/link")
        self._full = False
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", port)
        except OSError:
            self.crowd.again(self)

    def tick(self) -> None:
        if self.link is None or self.transport is None or self.transport.is_closing():
            return
        if self.is_linked:
            self._beats += 1
            self.link.beat(BeatMessage(self._beats, 20, 1_000, 500_000, 1, [DeviceBeatMessage(10, 100, 50, 60)]))
        for event in self.link.tick(_now()):
            self._meant(event)
        self.flush()

    def flush(self) -> None:
        while not self._full and self.transport and not self.transport.is_closing():
            pieces, _ = self._framed.to_send(FRAME)
            if not pieces:
                return
            self.transport.writelines(pieces)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.flush()

    def data_received(self, data: bytes) -> None:
        for event in self._framed.receive(data, _now()):
            self._meant(event)
        self.flush()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = self.link = None
        self.crowd.again(self)

    def _meant(self, event: LinkEvent) -> None:
        match event:
            case Joined(node_id, _, received):
                self._joined(node_id, received)
            case Safe(received):
                self._forget(received)
            case Instructed(orders):
                for order in orders:
                    if isinstance(order, Assignment):
                        self.crowd.offered(self, order)
                    elif isinstance(order, Cancel):
                        self.crowd.called_off(self, order)
                    elif isinstance(order, Wish) and order.kind == CHALLENGE and self._prover:
                        proving = asyncio.ensure_future(self._prover.take(order.body))
                        self._proving.add(proving)
                        proving.add_done_callback(self._proving.discard)
            case TurnedAway() | Closed():
                assert self.transport
                self.transport.abort()

    def _joined(self, node_id: bytes, received: int) -> None:
        """What arrived is forgotten, and all else is sent again, in its order. A new spool begins with what it is."""
        if self._node_id is None:
            self._kept.write_text(node_id.hex())
            self._node_id = node_id
        if self._safe is None:
            self._safe = received
            self._spool = [
                Facts("machine", facts_of(self.crowd.claimed(self.number))),
                Facts("sandbox", self.crowd.carries),
                *self._spool,
            ]
        self._forget(received)
        assert self.link
        for one in self._spool:
            self.link.report(one)

    async def _told(self, report: Report) -> bool:
        self.report(report)
        return True

    def _forget(self, received: int) -> None:
        assert self._safe is not None
        del self._spool[: max(0, received - self._safe)]
        self._safe = max(self._safe, received)
        self.crowd.safe(self, received)


def _now() -> Instant:
    return Instant(time.monotonic_ns() // 1_000)
