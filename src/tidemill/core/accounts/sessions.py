"""Sessions: when a session ends, what a refresh token is good for, and what it means when a session moves.

A session is a family of refresh tokens of which only the newest is valid. An old one that comes back was stolen, from
us or from its owner, and nobody can tell thief from owner: the whole family ends.
"""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address, ip_network
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal

USER_AGENT_MAX = 300


class SessionRefusal(Refusal):
    SESSION_OVER = "This session is over: log in again."
    TOKEN_UNKNOWN = "This token is not known to the pool, or its time is over: log in again."  # noqa: S105
    UNKNOWN_SESSION = "There is no such session: it may have ended already."


class SessionEnd(StrEnum):
    """Why a session ended."""

    LOGGED_OUT = "logged_out"
    ENDED_BY_OWNER = "ended_by_owner"
    IDLE = "idle"
    EXPIRED = "expired"
    REUSED = "reused"
    MOVED = "moved"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105
    SECOND_FACTOR_CHANGED = "second_factor_changed"
    BLOCKED = "blocked"
    DELETED = "deleted"


class Binding(StrEnum):
    """What happens when a session comes from another browser or network: it ends, an event is recorded, or nothing."""

    STRICT = "strict"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True)
class SessionOrigin:
    """Where a request comes from."""

    address: str
    user_agent: str

    @property
    def network(self) -> str:
        """The network that an address belongs to: providers change the rest of the address at will."""
        try:
            address = ip_address(self.address)
        except ValueError:
            return self.address
        if mapped := getattr(address, "ipv4_mapped", None):
            address = mapped
        return str(ip_network((address, 24 if address.version == 4 else 48), strict=False))


@dataclass(frozen=True)
class SessionRules:
    """How long a session lasts: while unused, and at the most."""

    idle_us: int
    lifetime_us: int
    remembered_us: int
    binding: Binding

    def expires_at(self, began_at: Instant, *, remember: bool) -> Instant:
        return Instant(began_at + (self.remembered_us if remember else self.lifetime_us))


@dataclass(frozen=True)
class Session:
    """A session as the database holds it."""

    id: UUID
    account_id: UUID
    began_at: Instant
    seen_at: Instant
    fresh_at: Instant
    expires_at: Instant
    address: str
    user_agent: str
    remember: bool
    second_factor: bool
    ended_at: Instant | None
    ended_why: str | None

    @property
    def origin(self) -> SessionOrigin:
        return SessionOrigin(self.address, self.user_agent)


def end_of(session: Session, rules: SessionRules, now: Instant) -> SessionEnd | None:
    """Whether a session that nobody ended is over by itself. A remembered one may be idle for as long as it lasts."""
    if now >= session.expires_at:
        return SessionEnd.EXPIRED
    if not session.remember and now - session.seen_at >= rules.idle_us:
        return SessionEnd.IDLE
    return None


def has_moved(session: Session, device: SessionOrigin) -> bool:
    return (session.origin.user_agent, session.origin.network) != (device.user_agent, device.network)


def refresh_outcome(
    session: Session, rules: SessionRules, device: SessionOrigin, *, used_before: bool, now: Instant
) -> SessionEnd | None:
    """What a refresh token does to its session: ends it, or (None) continues it with the next token."""
    if used_before:
        return SessionEnd.REUSED
    if ended := end_of(session, rules, now):
        return ended
    return SessionEnd.MOVED if rules.binding is Binding.STRICT and has_moved(session, device) else None
