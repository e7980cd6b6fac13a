"""What whoever has a node of their own, or only a socket, can do to a link server and to everybody else's links."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from tests.link.test_hostile_peers import frame, is_cut_off
from tests.worlds.agents.link_ends import MemoryRegistry, Trouble, facts, served, soon
from tidemill.core.signatures import Identity
from tidemill.link.held.door import LinkRules
from tidemill.link.held.registry import ReportsAnswer, ReportsArrival
from tidemill.wire.messages import ChannelCredit
from tidemill.wire.websocket import Opcode


class OneFrameANode(MemoryRegistry):
    """A registry that takes one frame of a node at a time, as the one in the database does; `slow` holds it back."""

    slow: asyncio.Event

    async def reported(self, heard: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        assert len({one.link.node_id for one in heard}) == len(heard), "two frames of one node at once"
        await self.slow.wait()
        return await super().reported(heard)


async def test_a_node_that_comes_back_while_its_old_link_lingers_is_heard_on_the_new_one_only() -> None:
    registry = OneFrameANode()
    registry.slow = asyncio.Event()
    async with served(registry=registry) as pool:
        identity = Identity(bytes(range(1, 33)))
        old, node_id = await pool.welcomed(identity)
        assert old.transport
        old.transport.pause_reading()  # so that its link cannot be closed in order, and lingers
        number = old.channel("speed", b'{"down_bytes": 16777216, "up_bytes": 0}')
        old.link.channels._urgent.append(ChannelCredit(number, 2**31))
        for _ in range(3):
            old.report(facts(1))
            await asyncio.sleep(0.05)
        new = await pool.agent(identity)
        await new.joined()
        new.report(facts(2))
        await asyncio.sleep(0.1)
        registry.slow.set()
        await soon(lambda: registry.received[node_id] == 1)
        assert not old.lost.is_set()
        old.abort()


class Choking(MemoryRegistry):
    """A registry that cannot answer as long as one node is among those it is asked about."""

    on: UUID | None = None

    async def reported(self, heard: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        if any(one.link.node_id == self.on for one in heard):
            raise Trouble("It took too long.")
        return await super().reported(heard)


async def test_a_node_whose_reports_cannot_be_dealt_with_does_not_stop_the_others() -> None:
    registry = Choking()
    async with served(registry=registry) as pool:
        bad, registry.on = await pool.welcomed()
        others = [await pool.welcomed() for _ in range(10)]
        bad.report(facts(1))
        for agent, _ in others:
            agent.report(facts(1))
        await soon(lambda: all(registry.received[node_id] == 1 for _, node_id in others), 20)
        bad_id, registry.on = registry.on, None
        assert bad_id
        await soon(lambda: registry.received[bad_id] == 1)


async def test_whoever_has_not_said_who_they_are_is_listened_to_for_a_hello_and_no_more() -> None:
    async with served() as pool:
        long_frame = await pool.raw()
        long_frame[1].write(frame(Opcode.BINARY, bytes(8_192)))
        await is_cut_off(long_frame[0])
        in_pieces = await pool.raw()
        in_pieces[1].write(frame(Opcode.BINARY, b"..", final=False) + frame(Opcode.CONT, b"..", final=False) * 4_096)
        await is_cut_off(in_pieces[0])
        assert [code for code, _, _ in pool.registry.refusals] == ["frame_too_large"] * 2


@pytest.mark.parametrize("told", ["operator", "203.0.113.7 (trusted)", "fe80::1%\x01", "\x7f\x00", "x" * 300])
async def test_what_a_proxy_passes_on_is_no_address_unless_it_is_one(told: str) -> None:
    async with served(LinkRules(beat_ms=30_000, shaking_max=0, trusted_proxies=("127.0.0.1",))) as pool:
        reader, _ = await pool.raw(headers=f"X-Forwarded-For: 203.0.113.7, {told}\r\n")
        assert b"503" in await reader.readline()
        assert pool.registry.refusals == [("http_503", "127.0.0.1", None)]
