"""How two strangers become a link: each signs what both have said, so neither can be replayed or taken for another.

The agent knows the pool's key by the fingerprint in its join token, the pool knows the agent's by its registration.
Both signatures cover both nonces, both keys and all that the hello says, and say which side made them. A refusal is
signed like a welcome: only the pool itself can send an agent away for good.
"""

from dataclasses import dataclass, field

import msgspec

from tidemill.core.signatures import SIGNATURE_BYTES, Identity, fingerprint, is_signed
from tidemill.wire.messages import OLDEST_VERSION, VERSION, Challenge, Hello, RefusedMessage, Welcome

_AGENT = "tidemill link agent"
_POOL = "tidemill link pool"
_REFUSAL = "tidemill link refusal"


@dataclass(frozen=True)
class CallingAgent:
    """What an agent knows of itself when it calls. A newcomer has a join token, and no node id.

    `instance` is drawn when the agent starts: two machines with one identity differ in it.
    """

    identity: Identity
    pool_fingerprint: str
    agent: str
    instance: bytes
    node_id: bytes | None = None
    join_token: str | None = field(default=None, repr=False)


def shared_version(challenge: Challenge) -> int | None:
    """The newest version that both sides speak."""
    newest = min(VERSION, challenge.version)
    return newest if newest >= max(OLDEST_VERSION, challenge.oldest_version) else None


def is_our_pool(applicant: CallingAgent, challenge: Challenge) -> bool:
    return fingerprint(challenge.pool_key) == applicant.pool_fingerprint


def hello(applicant: CallingAgent, challenge: Challenge, version: int, nonce: bytes, sent: int) -> Hello:
    """The agent's answer to a challenge."""
    unsigned = Hello(
        version=version,
        agent=applicant.agent,
        key=applicant.identity.key,
        nonce=nonce,
        signature=bytes(SIGNATURE_BYTES),
        instance=applicant.instance,
        node_id=applicant.node_id,
        join_token=applicant.join_token,
        sent=sent,
    )
    signature = applicant.identity.sign(_AGENT, *_transcript(challenge, unsigned))
    return msgspec.structs.replace(unsigned, signature=signature)


def is_genuine_hello(hello: Hello, challenge: Challenge) -> bool:
    """Whether the agent has the key that it shows, and signed this hello for us, now."""
    return is_signed(hello.key, hello.signature, _AGENT, *_transcript(challenge, hello))


def welcome(
    pool: Identity,
    challenge: Challenge,
    hello: Hello,
    *,
    node_id: bytes,
    generation: int,
    received: int,
    beat_ms: int,
) -> Welcome:
    """The pool's answer to an agent it knows."""
    transcript = _welcome_transcript(challenge, hello, node_id, generation, received)
    return Welcome(node_id, generation, received, beat_ms, pool.sign(_POOL, *transcript))


def is_genuine_welcome(welcome: Welcome, challenge: Challenge, hello: Hello) -> bool:
    """Whether the pool whose key we know answers this hello."""
    transcript = _welcome_transcript(challenge, hello, welcome.node_id, welcome.generation, welcome.received)
    return is_signed(challenge.pool_key, welcome.signature, _POOL, *transcript)


def refusal(pool: Identity, challenge: Challenge, hello: Hello, refused: RefusedMessage) -> RefusedMessage:
    """The pool's answer to an agent it does not want, signed."""
    signature = pool.sign(_REFUSAL, *_transcript(challenge, hello), *_refusal_parts(refused))
    return msgspec.structs.replace(refused, signature=signature)


def is_genuine_refusal(refused: RefusedMessage, challenge: Challenge, hello: Hello) -> bool:
    """Whether the pool whose key we know refuses this hello."""
    transcript = *_transcript(challenge, hello), *_refusal_parts(refused)
    return is_signed(challenge.pool_key, refused.signature or b"", _REFUSAL, *transcript)


def _transcript(challenge: Challenge, hello: Hello) -> tuple[bytes, ...]:
    """What both sides have sent so far. Fields that a later version adds are left out: the pool may not know them."""
    agent, token = hello.agent.encode(), (hello.join_token or "").encode()
    numbers = _number(hello.version) + _number(hello.sent)
    identity = (hello.key, hello.nonce, hello.instance, hello.node_id or b"")
    return challenge.pool_key, challenge.nonce, *identity, agent, token, numbers


def _welcome_transcript(
    challenge: Challenge, hello: Hello, node_id: bytes, generation: int, received: int
) -> tuple[bytes, ...]:
    return *_transcript(challenge, hello), node_id, _number(generation), _number(received)


def _refusal_parts(refused: RefusedMessage) -> tuple[bytes, ...]:
    retry = b"" if refused.retry_ms is None else _number(refused.retry_ms)
    return refused.code.encode(), refused.sentence.encode(), retry


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
