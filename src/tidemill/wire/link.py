"""The protocol of the link, without I/O: frames and the time go in, events come out, frames to send are taken.

The owner of the socket calls `receive` for each frame, `tick` now and then, and `next_frame` whenever the socket takes
more. Instructions, beats and the like go first, then reports and channels in turns. A peer's mistake ends the link with
a code and a sentence, never with an exception. Nothing grows without bound: a peer that does not read is cut off.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import Identity
from tidemill.wire import handshake
from tidemill.wire.channels import ChannelEvent, Channels
from tidemill.wire.errors import ProtocolError
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link_phases import LINKS, LinkPhase, LinkStep
from tidemill.wire.messages import (
    FRAME_MAX,
    OLDEST_VERSION,
    UNREADABLE,
    VERSION,
    Acknowledged,
    BeatMessage,
    Bye,
    Challenge,
    ChannelChunk,
    ChannelCredit,
    ChannelEnd,
    ChannelOpen,
    Hello,
    Instruction,
    Instructions,
    Message,
    Ping,
    Pong,
    RefusedMessage,
    Report,
    Reports,
    Welcome,
    encode,
    from_agent,
    from_pool,
)
from tidemill.wire.outbox import Outbox

HANDSHAKE_US = 15 * SECOND
_SILENT_BEATS = 3
_QUEUE_MAX = 2_000
_FIRST_BEAT_MS = 30_000


@dataclass(frozen=True)
class Greeted:
    """The pool's side: an agent has shown that it has its key. Answer with `welcome` or `refuse`."""

    hello: Hello


@dataclass(frozen=True)
class Joined:
    """The agent's side: the pool is ours and knows us."""

    node_id: bytes
    generation: int
    received: int


@dataclass(frozen=True)
class TurnedAway:
    """The agent's side: the pool does not want us."""

    code: str
    sentence: str
    retry_ms: int | None


@dataclass(frozen=True)
class Beaten:
    beat: BeatMessage


@dataclass(frozen=True)
class Reported:
    reports: Reports


@dataclass(frozen=True)
class Instructed:
    instructions: Sequence[Instruction]


@dataclass(frozen=True)
class Safe:
    """Reports up to this number are safe with the pool."""

    received: int


@dataclass(frozen=True)
class RoundTrip:
    took_us: int


@dataclass(frozen=True)
class Closed:
    """The link is over. `ours` says whether this side found the mistake."""

    code: str
    sentence: str
    ours: bool


LinkEvent: TypeAlias = (
    Greeted | Joined | TurnedAway | Beaten | Reported | Instructed | Safe | RoundTrip | Closed | ChannelEvent
)


class Link:
    """What both ends share."""

    def __init__(self, now: Instant, *, odd: bool, decoder: "msgspec.msgpack.Decoder[Any]") -> None:
        self.state = LinkPhase.GREETING
        self.channels = Channels(odd=odd)
        self.beat_ms = _FIRST_BEAT_MS
        self._decoder = decoder
        self._queue: deque[bytes] = deque()
        self._began_at = self._heard_at = self._pinged_at = now
        self._pings = 0
        self._awaited: tuple[int, Instant] | None = None
        self._turn = False
        self._unreturned_end: Closed | None = None

    def receive(self, frame: bytes | memoryview, now: Instant) -> Sequence[LinkEvent]:
        """What a frame of the peer means."""
        if self.state is LinkPhase.CLOSED:
            return self._take_end()
        self._heard_at = max(self._heard_at, now)
        if len(frame) > FRAME_MAX:
            self._break("frame_too_large", f"A frame has at most {FRAME_MAX} bytes.")
            return self._take_end()
        events: list[LinkEvent] = []
        try:
            events.extend(self._understand(self._decoder.decode(frame), now))
        except UNREADABLE as error:
            self._break("malformed", f"A frame could not be understood: {error}.")
        except ProtocolError as error:
            self._break(error.code, error.sentence)
        return [*events, *self._take_end()]

    def fail(self, error: ProtocolError) -> Sequence[LinkEvent]:
        """End the link because the peer broke the protocol below it."""
        self._break(error.code, error.sentence)
        return self._take_end()

    def excuse(self, now: Instant) -> None:
        """Do not count the silence until now: it was us who did not listen."""
        self._heard_at = max(self._heard_at, now)

    def tick(self, now: Instant) -> Sequence[LinkEvent]:
        """Look at the time: a peer that is silent for too long is gone."""
        if self.state in (LinkPhase.GREETING, LinkPhase.ANSWERING) and now - self._began_at > HANDSHAKE_US:
            self._break("handshake_late", "The other side took too long to say who it is.")
        elif self.state is LinkPhase.OPEN and now - self._heard_at > self._silence_us:
            self._break("silent", "Nothing was heard from the other side for too long.")
        elif self.state is LinkPhase.OPEN and now - self._pinged_at >= self.beat_ms * 1000:
            self._ping(now)
        return self._take_end()

    def close(self, code: str, sentence: str) -> None:
        """Say goodbye; what is queued is still sent."""
        if self.state is not LinkPhase.CLOSED:
            self._say(Bye(code, sentence))
            self._go(LinkStep.ENDED)

    def next_frame(self) -> tuple[bytes, LinkEvent | None] | None:
        """The next frame to send, and the event that sending it causes; None if there is nothing to send."""
        if self._queue:
            return self._queue.popleft(), None
        if self.state is not LinkPhase.OPEN:
            return None
        self._turn = not self._turn
        sources = (self._next_report, self._next_chunk) if self._turn else (self._next_chunk, self._next_report)
        return sources[0]() or sources[1]()

    @abstractmethod
    def _understand(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        """What a message means to this side."""

    def _next_report(self) -> tuple[bytes, LinkEvent | None] | None:
        """Only agents report."""
        return None

    def _next_chunk(self) -> tuple[bytes, LinkEvent | None] | None:
        pending = self.channels.next_message()
        return None if pending is None else (encode(pending[0]), pending[1])

    def _understand_shared(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        if isinstance(message, Bye):
            self._go(LinkStep.ENDED)
            yield Closed(message.code, message.sentence, ours=False)
        elif self.state is not LinkPhase.OPEN:
            raise ProtocolError("out_of_turn", "A message came before the handshake was over.")
        elif isinstance(message, Ping):
            self._say(Pong(message.number))
        elif isinstance(message, Pong):
            yield from self._ponged(message, now)
        elif isinstance(message, ChannelOpen | ChannelChunk | ChannelCredit | ChannelEnd):
            yield from self.channels.receive(message)
        else:
            raise ProtocolError("out_of_turn", "A message came that does not belong here.")

    def _go(self, step: LinkStep) -> None:
        self.state = LINKS[self.state, step]

    def _say(self, message: Message) -> None:
        if self.state is LinkPhase.CLOSED:
            return
        if len(self._queue) < _QUEUE_MAX:
            self._queue.append(encode(message))
        else:
            self._break("not_reading", "The other side does not read what it is sent.")

    def _break(self, code: str, sentence: str) -> None:
        """End the link because of a mistake: say which, and send nothing else."""
        if self.state is not LinkPhase.CLOSED:
            self._queue.clear()
            self._queue.append(encode(Bye(code, sentence[:500])))
            self._go(LinkStep.ENDED)
            self._unreturned_end = Closed(code, sentence, ours=True)

    def _take_end(self) -> Sequence[LinkEvent]:
        """The event that this side ended the link, unless it was returned before."""
        end, self._unreturned_end = self._unreturned_end, None
        return [end] if end else []

    def _ping(self, now: Instant) -> None:
        self._pinged_at = now
        self._pings += 1
        self._awaited = (self._pings, now)
        self._say(Ping(self._pings))

    def _ponged(self, pong: Pong, now: Instant) -> Iterator[LinkEvent]:
        if self._awaited and self._awaited[0] == pong.number:
            yield RoundTrip(max(0, now - self._awaited[1]))
            self._awaited = None

    @property
    def _silence_us(self) -> int:
        return _SILENT_BEATS * self.beat_ms * 1000


class AgentLink(Link):
    """The agent's end of a link."""

    def __init__(self, applicant: CallingAgent, nonce: bytes, sent: int | None, now: Instant) -> None:
        """`sent` is the number of the last report in the spool; None if the spool is new."""
        super().__init__(now, odd=True, decoder=from_pool)
        self._applicant = applicant
        self.nonce = nonce
        self._sent = sent
        self._challenge: Challenge | None = None
        self._hello: Hello | None = None
        self._outbox: Outbox | None = None

    @property
    def wants_reports(self) -> bool:
        """Whether more may be taken from the spool."""
        return self.state is LinkPhase.OPEN and self._outbox is not None and self._outbox.has_room

    def report(self, report: Report) -> int:
        """Send a report, the next of the spool. Answers the number it must have there."""
        assert self._outbox, "reports are sent on an open link"
        return self._outbox.add(report)

    def beat(self, beat: BeatMessage) -> None:
        assert self.state is LinkPhase.OPEN
        self._say(beat)

    def _understand(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        if isinstance(message, Challenge) and self.state is LinkPhase.GREETING:
            self._answer(message)
        elif isinstance(message, Welcome) and self.state is LinkPhase.ANSWERING:
            yield self._join(message)
        elif isinstance(message, RefusedMessage) and self.state is LinkPhase.ANSWERING:
            yield self._leave(message)
        elif isinstance(message, Instructions) and self.state is LinkPhase.OPEN:
            yield Instructed(message.items)
        elif isinstance(message, Acknowledged) and self._outbox is not None:
            self._outbox.acknowledge(message.received)
            yield Safe(message.received)
        else:
            yield from self._understand_shared(message, now)

    def _answer(self, challenge: Challenge) -> None:
        if not handshake.is_our_pool(self._applicant, challenge):
            raise ProtocolError("wrong_pool", "This is not the pool that the join token was made by.")
        version = handshake.shared_version(challenge)
        if version is None:
            theirs, ours = f"{challenge.oldest_version}–{challenge.version}", f"{OLDEST_VERSION}–{VERSION}"
            raise ProtocolError("version", f"The pool speaks versions {theirs} of the link, and this agent {ours}.")
        self._challenge = challenge
        self._hello = handshake.hello(self._applicant, challenge, version, self.nonce, self._sent or 0)
        self._say(self._hello)
        self._go(LinkStep.GREETED)

    def _join(self, welcome: Welcome) -> Joined:
        assert self._challenge and self._hello  # noqa: PT018  # we are answering
        if not handshake.is_genuine_welcome(welcome, self._challenge, self._hello):
            raise ProtocolError("wrong_pool", "The welcome is not signed by the pool that this agent knows.")
        if self._sent is not None and welcome.received > self._sent:
            raise ProtocolError("unknown_reports", "The pool has received reports that this agent never made.")
        self._go(LinkStep.WELCOMED)
        self.beat_ms = max(1, welcome.beat_ms)
        self._outbox = Outbox(welcome.received)
        return Joined(welcome.node_id, welcome.generation, welcome.received)

    def _leave(self, refused: RefusedMessage) -> TurnedAway:
        assert self._challenge and self._hello  # noqa: PT018  # we are answering
        if not handshake.is_genuine_refusal(refused, self._challenge, self._hello):
            raise ProtocolError(
                "refusal_unsigned", "Somebody who is not the pool that this agent knows turned it away."
            )
        self._go(LinkStep.REFUSED)
        return TurnedAway(refused.code, refused.sentence, refused.retry_ms)

    def _next_report(self) -> tuple[bytes, LinkEvent | None] | None:
        batch = self._outbox.batch() if self._outbox else None
        return None if batch is None else (encode(batch), None)


class PoolLink(Link):
    """The pool's end of a link."""

    def __init__(self, pool: Identity, nonce: bytes, now: Instant) -> None:
        super().__init__(now, odd=False, decoder=from_agent)
        self._pool = pool
        self._challenge = Challenge(OLDEST_VERSION, VERSION, pool.key, nonce)
        self._hello: Hello | None = None
        self._say(self._challenge)

    def welcome(self, *, node_id: bytes, generation: int, received: int, beat_ms: int) -> None:
        """Let the agent in."""
        assert self._hello and self.state is LinkPhase.ANSWERING  # noqa: PT018  # it has greeted
        self._say(
            handshake.welcome(
                self._pool,
                self._challenge,
                self._hello,
                node_id=node_id,
                generation=generation,
                received=received,
                beat_ms=beat_ms,
            )
        )
        self.beat_ms = beat_ms
        self._go(LinkStep.WELCOMED)

    def refuse(self, code: str, sentence: str, retry_ms: int | None = None) -> None:
        """Turn the agent away."""
        if self.state is not LinkPhase.CLOSED:
            assert self._hello, "nobody is turned away before they said hello"
            refused = RefusedMessage(code, sentence, retry_ms)
            self._say(handshake.refusal(self._pool, self._challenge, self._hello, refused))
            self._go(LinkStep.REFUSED)

    def instruct(self, instructions: Sequence[Instruction]) -> None:
        self._say(Instructions(list(instructions)))

    def acknowledge(self, received: int) -> None:
        self._say(Acknowledged(received))

    def _understand(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        if isinstance(message, Hello) and self.state is LinkPhase.GREETING:
            if not handshake.is_genuine_hello(message, self._challenge):
                raise ProtocolError("wrong_signature", "The hello is not signed by the key it shows, for this link.")
            if not OLDEST_VERSION <= message.version <= VERSION:
                raise ProtocolError("version", f"The pool speaks versions {OLDEST_VERSION}–{VERSION} of the link.")
            self._hello = message
            self._go(LinkStep.GREETED)
            yield Greeted(message)
        elif isinstance(message, BeatMessage) and self.state is LinkPhase.OPEN:
            yield Beaten(message)
        elif isinstance(message, Reports) and self.state is LinkPhase.OPEN:
            yield Reported(message)
        else:
            yield from self._understand_shared(message, now)
