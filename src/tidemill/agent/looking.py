"""Looking at a pool without being let in: its key and the versions it speaks, and no hello of ours."""

import asyncio
import ssl
from collections.abc import Iterator
from typing import Any

from tidemill.agent.connection import PoolUnreachable, dial
from tidemill.agent.times import steady
from tidemill.core.clock import Instant
from tidemill.wire.errors import ProtocolError
from tidemill.wire.link import HANDSHAKE_US, Closed, Link, LinkEvent
from tidemill.wire.messages import Challenge, from_pool


class Look(Link):
    """An end that hears who the other side says it is, and says goodbye."""

    def __init__(self, now: Instant) -> None:
        super().__init__(now, odd=True, decoder=from_pool)
        self.challenge: Challenge | None = None

    def _understand(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        if not isinstance(message, Challenge):
            raise ProtocolError("out_of_turn", "A message came that does not belong here.")
        self.challenge = message
        self.close("looked", "Only a look at the pool's key.")
        return iter(())


async def look(url: str, trust: ssl.SSLContext) -> Challenge:
    """What the pool at an address says first."""
    connection = await dial(url, lambda: Look(steady()), trust)
    assert isinstance(connection.link, Look)
    sentence = "The connection was closed before the pool had said who it is."
    try:
        async with asyncio.timeout(HANDSHAKE_US / 1_000_000):
            while events := await connection.events():
                sentence = next((event.sentence for event in events if isinstance(event, Closed)), sentence)
    except TimeoutError:
        sentence = "The pool took too long to say who it is."
    finally:
        connection.abort()
    if connection.link.challenge is None:
        raise PoolUnreachable(sentence)
    return connection.link.challenge
