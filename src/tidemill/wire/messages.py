"""The messages of the link. Every text, list and number is bounded, so that what a peer sends cannot grow without end.

A frame is one message in MessagePack. A field is known by its position, so new ones are added at the end, with a
default; a peer that does not know them skips them.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

VERSION = 1
OLDEST_VERSION = 1
"""The versions of this protocol that we speak. A peer whose range does not meet ours is refused with both."""

FRAME_MAX = 256 * 1024
CHUNK_MAX = 64 * 1024
LINES_MAX = 500

Short = Annotated[str, Meta(max_length=100)]
Sentence = Annotated[str, Meta(max_length=500)]
OutputLine = Annotated[str, Meta(max_length=4_000)]
Id = Annotated[bytes, Meta(min_length=16, max_length=16)]
Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Nonce = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Small = Annotated[int, Meta(ge=0, le=2**31)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Degrees = Annotated[int, Meta(ge=-100, le=300)]
Token = Annotated[str, Meta(max_length=300)]


class Message(Struct, frozen=True, array_like=True):
    """Base of all messages."""


# The handshake: the pool speaks first, so that the agent's answer cannot be an old one.


class Challenge(Message, frozen=True, tag=1):
    """The pool: this is my key; sign this nonce."""

    oldest_version: Small
    version: Small
    pool_key: Key
    nonce: Nonce


class Hello(Message, frozen=True, tag=2):
    """The agent: this is who I am, and which run of me. A newcomer has no node id yet, and shows a join token."""

    version: Small
    agent: Short
    key: Key
    nonce: Nonce
    signature: Signature
    instance: Id
    node_id: Id | None = None
    join_token: Token | None = None
    sent: Count = 0


class Welcome(Message, frozen=True, tag=3):
    """The pool: I know you; this is your link's generation, and the number of your last report that arrived."""

    node_id: Id
    generation: Count
    received: Count
    beat_ms: Small
    signature: Signature


class RefusedMessage(Message, frozen=True, tag=4):
    """The pool: no, and why; and when it may be worth trying again, if ever."""

    code: Short
    sentence: Sentence
    retry_ms: Small | None = None
    signature: Signature | None = None


# What an agent reports. Beats may be lost; reports are numbered and arrive once.


class DeviceBeatMessage(Message, frozen=True, tag=1):
    """How one device is right now."""

    utilisation_pct: Percent
    memory_used_mib: Small
    temperature_c: Degrees | None
    power_w: Small | None


class BeatMessage(Message, frozen=True, tag=5):
    """I am alive, and this is how I am."""

    number: Count
    cpu_pct: Percent
    memory_used_mib: Small
    disk_free_mib: Count
    round_trip_ms: Small | None
    devices: Annotated[list[DeviceBeatMessage], Meta(max_length=64)]


class AcceptedMessage(Message, frozen=True, tag=10):
    attempt_id: Id
    lease: Count


class DeclinedMessage(Message, frozen=True, tag=11):
    attempt_id: Id
    lease: Count
    reason: Sentence


class ProgressMessage(Message, frozen=True, tag=12):
    attempt_id: Id
    lease: Count
    share_ppm: Annotated[int, Meta(ge=0, le=1_000_000)]


class LogLines(Message, frozen=True, tag=13):
    """Lines of a task's output, the first of which has this number."""

    attempt_id: Id
    lease: Count
    first: Count
    lines: Annotated[list[OutputLine], Meta(max_length=LINES_MAX)]


class ReceiptsMessage(Message, frozen=True, tag=14):
    """A batch of receipts under one signature."""

    batch: Annotated[bytes, Meta(max_length=128 * 1024)]
    signature: Signature


class Facts(Message, frozen=True, tag=15):
    """What the machine is: hardware, versions, labels, the owner's rules; as JSON that the core understands."""

    kind: Short
    body: Annotated[bytes, Meta(max_length=64 * 1024)]


Report: TypeAlias = AcceptedMessage | DeclinedMessage | ProgressMessage | LogLines | ReceiptsMessage | Facts


class Reports(Message, frozen=True, tag=6):
    """Reports in their order; the first has this number."""

    first: Count
    items: Annotated[list[Report], Meta(min_length=1, max_length=1_000)]


# What the pool instructs. An instruction repeats what the database says, so a lost one is given again.


class Assignment(Message, frozen=True, tag=20):
    """Finish this within `deadline_ms` after it arrives. All attempts of one task carry the same `task`."""

    attempt_id: Id
    lease: Count
    deadline_ms: Count
    task: Annotated[bytes, Meta(max_length=64 * 1024)]
    task_id: Id = bytes(16)


class Cancel(Message, frozen=True, tag=21):
    attempt_id: Id
    lease: Count
    reason: Sentence


class Wish(Message, frozen=True, tag=22):
    """A wish of the owner or the pool: drain, pause, rules, a challenge; as JSON that the core understands."""

    kind: Short
    body: Annotated[bytes, Meta(max_length=64 * 1024)]


Instruction: TypeAlias = Assignment | Cancel | Wish


class Instructions(Message, frozen=True, tag=7):
    items: Annotated[list[Instruction], Meta(min_length=1, max_length=1_000)]


class Acknowledged(Message, frozen=True, tag=8):
    """The pool: all reports up to this number are safe; forget them."""

    received: Count


class Ping(Message, frozen=True, tag=9):
    """Either side: answer with the same number, so that I know how long it takes."""

    number: Count


class Pong(Message, frozen=True, tag=16):
    number: Count


class Bye(Message, frozen=True, tag=17):
    """Either side: I close the link, and why."""

    code: Short
    sentence: Sentence


# Channels: streams of bytes through the link.


class ChannelOpen(Message, frozen=True, tag=30):
    channel: Small
    purpose: Short
    credit: Small
    about: Annotated[bytes, Meta(max_length=4_096)] = b""


class ChannelChunk(Message, frozen=True, tag=31):
    channel: Small
    chunk: Annotated[bytes, Meta(max_length=CHUNK_MAX)]


class ChannelCredit(Message, frozen=True, tag=32):
    """So many more bytes may be sent on this channel."""

    channel: Small
    credit: Small


class ChannelEnd(Message, frozen=True, tag=33):
    """No more bytes from this side; with a code, from neither, and why."""

    channel: Small
    code: Short = ""


ChannelMessage: TypeAlias = ChannelOpen | ChannelChunk | ChannelCredit | ChannelEnd
FromAgent: TypeAlias = Hello | BeatMessage | Reports | Ping | Pong | Bye | ChannelMessage
FromPool: TypeAlias = (
    Challenge | Welcome | RefusedMessage | Instructions | Acknowledged | Ping | Pong | Bye | ChannelMessage
)

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading a peer's bytes may raise: wrong shape, wrong text, or lists within lists without end."""

_encoder = msgspec.msgpack.Encoder()
from_agent: msgspec.msgpack.Decoder[FromAgent] = msgspec.msgpack.Decoder(FromAgent)
from_pool: msgspec.msgpack.Decoder[FromPool] = msgspec.msgpack.Decoder(FromPool)


def encode(message: Message) -> bytes:
    return _encoder.encode(message)
