"""A pool for agents to talk to: the pool's end of the protocol on real sockets, with what it was told kept in memory.

It knows nodes by their keys, takes reports once each, and gives orders. It can refuse, be silent, be away and come
back, lose answers, and cut links.
"""

import asyncio
import json
import secrets
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from tests.worlds.receiving import fresh
from tidemill.core.nodes.join_tokens import write_token
from tidemill.core.signatures import Identity, fingerprint
from tidemill.host.clocks import steady
from tidemill.wire.channels import ChannelEnded, ChannelOpened, ChannelReceived
from tidemill.wire.link import Beaten, Closed, Greeted, LinkEvent, PoolLink, Reported
from tidemill.wire.link_frames import FramedLink, pool_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import BeatMessage, Facts, Hello, Instruction, RefusedMessage, Report, Wish

BEAT_MS = 1_000
"""Links last three beats without a word: long enough for a machine that is busy with other tests."""


@dataclass
class Node:
    """What the pool keeps of a node."""

    node_id: UUID
    key: bytes
    generation: int = 0
    received: int = 0
    reports: list[Report] = field(default_factory=list)
    beats: list[BeatMessage] = field(default_factory=list)

    def facts(self, kind: str) -> list[bytes]:
        return [one.body for one in self.reports if isinstance(one, Facts) and one.kind == kind]


class PoolEnd:
    """The pool. It lives in the event loop of its test."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self.identity = Identity(secrets.token_bytes(32))
        self.nodes: dict[bytes, Node] = {}
        self.hellos: list[Hello] = []
        self.goodbyes: list[str] = []
        self.greeting: list[Instruction] = [Wish("rules", b"{}"), Wish("versions", b'{"accepted":true,"oldest":"0.1"}')]
        self.offers: Callable[[], Iterable[Instruction]] = tuple
        """What a node is offered on a new link, by what is known when it comes: its last link may still have told."""
        self.refusal: RefusedMessage | None = None
        self.loses_welcomes = 0
        self.loses_acknowledgements = False
        self.removes_leavers = False
        self.serves_speed = True
        self.links: list[_PoolSide] = []
        self._trust = trust
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"{'https://localhost' if self._trust else 'http://127.0.0.1'}:{self.port}"

    @property
    def token(self) -> str:
        return write_token(uuid4(), secrets.token_bytes(32), fingerprint(self.identity.key))

    @property
    def node(self) -> Node:
        """The only one."""
        (node,) = self.nodes.values()
        return node

    async def come(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _PoolSide(self), "127.0.0.1", self.port, ssl=self._trust
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def go(self) -> None:
        assert self._server
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Every link breaks without a word."""
        for link in list(self.links):
            link.transport.abort()

    def order(self, orders: Sequence[Instruction]) -> None:
        for link in self.links:
            if link.node:
                link.link.instruct(orders)
                link.flush()

    def close(self, code: str, sentence: str) -> None:
        for link in list(self.links):
            link.link.close(code, sentence)
            link.flush()

    def admit(self, hello: Hello) -> Node | RefusedMessage:
        self.hellos.append(hello)
        if self.refusal:
            return self.refusal
        if hello.key not in self.nodes and hello.join_token is None:
            return RefusedMessage("node_unknown", "The pool does not know this node.")
        return self.nodes.setdefault(hello.key, Node(uuid4(), hello.key))


class _PoolSide(asyncio.Protocol):
    def __init__(self, pool: PoolEnd) -> None:
        self.pool = pool
        self.link = PoolLink(pool.identity, secrets.token_bytes(32), steady())
        self.framed: FramedLink = pool_end(self.link)
        self.node: Node | None = None
        self.speed: dict[int, dict[str, int]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.pool.links.append(self)

    def data_received(self, data: bytes) -> None:
        for event in self.framed.receive(data, steady()):
            self._understand(event)
        for event in self.link.tick(steady()):
            self._understand(event)
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.links.remove(self)

    def flush(self) -> None:
        while not self.transport.is_closing():
            pieces, _ = self.framed.to_send(1_000_000)
            if not pieces:
                break
            self.transport.writelines(pieces)
        if self.link.state is LinkPhase.CLOSED or self.framed.is_over:
            self.transport.close()

    def _understand(self, event: LinkEvent) -> None:
        match event:
            case Greeted(hello):
                self._greet(hello)
            case Beaten(beat) if self.node:
                self.node.beats.append(beat)
            case Reported(reports) if self.node:
                items, self.node.received = fresh(reports, self.node.received)
                self.node.reports += items
                if not self.pool.loses_acknowledgements:
                    self.link.acknowledge(self.node.received)
                if self.pool.removes_leavers and self.node.facts("leave"):
                    self.link.close("node_removed", "This node was removed from the pool.")
            case ChannelOpened(channel, "speed", about) if self.pool.serves_speed:
                self.speed[channel] = json.loads(about) | {"got": 0}
            case ChannelOpened(channel):
                self.link.channels.end(channel, "unknown_purpose")
            case ChannelReceived(channel, chunk):
                self.speed[channel]["got"] += len(chunk)
                self.link.channels.use_up(channel, len(chunk))
            case ChannelEnded(channel, "") if channel in self.speed:
                asked = self.speed.pop(channel)
                assert asked["got"] == asked["up_bytes"]
                self.link.channels.write(channel, bytes(asked["down_bytes"]))
                self.link.channels.end(channel)
            case Closed(code):
                self.pool.goodbyes.append(code)

    def _greet(self, hello: Hello) -> None:
        node = self.pool.admit(hello)
        if isinstance(node, RefusedMessage):
            self.link.refuse(node.code, node.sentence, node.retry_ms)
        elif self.pool.loses_welcomes:
            self.pool.loses_welcomes -= 1
            self.transport.abort()
        else:
            node.generation += 1
            self.node = node
            self.link.welcome(
                node_id=node.node_id.bytes,
                generation=node.generation,
                received=node.received,
                beat_ms=BEAT_MS,
            )
            self.link.instruct([*self.pool.greeting, *self.pool.offers()])
