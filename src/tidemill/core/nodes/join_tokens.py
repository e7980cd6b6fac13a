"""Join tokens: what a machine shows when it joins, how a token is written, and whether it still admits anybody.

A token is shown once and stored as a hash. It admits so many machines, until it expires, for one owner. It also carries
the fingerprint of the pool's key, so that a machine knows which pool it joins; that part is never sent.
"""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from uuid import UUID

from tidemill.core.accounts.roles import Role
from tidemill.core.clock import SECOND, Instant
from tidemill.core.references import refused_name
from tidemill.core.refusals import Refusal

SECRET_BYTES = 32
NAME_MAX = 100
USES_MAX = 10_000
LIFETIME_MAX_S = 30 * 24 * 3600
OPEN_MAX = 100
LETTER_EVERY_US = 3600 * SECOND
"""How often an owner gets a letter about the machines that join with one token, however many they are."""

_MARK = "tidemill-join-1"
_WRITTEN = re.compile(_MARK + r"\.([A-Za-z0-9_-]{64})\.([0-9a-f]{64})", re.ASCII)
_PROVIDING = frozenset({Role.PROVIDER, Role.DATA_CENTRE})


class JoinTokenRefusal(Refusal):
    JOIN_TOKEN_MALFORMED = "This is no join token: it is one line that begins with tidemill-join-1. and two more parts."  # noqa: S105
    JOIN_TOKEN_UNKNOWN = "The pool does not know this join token: make one with `tidemill nodes tokens make`."  # noqa: S105
    JOIN_TOKEN_EXPIRED = "The time of this join token is over: make a new one with `tidemill nodes tokens make`."  # noqa: S105
    JOIN_TOKEN_REVOKED = "This join token was revoked: ask its owner for another one."  # noqa: S105
    JOIN_TOKEN_USED_UP = "This join token has let in as many machines as it may: make a new one."  # noqa: S105
    JOIN_TOKEN_NAME_MALFORMED = f"A join token's name is 1 to {NAME_MAX} printable characters: choose such a one."
    JOIN_TOKEN_USES_MALFORMED = f"A join token lets in 1 to {USES_MAX} machines: give such a number."
    JOIN_TOKEN_LIFETIME_MALFORMED = "A join token is good for a second up to 30 days: give such a time."  # noqa: S105
    JOIN_TOKEN_NOT_PROVIDER = "Providers and data centres join machines: `tidemill account become provider` first."  # noqa: S105
    JOIN_TOKEN_NOT_HOUSE = "The pool's own machines are joined by its operators: leave `house` out."  # noqa: S105
    TOO_MANY_JOIN_TOKENS = f"An account has at most {OPEN_MAX} open join tokens: revoke one first."
    UNKNOWN_JOIN_TOKEN = "You have no such join token: `tidemill nodes tokens list` lists those that are open."  # noqa: S105


@dataclass(frozen=True)
class JoinToken:
    """A token as the database holds it. `house` is for the operator's own machines, which the pool trusts."""

    id: UUID
    account_id: UUID
    name: str
    sha256: bytes
    house: bool
    labels: list[str]
    uses_max: int
    uses: int
    made_at: Instant
    expires_at: Instant
    revoked_at: Instant | None = None
    letter_at: Instant | None = None


@dataclass(frozen=True)
class JoinTokenParts:
    """What a token tells its machine: what to send, and which key to expect."""

    secret_part: str = field(repr=False)
    fingerprint: str


def write_token(token_id: UUID, secret: bytes, fingerprint: str) -> str:
    """A new token as it is shown, once."""
    assert len(secret) == SECRET_BYTES, "a token is as long as what reads it expects"
    return f"{_MARK}.{_secret_part(token_id, secret)}.{fingerprint}"


def read_token(text: str) -> JoinTokenParts | JoinTokenRefusal:
    """The inverse, for pasted text; space around it does no harm."""
    match = _WRITTEN.fullmatch(text.strip())
    return JoinTokenParts(match[1], match[2]) if match else JoinTokenRefusal.JOIN_TOKEN_MALFORMED


def sha256(secret_part: str) -> bytes:
    """The stored form of a token. It has 256 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret_part.encode("utf-8", "surrogatepass")).digest()


def refused_token(*, name: str, uses: int, lifetime_s: float) -> Refusal | None:
    """Why nobody may have such a token. Labels are rules, and checked as such."""
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable() or not name.strip():
        return JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED
    if refusal := refused_name(name):  # the machines that join with it get its name
        return refusal
    if not 1 <= uses <= USES_MAX:
        return JoinTokenRefusal.JOIN_TOKEN_USES_MALFORMED
    return None if 1 <= lifetime_s <= LIFETIME_MAX_S else JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED


def refused_join(roles: frozenset[Role], *, house: bool) -> JoinTokenRefusal | None:
    """Why an account with these roles may not join such machines. Checked when a token is made and at each use: an
    owner who loses the role can no longer use the token."""
    if house:
        return None if Role.OPERATOR in roles else JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE
    return None if roles & _PROVIDING else JoinTokenRefusal.JOIN_TOKEN_NOT_PROVIDER


def refused_token_use(token: JoinToken, used: int, now: Instant) -> JoinTokenRefusal | None:
    """Why a token admits no further machine, after so many uses."""
    if token.revoked_at is not None:
        return JoinTokenRefusal.JOIN_TOKEN_REVOKED
    if now >= token.expires_at:
        return JoinTokenRefusal.JOIN_TOKEN_EXPIRED
    return JoinTokenRefusal.JOIN_TOKEN_USED_UP if used >= token.uses_max else None


def letter_due(token: JoinToken, now: Instant) -> bool:
    """Whether the owner gets a letter about a machine that joins now."""
    return token.letter_at is None or now - token.letter_at >= LETTER_EVERY_US


def _secret_part(token_id: UUID, secret: bytes) -> str:
    return base64.urlsafe_b64encode(token_id.bytes + secret).decode().rstrip("=")
