"""What a hostile peer can do to a link server: nothing that costs more than a bounded piece of memory and a while."""

import asyncio

import psutil
import pytest

from tests.worlds.agents.link_ends import Served, opening, served, soon
from tidemill.core.clock import SECOND
from tidemill.link.held.door import LinkRules
from tidemill.wire.channels import CHANNELS_MAX
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import FRAME_MAX, ChannelOpen, Ping, Wish, encode
from tidemill.wire.websocket import Opcode, write_frame


def frame(opcode: int, content: bytes, *, masked: bool = True, final: bool = True, length: int | None = None) -> bytes:
    """A websocket frame, as wrong as one likes."""
    size = len(content) if length is None else length
    first = (0x80 if final else 0) | opcode
    mask = 0x80 if masked else 0
    if size < 126:
        head = bytes([first, mask | size])
    elif size < 1 << 16:
        head = bytes([first, mask | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([first, mask | 127]) + size.to_bytes(8, "big")
    return head + (bytes(4) if masked else b"") + content


async def answer_to(pool: Served, path: str = "/link", headers: str = "") -> str:
    """The first line of the answer to a request for a link."""
    reader, writer = await pool.raw(path, headers)
    line = (await asyncio.wait_for(reader.readline(), 40)).decode()
    writer.close()
    return line


async def is_cut_off(reader: asyncio.StreamReader) -> None:
    async with asyncio.timeout(40):
        try:
            while await reader.read(1 << 16):
                pass
        except ConnectionError:
            pass


def resident_mib() -> float:
    return psutil.Process().memory_info().rss / 1024 / 1024


async def test_other_paths_and_browsers_get_no_link() -> None:
    async with served() as pool:
        assert "101" in await answer_to(pool)
        assert "404" in await answer_to(pool, "/elsewhere")
        assert "404" in await answer_to(pool, "/link/")
        assert "403" in await answer_to(pool, headers="Origin: https://pool.example\r\n")
        await soon(lambda: pool.links.shaking_hands == 0)
        assert [code for code, _, _ in pool.registry.refusals] == ["http_403"]


async def test_one_address_cannot_fill_the_doorway() -> None:
    async with served(LinkRules(beat_ms=30_000, shaking_from_one_address_max=3)) as pool:
        held = [await pool.raw() for _ in range(3)]
        for reader, _ in held:
            assert b"101" in await reader.readline()
        reader, writer = await pool.raw()
        answer = (await reader.read(2000)).decode()
        assert answer.startswith("HTTP/1.1 503")
        assert "Retry-After: 2" in answer
        assert "from this address" in answer
        writer.close()
        held[0][1].close()
        await soon(lambda: pool.links.shaking_hands == 2)
        assert "101" in await answer_to(pool)


async def test_a_trusted_proxy_stands_for_many_and_says_for_whom() -> None:
    rules = LinkRules(beat_ms=30_000, shaking_from_one_address_max=1, trusted_proxies=("127.0.0.0/8",))
    async with served(rules) as pool:
        kept = [await pool.raw() for _ in range(5)]
        for reader, _ in kept:
            assert b"101" in await reader.readline()
        forwarded = "X-Forwarded-For: 9.9.9.9, 203.0.113.7, 127.0.0.1\r\n"
        reader, _ = await pool.raw(headers=forwarded)
        assert b"101" in await reader.readline()
        assert "503" in await answer_to(pool, headers=forwarded)
        assert pool.registry.refusals[-1][:2] == ("http_503", "203.0.113.7")


async def test_whom_nobody_trusts_says_nothing_about_addresses() -> None:
    async with served(LinkRules(beat_ms=30_000, shaking_from_one_address_max=1)) as pool:
        kept = await pool.raw(headers="X-Forwarded-For: 198.51.100.1\r\n")
        await soon(lambda: pool.links.shaking_hands == 1)
        assert "503" in await answer_to(pool, headers="X-Forwarded-For: 198.51.100.2\r\n")
        assert pool.registry.refusals[-1][1] == "127.0.0.1"
        kept[1].close()


async def test_the_whole_process_has_limits_too() -> None:
    async with served(LinkRules(beat_ms=30_000, shaking_max=2)) as pool:
        kept = [await pool.raw() for _ in range(2)]
        await soon(lambda: pool.links.shaking_hands == 2)
        assert "503" in await answer_to(pool)
        assert len(kept) == 2
    async with served(LinkRules(beat_ms=30_000, connections_max=1)) as pool:
        await pool.welcomed()
        assert "503" in await answer_to(pool)


async def test_a_handshake_that_is_not_finished_in_time_is_cut_off() -> None:
    async with served(LinkRules(beat_ms=1_000)) as pool:
        slow_request = await asyncio.open_connection("127.0.0.1", pool.port)
        slow_request[1].write(opening()[:20])
        mute = await pool.raw()
        await soon(lambda: pool.links.shaking_hands == 1)
        pool.links.time._counted_us += 16 * SECOND
        await is_cut_off(slow_request[0])
        await is_cut_off(mute[0])
        assert [code for code, _, _ in pool.registry.refusals] == ["handshake_late"] * 2


NO_FRAMES = {
    "text": frame(Opcode.TEXT, b"hello"),
    "no message": frame(Opcode.BINARY, b"hello"),
    "not masked": frame(Opcode.BINARY, b"hello", masked=False),
    "a continuation of nothing": frame(Opcode.CONT, b"hello"),
    "an unknown kind": frame(3, b"hello"),
    "an unknown control frame": frame(0xB, b"hello"),
    "a reserved bit": frame(0x40 | Opcode.BINARY, b"hello"),
    "a long ping": frame(Opcode.PING, bytes(200)),
    "a ping in pieces": frame(Opcode.PING, b"", final=False),
    "too long": frame(Opcode.BINARY, b"", length=FRAME_MAX + 1),
    "enormous": frame(Opcode.BINARY, b"", length=2**63),
    "two messages mixed": frame(Opcode.BINARY, b"a", final=False) + frame(Opcode.BINARY, b"b"),
    "an empty piece": frame(Opcode.BINARY, b"a", final=False) + frame(Opcode.CONT, b"", final=False),
    "pieces that are too long": frame(Opcode.BINARY, bytes(FRAME_MAX), final=False) * 2,
    "a close": frame(Opcode.CLOSE, b""),
    "noise": bytes(range(200, 256)) * 20,
}


@pytest.mark.parametrize("sent", NO_FRAMES.values(), ids=NO_FRAMES)
async def test_whatever_is_no_frame_of_ours_ends_the_connection(sent: bytes) -> None:
    async with served() as pool:
        reader, writer = await pool.raw()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await is_cut_off(reader)
        await soon(lambda: pool.links.shaking_hands == 0)


async def test_a_frame_that_never_ends_waits_in_bounded_memory() -> None:
    async with served() as pool:
        reader, writer = await pool.raw()
        await reader.readuntil(b"\r\n\r\n")
        writer.write(frame(Opcode.BINARY, b"", length=4_096))
        for _ in range(50):
            writer.write(b"x")
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert pool.links.shaking_hands == 1
        assert pool.links.counters.frames_in == 0
        writer.close()


async def test_a_peer_that_asks_without_end_and_never_reads_is_cut_off_and_others_are_served() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        other, _ = await pool.welcomed()
        assert agent.transport
        agent.transport.pause_reading()
        before = resident_mib()
        ping = b"".join(write_frame(Opcode.BINARY, encode(Ping(1)), masked=True)) * 1000
        flooding = asyncio.create_task(_flood(agent.transport, ping))
        other.beat()
        await soon(lambda: bool(pool.registry.beats))
        await asyncio.sleep(2)
        flooding.cancel()
        for _ in range(200):
            pool.links.instruct(node_id, [Wish("rules", bytes(60_000))])
        await asyncio.sleep(0.3)
        pool.links.time._counted_us += 31 * SECOND
        await soon(lambda: node_id not in pool.links.link_generations())
        assert resident_mib() - before < 50


async def test_a_flood_of_small_frames_is_slowed_down_and_not_kept() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        for _ in range(100):
            for _ in range(100):
                agent.link._queue.append(encode(Ping(1)))
            agent.flush()
        await asyncio.sleep(0.2)
        assert pool.links.counters.frames_in < 4_000
        await soon(lambda: pool.links.counters.frames_in > 10_000)
        assert node_id in pool.links.link_generations()


async def test_websocket_pings_are_answered_once_for_many() -> None:
    async with served() as pool:
        reader, writer = await pool.raw()
        await reader.readuntil(b"\r\n\r\n")
        await reader.read(1000)
        writer.write(b"".join(frame(Opcode.PING, b"%d" % number) for number in range(200)))
        pong = await asyncio.wait_for(reader.read(1000), 5)
        assert pong.count(b"\x8a") < 20
        assert b"199" in pong
        writer.close()


async def test_ten_thousand_channels_are_refused_one_by_one_or_all_at_once() -> None:
    async with served() as pool:
        agent, node_id = await pool.welcomed()
        for number in range(1, 20_000, 2):
            agent.link._queue.append(encode(ChannelOpen(number, "nonsense", 1)))
        agent.flush()
        await soon(lambda: pool.links.counters.frames_in > 10_000, 20)
        assert node_id in pool.links.link_generations()
        assert len(pool.links._held[node_id].channels) <= CHANNELS_MAX
        silent, silent_id = await pool.welcomed()
        assert silent.transport
        silent.transport.pause_reading()
        opens = b"".join(
            b"".join(write_frame(Opcode.BINARY, encode(ChannelOpen(number, "x", 1)), masked=True))
            for number in range(1, 400_000, 2)
        )
        silent.transport.write(opens)
        await asyncio.sleep(2)
        held = pool.links._held.get(silent_id)
        assert held is None or len(held.channels._urgent) <= 8 * CHANNELS_MAX


async def test_a_peer_that_resets_at_any_moment_leaves_nothing_behind() -> None:
    async with served() as pool:
        for moment in range(30):
            agent = await pool.agent()
            await asyncio.sleep(moment / 3000)
            agent.abort()
        await soon(lambda: not any(pool.links._slots))
        assert pool.links.shaking_hands == 0
        assert pool.links.open == 0
        agent, _ = await pool.welcomed()
        assert agent.link.state is LinkPhase.OPEN


async def _flood(transport: asyncio.Transport, content: bytes) -> None:
    while not transport.is_closing():
        if transport.get_write_buffer_size() < 1 << 20:
            transport.write(content)
        await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        (("GET", "POST"), 400),
        (("HTTP/1.1", "HTTP/1.0"), 400),
        (("Host: pool", "no colon at all"), 400),
        (("Host: pool", " folded: line"), 400),
        (("Version: 13", "Version: 8"), 426),
        (("tidemill.link", "chat"), 426),
        (("Upgrade: websocket", "Upgrade: h2c"), 426),
        (("Connection: Upgrade", "Connection: close"), 426),
        (("AAAAAAAAAAAAAAAAAAAAAA==", "short"), 426),
        (("Host: pool", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), 426),
    ],
)
async def test_a_request_that_is_not_for_a_link_is_answered_and_closed(changed: tuple[str, str], status: int) -> None:
    async with served() as pool:
        reader, writer = await asyncio.open_connection("127.0.0.1", pool.port)
        writer.write(opening().decode().replace(*changed).encode())
        assert str(status) in (await asyncio.wait_for(reader.readline(), 40)).decode()
        await is_cut_off(reader)
        assert pool.links.shaking_hands == 0
