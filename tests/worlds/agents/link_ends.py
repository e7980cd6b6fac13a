"""Both ends of links for tests: a registry in memory, a server on a real socket, and agents that dial it."""

import asyncio
import secrets
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from tests.worlds.receiving import fresh
from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.signatures import Identity, fingerprint
from tidemill.link.held.door import LinkRules
from tidemill.link.held.registry import (
    Acknowledgement,
    AdmissionDenial,
    AdmissionGrant,
    AgentCall,
    BeatArrival,
    LinkGeneration,
    ReportsAnswer,
    ReportsArrival,
    Supersession,
)
from tidemill.link.held.server import Links
from tidemill.wire.channels import ChannelEnded, ChannelReceived
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink, Closed, Joined, LinkEvent
from tidemill.wire.link import TurnedAway as SentAway
from tidemill.wire.link_frames import agent_end
from tidemill.wire.messages import BeatMessage, Facts, Report, Wish

POOL = Identity(bytes(range(32)))
RULES = LinkRules(beat_ms=30_000)
BEAT = BeatMessage(1, 5, 1000, 50_000, None, [])
PATIENCE_S = 40


class StillClock:
    """The time of beats; nothing in a link server goes by it."""

    trusted = True

    def now(self) -> Instant:
        return Instant(1_800_000_000_000_000)


class Trouble(Fault):
    """What a registry raises that cannot answer."""

    code = "trouble_of_a_test"


@dataclass
class MemoryRegistry:
    """Nodes by their key. It keeps everything it was told; `gate` holds its answers back, `broken` makes it fail.

    What nodes in `held_back` reported is decided when they are no longer there.
    """

    nodes: dict[bytes, UUID] = field(default_factory=dict)
    generations: dict[UUID, int] = field(default_factory=lambda: defaultdict(int))
    received: dict[UUID, int] = field(default_factory=lambda: defaultdict(int))
    reports: dict[UUID, list[Report]] = field(default_factory=lambda: defaultdict(list))
    batches: list[int] = field(default_factory=list)
    beats: list[BeatArrival] = field(default_factory=list)
    alive: list[LinkGeneration] = field(default_factory=list)
    ended: list[LinkGeneration] = field(default_factory=list)
    refusals: list[tuple[str, str, UUID | None]] = field(default_factory=list)
    orders: Sequence[Wish] = ()
    removed: set[UUID] = field(default_factory=set)
    broken: bool = False
    held_back: set[UUID] = field(default_factory=set)
    deciding: set[UUID] = field(default_factory=set)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def admit(self, callers: Sequence[AgentCall]) -> Sequence[AdmissionGrant | AdmissionDenial]:
        self.batches.append(len(callers))
        await self._answering()
        return [self._admit(caller) for caller in callers]

    async def heard(self, beats: Sequence[BeatArrival], links: Sequence[LinkGeneration]) -> Sequence[Supersession]:
        await self._answering()
        self.beats += beats
        self.alive += links
        return [
            Supersession(held, "superseded", "Another link is newer.")
            for held in links
            if self.generations[held.node_id] != held.generation
        ]

    async def reported(self, heard: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        nodes = {one.link.node_id for one in heard}
        assert not nodes & self.deciding, "the order of a node's reports is kept by one batch at a time"
        self.deciding |= nodes
        try:
            while nodes & self.held_back:
                await asyncio.sleep(0.01)
            await self._answering()
            return [self._receive(one) for one in heard]
        finally:
            self.deciding -= nodes

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        await self._answering()
        self.ended += links

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        self.refusals.append((code, address, node_id))

    def _admit(self, caller: AgentCall) -> AdmissionGrant | AdmissionDenial:
        if caller.hello.join_token == "bad":
            return AdmissionDenial("token_unknown", "This join token is not known.")
        node_id = self.nodes.setdefault(caller.hello.key, UUID(bytes=secrets.token_bytes(16)))
        if node_id in self.removed:
            return AdmissionDenial("node_removed", "This node was removed.")
        self.generations[node_id] += 1
        return AdmissionGrant(LinkGeneration(node_id, self.generations[node_id]), self.received[node_id], self.orders)

    def _receive(self, heard: ReportsArrival) -> ReportsAnswer:
        held = heard.link
        if held.generation != self.generations[held.node_id]:
            return Supersession(held, "superseded", "Another link is newer.")
        items, self.received[held.node_id] = fresh(heard.reports, self.received[held.node_id])
        self.reports[held.node_id] += items
        return Acknowledgement(held, self.received[held.node_id])

    async def _answering(self) -> None:
        await self.gate.wait()
        await asyncio.sleep(0)
        if self.broken:
            raise Trouble("The registry is away.")


class Agent(asyncio.Protocol):
    """An agent's end on a real socket. Every event is kept; `until` waits for one."""

    def __init__(self, link: AgentLink, url: str) -> None:
        self.link = link
        self.framed = agent_end(link, url)
        self.events: list[LinkEvent] = []
        self.lost = asyncio.Event()
        self.answer: Callable[[Agent, LinkEvent], None] = lambda _agent, _event: None
        self._changed = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self._full = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.flush()

    def data_received(self, data: bytes) -> None:
        for event in self.framed.receive(data, _now()):
            self.events.append(event)
            self.answer(self, event)
        self._changed.set()
        self.flush()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._changed.set()

    def flush(self) -> None:
        assert self.transport
        while not self._full and not self.transport.is_closing():
            pieces, events = self.framed.to_send(64 * 1024)
            if not pieces:
                return
            self.transport.writelines(pieces)
            for event in events:
                self.events.append(event)
                self.answer(self, event)

    def report(self, *reports: Report) -> None:
        for report in reports:
            self.link.report(report)
        self.flush()

    def beat(self, beat: BeatMessage = BEAT) -> None:
        self.link.beat(beat)
        self.flush()

    def abort(self) -> None:
        assert self.transport
        self.transport.abort()

    async def until(self, kind: type, where: Callable[[LinkEvent], bool] = lambda _: True) -> LinkEvent:
        """The first event of a kind, which may have come already."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                self._changed.clear()
                for event in self.events:
                    if isinstance(event, kind) and where(event):
                        return event
                await self._changed.wait()

    async def joined(self) -> Joined:
        event = await self.until(Joined | SentAway | Closed)  # type: ignore[arg-type]
        assert isinstance(event, Joined), event
        return event

    async def closed(self) -> Closed:
        event = await self.until(Closed)
        assert isinstance(event, Closed)
        return event

    def channel(self, purpose: str, about: bytes = b"") -> int:
        number = self.link.channels.open(purpose, about)
        assert number
        self.flush()
        return number

    def write(self, number: int, content: bytes) -> None:
        self.link.channels.write(number, content)
        self.flush()

    def end(self, number: int, code: str = "") -> None:
        self.link.channels.end(number, code)
        self.flush()


@dataclass
class Served:
    """A link server that listens, and its registry."""

    links: Links
    registry: MemoryRegistry
    port: int

    async def agent(
        self, identity: Identity | None = None, tls: ssl.SSLContext | None = None, **changes: object
    ) -> Agent:
        """Dial; the handshake goes on by itself."""
        applicant = CallingAgent(
            identity or Identity(secrets.token_bytes(32)), fingerprint(POOL.key), "tidemill/0.1.0", bytes(16)
        )
        applicant = replace(applicant, **changes)  # type: ignore[arg-type]
        link = AgentLink(applicant, secrets.token_bytes(32), None, _now())
        loop = asyncio.get_running_loop()
        url = f"ws://127.0.0.1:{self.port}/link"
        _, agent = await loop.create_connection(lambda: Agent(link, url), "127.0.0.1", self.port, ssl=tls)
        return agent

    async def welcomed(self, identity: Identity | None = None) -> tuple[Agent, UUID]:
        agent = await self.agent(identity)
        return agent, UUID(bytes=(await agent.joined()).node_id)

    async def raw(self, path: str = "/link", headers: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that has asked for a link by hand."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(opening(path, headers))
        return reader, writer


def opening(path: str = "/link", headers: str = "") -> bytes:
    """A request for a link."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: pool\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: tidemill.link\r\n{headers}\r\n"
    ).encode()


@asynccontextmanager
async def served(rules: LinkRules = RULES, registry: MemoryRegistry | None = None) -> AsyncIterator[Served]:
    """A link server on a port of its own."""
    registry = registry or MemoryRegistry()
    links = Links(registry, POOL, StillClock(), rules)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(links.connection, "127.0.0.1", 0)
    running = asyncio.create_task(links.run())
    try:
        yield Served(links, registry, server.sockets[0].getsockname()[1])
        assert not running.done(), running.exception()
    finally:
        server.close()
        if isinstance(registry, MemoryRegistry):
            registry.broken = False
            registry.gate.set()
        await links.drain()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def echoing(agent: Agent, event: LinkEvent) -> None:
    """Send back on each channel what comes, and end when it ends."""
    if isinstance(event, ChannelReceived):
        agent.link.channels.use_up(event.channel, len(event.chunk))
        agent.write(event.channel, event.chunk)
    elif isinstance(event, ChannelEnded) and not event.code:
        agent.end(event.channel)


def facts(number: int) -> Facts:
    return Facts("clock", b'{"utc_offset_s": %d}' % number)


async def soon(holds: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(patience_s):
        while not holds():
            await asyncio.sleep(0.01)


def _now() -> Instant:
    return Instant(int(asyncio.get_running_loop().time() * 1_000_000))
