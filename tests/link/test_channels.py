"""Channels through real sockets: both ways, many at once, slow beside fast, cancelled, and cut off."""

import asyncio
import json
import secrets
from uuid import uuid4

import pytest

from tests.worlds.agents.link_ends import Agent, Served, echoing, served, soon
from tidemill.link.held.speed import BYTES_MAX
from tidemill.link.held.streams import ChannelBroken, HeldStream
from tidemill.wire.channels import WINDOW, ChannelEnded, ChannelOpened, ChannelReceived
from tidemill.wire.link import LinkEvent


async def whole(stream: HeldStream) -> bytes:
    """Everything until the other side ends."""
    pieces = []
    while piece := await stream.read():
        pieces.append(piece)
    return b"".join(pieces)


async def echoed(pool: Served, agent: Agent, content: bytes) -> bytes:
    (node_id,) = pool.links.link_generations()
    stream = pool.links.open_channel(node_id, "echo")

    async def send() -> None:
        for start in range(0, len(content), 50_000):
            await stream.write(content[start : start + 50_000])
        stream.end()

    _, back = await asyncio.gather(send(), whole(stream))
    return back


def arrived(agent: Agent, number: int) -> int:
    return sum(
        len(event.chunk) for event in agent.events if isinstance(event, ChannelReceived) if event.channel == number
    )


async def test_many_channels_at_once_carry_everything_both_ways() -> None:
    async with served() as pool:
        agent, _ = await pool.welcomed()
        agent.answer = echoing
        contents = [secrets.token_bytes(size) for size in (0, 1, 1000, 300_000, 2_000_000, 70_000, 65_536, 262_144)]
        backs = await asyncio.gather(*(echoed(pool, agent, content) for content in contents))
        assert backs == contents
        await soon(lambda: len(agent.link.channels) == 0)


async def test_an_agent_opens_a_channel_for_a_purpose_that_is_served() -> None:
    async with served() as pool:
        got: list[tuple[str, bytes, bytes]] = []

        async def serve(stream: HeldStream) -> None:
            got.append((stream.purpose, stream.about, await whole(stream)))
            await stream.write(b"thanks")
            stream.end()

        pool.links.accept("letters", serve)
        agent, _ = await pool.welcomed()
        number = agent.channel("letters", b"hello")
        agent.write(number, b"some text")
        agent.end(number)
        await agent.until(ChannelEnded)
        assert got == [("letters", b"hello", b"some text")]
        assert ChannelReceived(number, b"thanks") in agent.events


async def test_a_purpose_that_nobody_serves_is_refused_and_the_link_goes_on() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        number = agent.channel("nonsense")
        assert await agent.until(ChannelEnded) == ChannelEnded(number, "unknown_purpose")
        assert node_id in pool.links.link_generations()


async def test_a_server_that_fails_or_forgets_to_end_ends_its_channel_and_nothing_else() -> None:
    async with served() as pool:

        async def fail(stream: HeldStream) -> None:
            raise ZeroDivisionError

        async def forget(stream: HeldStream) -> None:
            await stream.write(b"and then?")

        pool.links.accept("fails", fail)
        pool.links.accept("forgets", forget)
        agent, node_id = await pool.welcomed()
        for purpose, code in (("fails", "failed"), ("forgets", "unfinished")):
            over = ChannelEnded(agent.channel(purpose), code)
            await agent.until(ChannelEnded, over.__eq__)
        assert node_id in pool.links.link_generations()


async def test_a_slow_reader_holds_up_its_writer_and_nobody_else() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        slow = pool.links.open_channel(node_id, "slow")
        writing = asyncio.create_task(_write_all(slow, 4 * WINDOW))
        await asyncio.sleep(0.3)
        assert not writing.done()
        assert arrived(agent, 2) == WINDOW
        agent.answer = _echo_all_but(2)
        assert await asyncio.wait_for(echoed(pool, agent, bytes(3 * WINDOW)), 10) == bytes(3 * WINDOW)
        assert not writing.done()
        writing.cancel()


async def test_what_the_pool_does_not_read_is_not_sent() -> None:
    async with served() as pool:
        streams: list[HeldStream] = []
        done = asyncio.Event()

        async def serve(stream: HeldStream) -> None:
            streams.append(stream)
            await done.wait()
            assert len(await whole(stream)) == 3 * WINDOW
            stream.end()

        pool.links.accept("hoard", serve)
        agent, _ = await pool.welcomed()
        number = agent.channel("hoard")
        agent.write(number, bytes(3 * WINDOW))
        agent.end(number)
        await asyncio.sleep(0.3)
        assert sum(map(len, streams[0]._chunks)) == WINDOW
        done.set()
        assert await agent.until(ChannelEnded) == ChannelEnded(number, "")


async def test_cancelling_from_either_side_reaches_the_other_at_once() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        ours = pool.links.open_channel(node_id, "job")
        writing = asyncio.create_task(_write_all(ours, 10 * WINDOW))
        await agent.until(ChannelOpened)
        ours.cancel("customer_left")
        assert await agent.until(ChannelEnded) == ChannelEnded(2, "customer_left")
        with pytest.raises(ChannelBroken, match="customer_left"):
            await writing
        theirs = pool.links.open_channel(node_id, "job")
        reading = asyncio.create_task(whole(theirs))
        await agent.until(ChannelOpened, lambda event: isinstance(event, ChannelOpened) and event.channel == 4)
        agent.end(4, "no_runner")
        with pytest.raises(ChannelBroken, match="no_runner"):
            await reading


async def test_a_cancel_still_works_after_an_end() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        stream = pool.links.open_channel(node_id, "job")
        stream.end()
        await agent.until(ChannelEnded)
        stream.cancel("late")
        await agent.until(ChannelEnded, lambda event: event == ChannelEnded(2, "late"))


async def test_a_link_that_is_lost_breaks_its_channels() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        stream = pool.links.open_channel(node_id, "job")
        reading = asyncio.create_task(stream.read())
        await agent.until(ChannelOpened)
        agent.abort()
        with pytest.raises(ChannelBroken, match="link_lost"):
            await reading
        with pytest.raises(ChannelBroken, match="not_held"):
            pool.links.open_channel(node_id, "job")
        with pytest.raises(ChannelBroken, match="not_held"):
            pool.links.open_channel(uuid4(), "job")


async def test_streams_that_are_over_are_forgotten() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        agent.answer = echoing
        for _ in range(600):  # more than a link may have at once
            assert await echoed(pool, agent, b"x") == b"x"
        connection = pool.links._held[node_id]
        connection.tick(pool.links.time.now())
        assert len(connection._streams) <= 1


async def test_an_agent_measures_its_link() -> None:
    async with served() as pool:
        agent, _ = await pool.welcomed()
        agent.answer = _use_up
        number = _measure(agent, down=3_000_000, up=2_000_000)
        assert await agent.until(ChannelEnded) == ChannelEnded(number, "")
        assert arrived(agent, number) == 3_000_000


@pytest.mark.parametrize(
    "about", [b"", b"{}", b'{"down_bytes": -1, "up_bytes": 0}', b'{"down_bytes": %d, "up_bytes": 0}' % (BYTES_MAX + 1)]
)
async def test_a_measurement_without_bounds_is_refused(about: bytes) -> None:
    async with served() as pool:
        agent, _ = await pool.welcomed()
        number = agent.channel("speed", about)
        assert await agent.until(ChannelEnded) == ChannelEnded(number, "malformed")


async def test_a_node_measures_once_at_a_time() -> None:
    async with served() as pool:
        agent, _ = await pool.welcomed()
        _measure(agent, down=0, up=1000, send=False)
        second = _measure(agent, down=0, up=0)
        assert await agent.until(ChannelEnded) == ChannelEnded(second, "busy")


def _measure(agent: Agent, *, down: int, up: int, send: bool = True) -> int:
    number = agent.channel("speed", json.dumps({"down_bytes": down, "up_bytes": up}).encode())
    if send:
        agent.write(number, bytes(up))
    return number


def _use_up(agent: Agent, event: LinkEvent) -> None:
    if isinstance(event, ChannelReceived):
        agent.link.channels.use_up(event.channel, len(event.chunk))


def _echo_all_but(number: int):  # type: ignore[no-untyped-def]
    def answer(agent: Agent, event: LinkEvent) -> None:
        if getattr(event, "channel", None) != number:
            echoing(agent, event)

    return answer


async def _write_all(stream: HeldStream, count: int) -> None:
    for _ in range(0, count, 64 * 1024):
        await stream.write(bytes(64 * 1024))
