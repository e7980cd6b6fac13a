"""Tickets: the pool lets a node open a second link to another process, such as a gateway, for a short while.

A ticket holds a number and an expiry under the pool's signature. The signature also covers the node, its key, the
audience and the audience's own key. The ticket does not repeat them: the checker knows the node from its hello, and the
audience is itself. So it is short, and worth nothing to another node or at another door. Pure: the caller brings time
and number.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass
from enum import Enum

from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import SIGNATURE_BYTES, Identity, is_signed

LIFETIME_US = 60 * SECOND
NUMBER_BYTES = 16
_EXPIRY_BYTES = 8
_PURPOSE = "tidemill link ticket"
_PREFIX = "tidemill-ticket-1."
_LENGTH_MAX = 300


@dataclass(frozen=True)
class TicketGrant:
    """Who may open a link where. `audience_key` is the public key that the process behind the door answers with."""

    node_id: bytes
    node_key: bytes
    audience: str
    audience_key: bytes


@dataclass(frozen=True)
class Ticket:
    """A valid ticket's number and expiry: it is used once, and forgotten when it has expired."""

    number: bytes
    expires_at: Instant


class TicketRefusal(Enum):
    """Why a ticket opens nothing."""

    TICKET_UNREADABLE = "This is no ticket for a link: ask the pool for a new one."
    TICKET_EXPIRED = "The ticket has expired: ask the pool for a new one."
    TICKET_WRONG = "The ticket was made for another node or another door, or not by the pool: ask for a new one."

    @property
    def code(self) -> str:
        return self.name.lower()


def issue(pool: Identity, grant: TicketGrant, number: bytes, now: Instant) -> str:
    """A ticket as it is sent to the node. The number is drawn by the caller and never drawn again."""
    assert len(number) == NUMBER_BYTES
    ticket = Ticket(number, Instant(now + LIFETIME_US))
    content = _content(ticket) + pool.sign(_PURPOSE, *_signed_parts(ticket, grant))
    return _PREFIX + urlsafe_b64encode(content).decode().rstrip("=")


def check(text: str, grant: TicketGrant, pool_key: bytes, now: Instant) -> Ticket | TicketRefusal:
    """Whether the pool lets this node in at this door, now. The caller makes sure that a ticket is used once."""
    parsed = _parse(text)
    if parsed is None:
        return TicketRefusal.TICKET_UNREADABLE
    ticket, signature = parsed
    if not is_signed(pool_key, signature, _PURPOSE, *_signed_parts(ticket, grant)):
        return TicketRefusal.TICKET_WRONG
    if not now < ticket.expires_at <= now + 2 * LIFETIME_US:
        return TicketRefusal.TICKET_EXPIRED
    return ticket


def _parse(text: str) -> tuple[Ticket, bytes] | None:
    """Parse a ticket's text. Two texts with one number are one ticket."""
    if not text.startswith(_PREFIX) or len(text) > _LENGTH_MAX or not text.isascii():
        return None
    encoded = text[len(_PREFIX) :]
    try:
        content = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except (Error, ValueError):
        return None
    if len(content) != NUMBER_BYTES + _EXPIRY_BYTES + SIGNATURE_BYTES:
        return None
    expires_at = Instant(int.from_bytes(content[NUMBER_BYTES : NUMBER_BYTES + _EXPIRY_BYTES], "big"))
    return Ticket(content[:NUMBER_BYTES], expires_at), content[NUMBER_BYTES + _EXPIRY_BYTES :]


def _content(ticket: Ticket) -> bytes:
    return ticket.number + ticket.expires_at.to_bytes(_EXPIRY_BYTES, "big")


def _signed_parts(ticket: Ticket, grant: TicketGrant) -> tuple[bytes, ...]:
    node = grant.node_id, grant.node_key
    return _content(ticket), *node, grant.audience.encode(), grant.audience_key
