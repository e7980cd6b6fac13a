"""Both ends of a link, fed with damaged frames and with true messages in any order: no exception, no growth."""

import gc
import secrets
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import psutil
import pytest

from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import Identity, fingerprint
from tidemill.wire.channels import CHANNELS_MAX, WINDOW, ChannelOpened, ChannelReceived
from tidemill.wire.errors import ProtocolError
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink, Closed, Greeted, Link, LinkEvent, PoolLink, Reported
from tidemill.wire.link_frames import FramedLink, agent_end, pool_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import (
    AcceptedMessage,
    Acknowledged,
    Assignment,
    BeatMessage,
    Bye,
    Cancel,
    Challenge,
    ChannelChunk,
    ChannelCredit,
    ChannelEnd,
    ChannelOpen,
    DeclinedMessage,
    DeviceBeatMessage,
    Facts,
    Hello,
    Instructions,
    LogLines,
    Ping,
    Pong,
    ProgressMessage,
    ReceiptsMessage,
    RefusedMessage,
    Reports,
    Welcome,
    Wish,
    encode,
)
from tidemill.wire.outbox import Outbox
from tidemill.wire.spool_reports import spool_report_in
from tidemill.wire.websocket import Opcode, write_frame

POOL = Identity(bytes(range(32)))
NODE = Identity(bytes(range(1, 33)))
LIVES = 200
"""The most messages of one link; then there is a new one."""

HARMFUL = (b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc1", b"\xdf\0\1\0\0", b"\x91" * 3000, b"\xa2\xff\xfe")
"""Lists and bytes of enormous length, what has no meaning, lists in lists, and what is no text."""

GROWTH_MAX = 30 * 1024 * 1024


class Corpus:
    """Messages of each side, made once and sent in any order; making them takes longer than understanding them."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._of_agent = [encode(random.choice(_OF_AGENT)(random)) for _ in range(2_000)]
        self._of_pool = [encode(random.choice(_OF_POOL)(random)) for _ in range(2_000)]

    def frame(self, link: Link) -> bytes:
        """What a peer might send: mostly what it may, now and then what the other side would, or damaged, or noise."""
        random = self._random
        kind = random.random()
        if kind < 0.1:
            return encode(
                ChannelOpen(link.channels._newest_theirs + (2 if link.channels._newest_theirs else 1), "x", 9)
            )
        mine, other = self._of_agent, self._of_pool
        if isinstance(link, AgentLink):
            mine, other = other, mine
        content = random.choice(other if kind < 0.11 else mine)
        if kind > 0.99:
            return random.randbytes(random.randrange(200))
        return damaged(random, content) if kind > 0.92 else content


def damaged(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0 if changed:
                changed[at % len(changed)] ^= 1 << random.randrange(8)
            case 1:
                changed[at:at] = random.randbytes(random.randrange(5))
            case 2:
                del changed[at : at + random.randrange(5)]
            case _:
                changed[at:at] = random.choice(
                    (b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc1", b"\xdf\0\1\0\0")
                )
    return bytes(changed)


def ends(random: Random) -> tuple[FramedLink, FramedLink]:
    """Both ends of a link: some as far as they have come by themselves, most open from the start, which is quicker."""
    applicant = CallingAgent(NODE, fingerprint(POOL.key), "tidemill/0.1.0", bytes(16), bytes(16))
    agent = agent_end(AgentLink(applicant, secrets.token_bytes(32), None, Instant(0)), "ws://127.0.0.1/link")
    pool = pool_end(PoolLink(POOL, secrets.token_bytes(32), Instant(0)))
    if random.random() < 0.9:
        agent.link._outbox = Outbox(0)  # type: ignore[attr-defined]
        for end in (agent, pool):
            end.link.state, end._opening = LinkPhase.OPEN, None
        return agent, pool
    for _ in range(random.randrange(4)):
        pool.receive(b"".join(agent.to_send(1 << 20)[0]) or b"\0", Instant(0))
        if pool.link.state is LinkPhase.ANSWERING:
            assert isinstance(pool.link, PoolLink)
            pool.link.welcome(node_id=bytes(16), generation=1, received=0, beat_ms=30_000)
        agent.receive(b"".join(pool.to_send(1 << 20)[0]) or b"\0", Instant(0))
    return agent, pool


def carried_on(random: Random, corpus: Corpus, end: FramedLink, now: Instant) -> Iterator[int]:
    """One life of one end: it hears what it may not, and does now and then what its owner would. Counts messages."""
    masked = isinstance(end.link, PoolLink)
    for _ in range(random.randrange(1, LIVES)):
        content = corpus.frame(end.link)
        if random.random() < 0.01:
            sent = damaged(random, b"".join(write_frame(Opcode.BINARY, content, masked=masked)))
        else:
            sent = b"".join(write_frame(Opcode.BINARY, content, masked=masked))
        end.small_frames = 0
        for event in end.receive(sent, now) if sent else ():
            meant(random, end, event)
        if random.random() < 0.3:
            end.to_send(random.choice((1, 1000, 1 << 20)))
        if random.random() < 0.05:
            now = Instant(now + random.randrange(60 * SECOND))
            for event in end.link.tick(now):
                meant(random, end, event)
        check(end)
        yield 1
        if end.link.state is LinkPhase.CLOSED or end.is_over:
            return


def meant(random: Random, end: FramedLink, event: LinkEvent) -> None:
    """What whoever has the socket does."""
    link = end.link
    match event:
        case Greeted():
            assert isinstance(link, PoolLink)
            if random.random() < 0.5:
                link.welcome(node_id=bytes(16), generation=1, received=0, beat_ms=30_000)
            else:
                link.refuse("no", "No.")
        case Reported(reports):
            for report in reports.items:
                understood(report)
        case ChannelReceived(number, chunk):
            if random.random() < 0.5:
                link.channels.use_up(number, len(chunk))
        case ChannelOpened(number):
            link.channels.write(number, bytes(random.randrange(1000)))
            if random.random() < 0.5:
                link.channels.end(number, random.choice(("", "no")))
        case Closed():
            assert link.state is LinkPhase.CLOSED or end.is_over


def understood(report: Any) -> None:
    if isinstance(report, Facts):
        with suppress(ProtocolError):
            spool_report_in(report)


def check(end: FramedLink) -> None:
    """Nothing of a link grows beyond its bounds, whatever it was told."""
    link = end.link
    assert len(link._queue) <= 2_000
    assert len(link.channels) <= CHANNELS_MAX
    assert len(link.channels._urgent) <= 10 * CHANNELS_MAX
    assert all(channel.allowed <= WINDOW for channel in link.channels._channels.values())
    assert end._reader._size <= 1 << 19


def fuzzed(seed: int, count: int) -> None:
    """Feed both ends until they have heard so many messages; memory is measured when a tenth of them is behind us."""
    random = Random(seed)
    corpus = Corpus(random)
    heard, before = 0, 0
    while heard < count:
        for end in ends(random):
            heard += sum(carried_on(random, corpus, end, Instant(0)))
        if not before and heard > count // 10:
            before = resident()
    grown = resident() - before
    assert grown < GROWTH_MAX, f"grown by {grown} bytes"


def resident() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


def test_a_hundred_thousand_messages_break_nothing() -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")  # noqa: T201  # shown when the test fails
    fuzzed(seed, 100_000)


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_ten_million_messages_break_nothing() -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")  # noqa: T201  # shown when the test fails
    fuzzed(seed, 10_000_000)


def _text(random: Random, most: int = 20) -> str:
    return "".join(random.choice("aé\0🚀 \n\x1b") for _ in range(random.randrange(most)))


def _number(random: Random) -> int:
    return random.choice((0, 1, 2, 3, 100, 2**31, 2**53, random.randrange(1000)))


def _small(random: Random) -> int:
    return random.choice((0, 1, 2, 3, 4, 5, 7, 2**31, random.randrange(1000)))


def _bytes(random: Random, count: int) -> bytes:
    return random.randbytes(count)


def _report(random: Random) -> Any:
    attempt, lease = _bytes(random, 16), _number(random)
    return random.choice(
        (
            AcceptedMessage(attempt, lease),
            DeclinedMessage(attempt, lease, _text(random)),
            ProgressMessage(attempt, lease, random.randrange(1_000_000)),
            LogLines(attempt, lease, _number(random), [_text(random) for _ in range(random.randrange(4))]),
            ReceiptsMessage(_bytes(random, random.randrange(100)), _bytes(random, 64)),
            Facts(
                random.choice(("machine", "dropped", "past_beat", "rules", "x")), _bytes(random, random.randrange(50))
            ),
        )
    )


def _order(random: Random) -> Any:
    attempt, lease = _bytes(random, 16), _number(random)
    return random.choice(
        (
            Assignment(attempt, lease, _number(random), _bytes(random, 20)),
            Cancel(attempt, lease, _text(random)),
            Wish(_text(random), _bytes(random, 20)),
        )
    )


def _beat(random: Random) -> BeatMessage:
    devices = [DeviceBeatMessage(random.randrange(101), _small(random), None, None) for _ in range(random.randrange(3))]
    return BeatMessage(_number(random), random.randrange(101), _small(random), _number(random), None, devices)


def _hello(random: Random) -> Hello:
    key, nonce, signature = _bytes(random, 32), _bytes(random, 32), _bytes(random, 64)
    return Hello(1, _text(random), key, nonce, signature, _bytes(random, 16), None, _text(random), _number(random))


_OF_BOTH = (
    *([lambda random: Ping(_number(random)), lambda random: Pong(_number(random))] * 2),
    lambda random: Bye(_text(random), _text(random)) if random.random() < 0.02 else Ping(1),
    lambda random: ChannelOpen(_small(random), _text(random), _small(random), _bytes(random, 5)),
    *([lambda random: ChannelChunk(_small(random), bytes(random.choice((0, 1, 100, 1000, 65_536))))] * 6),
    *([lambda random: ChannelCredit(_small(random), _small(random))] * 4),
    *([lambda random: ChannelEnd(_small(random), random.choice(("", "", "x")))] * 4),
)
_OF_AGENT = (
    *_OF_BOTH,
    _hello,
    *([_beat] * 6),
    *([lambda random: Reports(_number(random), [_report(random) for _ in range(random.randrange(1, 4))])] * 6),
)
_OF_POOL = (
    *_OF_BOTH,
    lambda random: Challenge(1, random.randrange(3), random.choice((POOL.key, NODE.key)), _bytes(random, 32)),
    lambda random: Welcome(_bytes(random, 16), _number(random), _number(random), _small(random), _bytes(random, 64)),
    lambda random: RefusedMessage(_text(random), _text(random), _small(random)),
    *([lambda random: Instructions([_order(random) for _ in range(random.randrange(1, 4))])] * 6),
    *([lambda _: Acknowledged(0)] * 6),
    lambda random: Acknowledged(_number(random)),
)
