"""The link's protocol, driven without a socket: what two ends say to each other, and what a hostile one can do."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Opcode

from tests.worlds.receiving import fresh
from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import Identity, fingerprint
from tidemill.wire import handshake
from tidemill.wire.channels import (
    CHANNELS_MAX,
    WINDOW,
    ChannelEnded,
    ChannelHasRoom,
    ChannelOpened,
    ChannelReceived,
    Channels,
)
from tidemill.wire.errors import ProtocolError
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import (
    HANDSHAKE_US,
    AgentLink,
    Closed,
    Greeted,
    Instructed,
    Joined,
    Link,
    LinkEvent,
    PoolLink,
    Reported,
    RoundTrip,
    Safe,
    TurnedAway,
)
from tidemill.wire.link_frames import FramedLink, agent_end, pool_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import (
    FRAME_MAX,
    Assignment,
    BeatMessage,
    Challenge,
    ChannelChunk,
    ChannelOpen,
    Ping,
    ProgressMessage,
    RefusedMessage,
    Reports,
    encode,
    from_agent,
)
from tidemill.wire.outbox import Outbox
from tidemill.wire.websocket import FrameReader, write_frame

NOW = Instant(1_800_000_000 * SECOND)
POOL = Identity(bytes(range(32)))
NODE = Identity(bytes(range(1, 33)))
INSTANCE = bytes(range(16))
NODE_ID = b"n" * 16
BEAT = BeatMessage(1, 5, 1000, 50_000, None, [])


def applicant(**changes: object) -> CallingAgent:
    return replace(CallingAgent(NODE, fingerprint(POOL.key), "tidemill 0.1.0", INSTANCE, NODE_ID), **changes)  # type: ignore[arg-type]


def ends(sent: int = 0, **changes: object) -> tuple[AgentLink, PoolLink]:
    return AgentLink(applicant(**changes), secrets.token_bytes(32), sent, NOW), PoolLink(
        POOL, secrets.token_bytes(32), NOW
    )


def carried(sender: Link, receiver: Link, now: Instant = NOW) -> list[LinkEvent]:
    """Carry everything that one end has to say to the other. Answers what it meant there."""
    events: list[LinkEvent] = []
    while found := sender.next_frame():
        events.extend(receiver.receive(found[0], now))
    return events


def opened(received: int = 0, sent: int = 0) -> tuple[AgentLink, PoolLink]:
    agent, pool = ends(sent)
    carried(pool, agent)
    carried(agent, pool)
    pool.welcome(node_id=NODE_ID, generation=1, received=received, beat_ms=30_000)
    carried(pool, agent)
    assert agent.state is pool.state is LinkPhase.OPEN
    return agent, pool


def progress(number: int) -> ProgressMessage:
    return ProgressMessage(number.to_bytes(16, "big"), 1, number % 1_000_000)


def test_an_agent_and_its_pool_come_to_know_each_other() -> None:
    agent, pool = ends(sent=7)
    assert carried(pool, agent) == []
    (greeted,) = carried(agent, pool)
    assert isinstance(greeted, Greeted)
    assert (greeted.hello.key, greeted.hello.node_id, greeted.hello.sent) == (NODE.key, NODE_ID, 7)
    pool.welcome(node_id=NODE_ID, generation=4, received=5, beat_ms=30_000)
    assert carried(pool, agent) == [Joined(NODE_ID, 4, 5)]


def test_an_agent_tells_nothing_to_a_pool_that_is_not_its_own() -> None:
    agent, pool = ends(pool_fingerprint=fingerprint(NODE.key))
    (closed,) = carried(pool, agent)
    assert isinstance(closed, Closed)
    assert closed.code == "wrong_pool"
    (bye,) = carried(agent, pool)
    assert isinstance(bye, Closed)
    assert not bye.ours


def test_a_pool_that_only_shows_the_key_cannot_welcome() -> None:
    agent, pool = ends()
    carried(pool, agent)
    carried(agent, pool)
    impostor = PoolLink(POOL, secrets.token_bytes(32), NOW)
    impostor._pool = NODE
    impostor._hello, impostor.state = pool._hello, LinkPhase.ANSWERING
    impostor._challenge = pool._challenge
    impostor._queue.clear()
    impostor.welcome(node_id=NODE_ID, generation=1, received=0, beat_ms=30_000)
    (closed,) = carried(impostor, agent)
    assert isinstance(closed, Closed)
    assert closed.code == "wrong_pool"


@pytest.mark.parametrize("forged", ["unsigned", "by another key", "for another hello", "with another code"])
def test_only_the_pool_itself_turns_an_agent_away(forged: str) -> None:
    """The pool's key is public: whoever shows it could tell every agent that its node was removed."""
    agent, pool = ends()
    carried(pool, agent)
    carried(agent, pool)
    hello, removed = pool._hello, RefusedMessage("node_removed", "This node was removed.")
    assert hello
    signed = {
        "unsigned": removed,
        "by another key": handshake.refusal(NODE, pool._challenge, hello, removed),
        "for another hello": handshake.refusal(
            POOL, pool._challenge, msgspec.structs.replace(hello, nonce=bytes(32)), removed
        ),
        "with another code": msgspec.structs.replace(
            handshake.refusal(POOL, pool._challenge, hello, RefusedMessage("busy", removed.sentence)), code=removed.code
        ),
    }
    (closed,) = agent.receive(encode(signed[forged]), NOW)
    assert isinstance(closed, Closed)
    assert (closed.code, closed.ours) == ("refusal_unsigned", True)


@pytest.mark.parametrize("field", ["key", "nonce", "version", "node_id", "signature"])
def test_a_hello_with_anything_changed_is_refused(field: str) -> None:
    challenge = Challenge(1, 1, POOL.key, secrets.token_bytes(32))
    hello = handshake.hello(applicant(), challenge, 1, secrets.token_bytes(32), 0)
    other: dict[str, object] = {
        "key": POOL.key,
        "nonce": bytes(32),
        "version": 2,
        "node_id": b"x" * 16,
        "signature": bytes(64),
    }
    assert handshake.is_genuine_hello(hello, challenge)
    assert not handshake.is_genuine_hello(msgspec.structs.replace(hello, **{field: other[field]}), challenge)


def test_a_hello_that_was_recorded_opens_no_second_link() -> None:
    agent, pool = ends()
    carried(pool, agent)
    found = agent.next_frame()
    assert found
    assert isinstance(pool.receive(found[0], NOW)[0], Greeted)
    (closed,) = PoolLink(POOL, secrets.token_bytes(32), NOW).receive(found[0], NOW)
    assert isinstance(closed, Closed)
    assert closed.code == "wrong_signature"


def test_versions_that_do_not_meet_are_told_to_both() -> None:
    agent, _ = ends()
    (closed,) = agent.receive(encode(Challenge(2, 3, POOL.key, bytes(32))), NOW)
    assert isinstance(closed, Closed)
    assert closed.code == "version"
    assert "2–3" in closed.sentence


def test_a_refusal_says_why_and_when_to_come_back() -> None:
    agent, pool = ends()
    carried(pool, agent)
    carried(agent, pool)
    pool.refuse("node_retired", "This node was removed.", 60_000)
    assert carried(pool, agent) == [TurnedAway("node_retired", "This node was removed.", 60_000)]
    assert agent.state is LinkPhase.CLOSED


@pytest.mark.parametrize("message", [BEAT, Reports(1, [progress(1)]), Ping(1), ChannelOpen(1, "x", 10)])
def test_nothing_is_heard_before_the_handshake_is_over(message: BeatMessage) -> None:
    _, pool = ends()
    (closed,) = pool.receive(encode(message), NOW)
    assert isinstance(closed, Closed)
    assert closed.code == "out_of_turn"


def test_who_does_not_finish_the_handshake_is_gone() -> None:
    agent, pool = ends()
    assert not pool.tick(Instant(NOW + HANDSHAKE_US))
    (closed,) = pool.tick(Instant(NOW + HANDSHAKE_US + 1))
    assert isinstance(closed, Closed)
    assert closed.code == "handshake_late"
    assert agent.state is LinkPhase.GREETING


def test_a_silent_peer_is_gone_and_a_live_one_is_measured() -> None:
    agent, pool = opened()
    later = Instant(NOW + 30 * SECOND)
    assert not pool.tick(later)
    carried(pool, agent, later)
    (trip,) = carried(agent, pool, Instant(later + 20_000))
    assert trip == RoundTrip(20_000)
    (closed,) = pool.tick(Instant(later + 91 * SECOND))
    assert isinstance(closed, Closed)
    assert closed.code == "silent"


def test_orders_and_acknowledgements_arrive() -> None:
    agent, pool = opened()
    pool.instruct([Assignment(b"a" * 16, 3, 1000, b"task")])
    assert carried(pool, agent) == [Instructed([Assignment(b"a" * 16, 3, 1000, b"task")])]
    agent.report(progress(1))
    (reported,) = carried(agent, pool)
    assert isinstance(reported, Reported)
    pool.acknowledge(1)
    assert carried(pool, agent) == [Safe(1)]


def test_a_peer_that_does_not_read_is_cut_off_with_bounded_memory() -> None:
    _, pool = opened()
    for number in range(10_000):
        pool.acknowledge(number)
    (closed,) = pool.tick(NOW)
    assert isinstance(closed, Closed)
    assert closed.code == "not_reading"
    assert len(pool._queue) == 1


def test_a_large_frame_and_garbage_end_the_link_and_nothing_else() -> None:
    nested, no_text = b"\x93\x09\x01" + b"\x91" * 100_000, b"\x93\x11\xa1\xff\xa0"
    simple = (bytes(FRAME_MAX + 1), b"", b"\xc1", b"\x92\x01", encode(BEAT)[:-1], b"\xdd\xff\xff\xff\xff")
    for frame in (*simple, nested, no_text):
        _, pool = opened()
        (closed,) = pool.receive(frame, NOW)
        assert isinstance(closed, Closed)
        assert pool.state is LinkPhase.CLOSED
        assert pool.receive(encode(BEAT), NOW) == []


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 400))
def test_a_frame_with_bytes_changed_never_breaks_more_than_the_link(noise: bytes, at: int) -> None:
    agent, pool = opened()
    agent.report(progress(1))
    found = agent.next_frame()
    assert found
    frame = found[0]
    changed = frame[: at % len(frame)] + noise + frame[at % len(frame) + len(noise) :]
    pool.receive(changed, NOW)
    assert pool.state in (LinkPhase.OPEN, LinkPhase.CLOSED)


def test_an_acknowledgement_of_what_was_never_sent_ends_the_link() -> None:
    outbox = Outbox(0)
    outbox.add(progress(1))
    with pytest.raises(ProtocolError, match="never sent"):
        outbox.acknowledge(1)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 300))
def test_every_report_arrives_once_and_in_order_however_often_the_link_breaks(seed: int, count: int) -> None:
    random = Random(seed)
    arrived: list[ProgressMessage] = []
    received = safe = 0
    while safe < count:
        agent, pool = opened(received=received, sent=count)
        for number in range(received + 1, count + 1):
            assert agent.report(progress(number)) == number
        while random.random() > 0.2 and safe < count:  # else the link breaks, with whatever was on its way
            if (found := agent.next_frame()) and random.random() > 0.1:
                for event in pool.receive(found[0], NOW):
                    assert isinstance(event, Reported)
                    items, received = fresh(event.reports, received)
                    arrived.extend(items)  # type: ignore[arg-type]
                    pool.acknowledge(received)
            for event in carried(pool, agent) if random.random() > 0.3 else []:
                assert isinstance(event, Safe)
                safe = event.received
        safe = max(safe, received) if received == count else safe
    assert arrived == [progress(number) for number in range(1, count + 1)]


def pumped(one: Channels, other: Channels, use: Callable[[Channels, ChannelReceived], None]) -> dict[int, bytes]:
    """Carry messages both ways until nothing is left. Answers what arrived at each channel of the other end."""
    arrived: dict[int, bytearray] = {}
    moved = True
    while moved:
        moved = False
        for sender, receiver in ((one, other), (other, one)):
            while found := sender.next_message():
                moved = True
                for event in receiver.receive(found[0]):
                    if isinstance(event, ChannelReceived):
                        arrived.setdefault(event.channel, bytearray()).extend(event.chunk)
                        use(receiver, event)
    return {number: bytes(content) for number, content in arrived.items()}


def used_at_once(channels: Channels, event: ChannelReceived) -> None:
    channels.use_up(event.channel, len(event.chunk))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.binary(max_size=3_000), max_size=30), min_size=1, max_size=8))
def test_bytes_of_many_channels_arrive_whole_and_in_order(pieces: Sequence[Sequence[bytes]]) -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    sent: dict[int, bytes] = {}
    for content in pieces:
        number = agent.open("test")
        assert number is not None
        for piece in content:
            agent.write(number, piece)
        agent.end(number)
        sent[number] = b"".join(content)
    assert pumped(agent, pool, used_at_once) == {number: content for number, content in sent.items() if content}


def test_a_reader_that_does_not_read_costs_one_window_and_stops_nobody() -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    slow, quick = agent.open("slow"), agent.open("quick")
    assert slow and quick  # noqa: PT018
    agent.write(slow, bytes(10 * WINDOW))
    agent.write(quick, bytes(3 * WINDOW))

    def use(channels: Channels, event: ChannelReceived) -> None:
        if event.channel == quick:
            channels.use_up(quick, len(event.chunk))

    arrived = pumped(agent, pool, use)
    assert (len(arrived[slow]), len(arrived[quick])) == (WINDOW, 3 * WINDOW)


def test_a_small_message_does_not_wait_behind_large_ones() -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    large = [agent.open("large") for _ in range(10)]
    for number in large:
        agent.write(number or 0, bytes(WINDOW))
    while agent.next_message() and len(agent._urgent):
        pass
    small = agent.open("small")
    assert small
    agent.write(small, b"now")
    before = 0
    while found := agent.next_message():
        if found[0] == ChannelChunk(small, b"now"):
            break
        before += len(found[0].chunk) if isinstance(found[0], ChannelChunk) else 0
    assert before <= 10 * 16 * 1024 + 64 * 1024
    assert len(pool) == 0


def test_a_writer_is_told_when_there_is_room_again() -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    number = agent.open("full")
    assert number
    assert not agent.write(number, bytes(WINDOW))
    told = []
    while found := agent.next_message():
        told.append(found[1])
        list(pool.receive(found[0]))
    assert ChannelHasRoom(number) in told


def test_more_than_the_credit_and_foreign_numbers_end_the_link() -> None:
    pool = Channels(odd=False)
    assert list(pool.receive(ChannelOpen(1, "x", 100))) == [ChannelOpened(1, "x", b"")]
    for _ in range(WINDOW // 65536):
        list(pool.receive(ChannelChunk(1, bytes(65536))))
    with pytest.raises(ProtocolError, match="allowed"):
        list(pool.receive(ChannelChunk(1, b"!")))
    with pytest.raises(ProtocolError, match="number"):
        list(pool.receive(ChannelOpen(2, "x", 100)))
    with pytest.raises(ProtocolError, match="number"):
        list(pool.receive(ChannelOpen(1, "x", 100)))


def test_channels_are_bounded_in_number_and_freed_when_both_have_ended() -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    numbers = [agent.open("many") for _ in range(CHANNELS_MAX)]
    assert agent.open("one more") is None
    for number in numbers:
        agent.end(number or 0)
    pumped(agent, pool, used_at_once)
    for number in numbers:
        pool.end(number or 0)
    pumped(agent, pool, used_at_once)
    assert len(agent) == len(pool) == 0
    for number in range(2 * CHANNELS_MAX + 1, 4 * CHANNELS_MAX, 2):
        list(pool.receive(ChannelOpen(number, "x", 1)))
    assert list(pool.receive(ChannelOpen(9999, "x", 1))) == []
    found = pool.next_message()
    assert found
    assert found[0].channel == 9999


def test_an_end_with_a_code_is_over_at_once() -> None:
    agent, pool = Channels(odd=True), Channels(odd=False)
    number = agent.open("job")
    assert number
    agent.write(number, bytes(1000))
    agent.end(number, "cancelled")
    events = []
    while found := agent.next_message():
        events.extend(pool.receive(found[0]))
    assert events == [ChannelOpened(number, "job", b""), ChannelEnded(number, "cancelled")]
    assert len(agent) == len(pool) == 0


def test_texts_and_lists_beyond_their_bounds_are_malformed() -> None:
    for message in (
        ChannelOpen(1, "x" * 101, 1),
        Reports(1, [progress(1)] * 1001),
        BeatMessage(1, 101, 1, 1, None, []),
        BeatMessage(2**60, 1, 1, 1, None, []),
    ):
        with pytest.raises(msgspec.ValidationError):
            from_agent.decode(encode(message))


def framed() -> tuple[FramedLink, FramedLink]:
    agent, pool = ends()
    return agent_end(agent, "ws://127.0.0.1:8420/link"), pool_end(pool)


def exchanged(one: FramedLink, other: FramedLink, piece: int = 1 << 20) -> list[LinkEvent]:
    """Carry bytes both ways, in pieces as a network might cut them, until nothing is left. Answers what they meant."""
    events: list[LinkEvent] = []
    moved = True
    while moved:
        moved = False
        for sender, receiver in ((one, other), (other, one)):
            written = b"".join(sender.to_send(1 << 20)[0])
            moved = moved or bool(written)
            for start in range(0, len(written), piece):
                events += receiver.receive(written[start : start + piece], NOW)
    return events


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_a_link_opens_over_a_websocket_however_the_network_cuts_its_bytes(piece: int) -> None:
    agent, pool = framed()
    (greeted,) = exchanged(agent, pool, piece)
    assert isinstance(greeted, Greeted)
    assert isinstance(pool.link, PoolLink)
    pool.link.welcome(node_id=NODE_ID, generation=1, received=0, beat_ms=30_000)
    assert exchanged(agent, pool, piece) == [Joined(NODE_ID, 1, 0)]
    pool.link.close("draining", "The process stops.")
    assert exchanged(agent, pool, piece) == [Closed("draining", "The process stops.", ours=False)]


def test_what_asks_for_another_address_or_speaks_text_gets_no_link() -> None:
    agent, pool = agent_end(ends()[0], "ws://127.0.0.1:8420/elsewhere"), framed()[1]
    (closed,) = exchanged(agent, pool)
    assert isinstance(closed, Closed)
    assert closed.code == "no_link"
    assert pool.is_over
    talker, listener = framed()
    exchanged(talker, listener)
    (closed,) = listener.receive(b"".join(write_frame(Opcode.TEXT, b"hello", masked=True)), NOW)
    assert isinstance(closed, Closed)
    assert closed.code == "malformed"


def test_a_connection_that_breaks_is_told_once() -> None:
    agent, pool = framed()
    exchanged(agent, pool)
    for piece in agent.finish():
        assert [type(event) for event in pool.receive(piece, NOW)] == [Closed]
    assert agent.is_over


@given(
    st.lists(st.binary(max_size=70_000) | st.binary(max_size=200), max_size=6),
    st.lists(st.integers(0, 80_000), max_size=12),
    st.booleans(),
    st.integers(1, 3),
)
@settings(max_examples=200, deadline=None)
def test_frames_are_the_same_however_they_are_cut_and_however_often_the_reader_rests(
    contents: list[bytes], cuts: list[int], masked: bool, at_once: int
) -> None:
    sent = b"".join(piece for content in contents for piece in write_frame(Opcode.BINARY, content, masked=masked))
    reader, places = FrameReader(masked=masked), sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    heard: list[bytes] = []

    def hear(content: bytes) -> bool:
        with closing(reader.frames_in(content)) as frames:
            some = [bytes(frame.content) for _, frame in zip(range(at_once), frames, strict=False)]
        heard.extend(some)
        return bool(some)

    for start, end in pairwise(places):
        hear(sent[start:end])
    while hear(b""):
        pass
    assert heard == contents
