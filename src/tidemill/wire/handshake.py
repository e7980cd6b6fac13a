"""How two strangers become a link: each signs what both have said, so neither can be replayed or taken for another.

The agent knows the pool's key by the fingerprint in its join token, the pool knows the agent's by its registration.
Both signatures cover both nonces, both keys and the version, and say which side made them.
"""

from dataclasses import dataclass

from tidemill.core.signatures import Identity, fingerprint, is_signed
from tidemill.wire.messages import OLDEST_VERSION, VERSION, Challenge, Hello, Welcome

_AGENT = "tidemill link agent"
_POOL = "tidemill link pool"


@dataclass(frozen=True)
class Applicant:
    """What an agent knows of itself when it calls. A newcomer has a join token, and no node id."""

    identity: Identity
    pool_fingerprint: str
    agent: str
    node_id: bytes | None = None
    join_token: str | None = None


def shared_version(challenge: Challenge) -> int | None:
    """The newest version that both sides speak."""
    newest = min(VERSION, challenge.version)
    return newest if newest >= max(OLDEST_VERSION, challenge.oldest_version) else None


def is_our_pool(applicant: Applicant, challenge: Challenge) -> bool:
    return fingerprint(challenge.pool_key) == applicant.pool_fingerprint


def hello(applicant: Applicant, challenge: Challenge, version: int, nonce: bytes, sent: int) -> Hello:
    """The agent's answer to a challenge."""
    said = _said(challenge.pool_key, challenge.nonce, applicant.identity.key, nonce, version, applicant.node_id)
    return Hello(
        version=version,
        agent=applicant.agent,
        key=applicant.identity.key,
        nonce=nonce,
        signature=applicant.identity.sign(_AGENT, *said),
        node_id=applicant.node_id,
        join_token=applicant.join_token,
        sent=sent,
    )


def is_genuine_hello(hello: Hello, challenge: Challenge) -> bool:
    """Whether whoever says hello has the key they show, and says it to us, now."""
    said = _said(challenge.pool_key, challenge.nonce, hello.key, hello.nonce, hello.version, hello.node_id)
    return is_signed(hello.key, hello.signature, _AGENT, *said)


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
    said = _granted(challenge, hello, node_id, generation, received)
    return Welcome(node_id, generation, received, beat_ms, pool.sign(_POOL, *said))


def is_genuine_welcome(welcome: Welcome, challenge: Challenge, hello: Hello) -> bool:
    """Whether the pool whose key we know answers this hello."""
    said = _granted(challenge, hello, welcome.node_id, welcome.generation, welcome.received)
    return is_signed(challenge.pool_key, welcome.signature, _POOL, *said)


def _said(
    pool_key: bytes, pool_nonce: bytes, key: bytes, nonce: bytes, version: int, node_id: bytes | None
) -> tuple[bytes, ...]:
    return pool_key, pool_nonce, key, nonce, _number(version), node_id or b""


def _granted(challenge: Challenge, hello: Hello, node_id: bytes, generation: int, received: int) -> tuple[bytes, ...]:
    said = _said(challenge.pool_key, challenge.nonce, hello.key, hello.nonce, hello.version, hello.node_id)
    return *said, node_id, _number(generation), _number(received)


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")
