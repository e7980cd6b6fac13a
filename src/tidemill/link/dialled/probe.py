"""Looking at a pool without being let in: its key and the versions it speaks, and no hello of ours."""

import asyncio
import secrets
import ssl
from collections.abc import Iterator
from typing import Any

from tidemill.core.clock import SECOND, Instant
from tidemill.core.signatures import SEED_BYTES, Identity
from tidemill.host.clocks import steady
from tidemill.link.dialled.connection import PoolUnreachable, dial
from tidemill.wire.errors import ProtocolError
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import HANDSHAKE_US, AgentLink, Closed, LinkEvent
from tidemill.wire.messages import Challenge


class ProbeLink(AgentLink):
    """An agent's end without an identity of a node: it takes the pool's challenge and says goodbye."""

    def __init__(self, now: Instant) -> None:
        nobody = CallingAgent(Identity(secrets.token_bytes(SEED_BYTES)), "", "", bytes(16))
        super().__init__(nobody, secrets.token_bytes(32), None, now)
        self.challenge: Challenge | None = None

    def _understand(self, message: Any, now: Instant) -> Iterator[LinkEvent]:
        if not isinstance(message, Challenge):
            raise ProtocolError("out_of_turn", "A message came that does not belong here.")
        self.challenge = message
        self.close("looked", "Only a look at the pool's key.")
        return iter(())


async def probe_pool(url: str, trust: ssl.SSLContext) -> Challenge:
    """The challenge that the pool at an address sends first."""
    connection = await dial(url, lambda: ProbeLink(steady()), trust)
    assert isinstance(connection.link, ProbeLink)
    sentence = "The connection was closed before the pool had said who it is."
    try:
        async with asyncio.timeout(HANDSHAKE_US / SECOND):
            while events := await connection.events():
                sentence = next((event.sentence for event in events if isinstance(event, Closed)), sentence)
    except TimeoutError:
        sentence = "The pool took too long to say who it is."
    finally:
        connection.abort()
    if connection.link.challenge is None:
        raise PoolUnreachable(sentence)
    return connection.link.challenge
