"""Tickets for second links: good once, for one node, at one door, for a minute."""

import secrets
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.agents.link_ends import POOL as GATEWAY
from tests.worlds.agents.link_ends import RULES, Served, StillClock, facts, served
from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import Identity
from tidemill.link.held.tickets import TicketRegistry
from tidemill.wire.link import TurnedAway
from tidemill.wire.tickets import Ticket, TicketGrant, TicketRefusal, check, issue

POOL = Identity(bytes(range(5, 37)))
NODE = Identity(bytes(range(6, 38)))
NODE_ID = bytes(range(16))
NOW = StillClock().now()
NUMBER = bytes(range(16, 32))
FOR = TicketGrant(NODE_ID, NODE.key, "gateway", GATEWAY.key)


def test_a_ticket_opens_the_door_it_was_made_for_until_it_expires() -> None:
    text = issue(POOL, FOR, NUMBER, NOW)
    assert len(text) < 300
    assert check(text, FOR, POOL.key, NOW) == Ticket(NUMBER, Instant(NOW + 60 * SECOND))
    assert check(text, FOR, POOL.key, Instant(NOW + 60 * SECOND - 1)) == Ticket(NUMBER, Instant(NOW + 60 * SECOND))
    assert check(text, FOR, POOL.key, Instant(NOW + 60 * SECOND)) is TicketRefusal.TICKET_EXPIRED
    assert check(text, FOR, POOL.key, Instant(NOW - 61 * SECOND)) is TicketRefusal.TICKET_EXPIRED


@pytest.mark.parametrize(
    "other",
    [
        replace(FOR, node_id=bytes(16)),
        replace(FOR, node_key=POOL.key),
        replace(FOR, audience="another"),
        replace(FOR, audience_key=NODE.key),
    ],
)
def test_a_ticket_opens_nothing_for_anybody_else(other: TicketGrant) -> None:
    assert check(issue(POOL, FOR, NUMBER, NOW), other, POOL.key, NOW) is TicketRefusal.TICKET_WRONG
    assert check(issue(GATEWAY, FOR, NUMBER, NOW), FOR, POOL.key, NOW) is TicketRefusal.TICKET_WRONG


@given(st.text(max_size=400) | st.text("AZaz09-_=.", max_size=200).map(lambda text: f"tidemill-ticket-1.{text}"))
def test_nonsense_is_no_ticket(text: str) -> None:
    assert check(text, FOR, POOL.key, NOW) in (TicketRefusal.TICKET_UNREADABLE, TicketRefusal.TICKET_WRONG)


@given(st.integers(18, 135), st.integers(0, 61))
def test_a_ticket_with_anything_changed_is_refused_or_is_the_same_ticket(at: int, to: int) -> None:
    text = issue(POOL, FOR, NUMBER, NOW)
    at = min(at, len(text) - 1)
    changed = text[:at] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[to] + text[at + 1 :]
    found = check(changed, FOR, POOL.key, NOW)
    assert isinstance(found, TicketRefusal) or found.number == NUMBER


async def test_a_node_comes_in_once_with_a_ticket_and_carries_no_reports() -> None:
    registry = TicketRegistry(StillClock(), pool_key=POOL.key, audience="gateway", audience_key=GATEWAY.key)
    async with served(RULES, registry) as door:  # type: ignore[arg-type]
        text = issue(POOL, FOR, secrets.token_bytes(16), NOW)
        agent = await door.agent(NODE, node_id=NODE_ID, join_token=text)
        assert UUID(bytes=(await agent.joined()).node_id) == UUID(bytes=NODE_ID)
        agent.report(facts(1))
        assert (await agent.closed()).code == "no_reports_here"
        assert await turned_away(door, text) == "ticket_used"
        assert await turned_away(door, None) == "ticket_missing"
        assert await turned_away(door, issue(NODE, FOR, NUMBER, NOW)) == "ticket_wrong"
        assert await turned_away(door, issue(POOL, FOR, NUMBER, Instant(NOW - 60 * SECOND))) == "ticket_expired"
        again = await door.agent(NODE, node_id=NODE_ID, join_token=issue(POOL, FOR, secrets.token_bytes(16), NOW))
        assert (await again.joined()).generation > 1


async def test_used_tickets_are_forgotten_when_they_have_expired() -> None:
    clock = StillClock()
    registry = TicketRegistry(clock, pool_key=POOL.key, audience="gateway", audience_key=GATEWAY.key)
    registry._used.add(NUMBER)
    registry._expiring.append((NOW, NUMBER))
    await registry.admit([])
    assert not registry._used
    assert not registry._expiring


async def turned_away(door: Served, ticket: str | None) -> str:
    agent = await door.agent(NODE, node_id=NODE_ID, join_token=ticket)
    event = await agent.until(TurnedAway)
    assert isinstance(event, TurnedAway)
    return event.code
