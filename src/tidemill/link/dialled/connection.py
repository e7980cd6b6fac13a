"""One connection to the pool: it turns bytes of a socket into events of the link, and sends the link's frames.

A failure to connect becomes a sentence that says what to look at. Nothing here waits for the peer without end, and
nothing grows: while events wait, the socket is not read.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tidemill.core.faults import Fault
from tidemill.host.clocks import steady
from tidemill.wire.link import AgentLink, Closed, LinkEvent, TurnedAway
from tidemill.wire.link_frames import agent_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.upgrade import PATH

DIAL_S = 10.0
_TICK_S = 1.0
_GOODBYE_S = 2.0
_WRITE_BYTES = 128 * 1024
_EVENTS_MAX = 64
_PORTS = {"http": 80, "https": 443}


class PoolUnreachable(Fault):
    """There is no way to the pool right now."""

    code = "pool_unreachable"


@dataclass(frozen=True)
class PoolEndpoint:
    """Where a pool's address leads."""

    host: str
    port: int
    secure: bool
    websocket: str

    def __str__(self) -> str:
        return f"{self.host}, port {self.port}"


def endpoint_of(url: str) -> PoolEndpoint:
    """The endpoint of an address, which was checked when it was set."""
    parts = urlsplit(url)
    assert parts.hostname
    secure = parts.scheme == "https"
    websocket = f"{'wss' if secure else 'ws'}://{parts.netloc}{parts.path.rstrip('/')}{PATH}"
    return PoolEndpoint(parts.hostname, parts.port or _PORTS[parts.scheme], secure, websocket)


def trust_of(ca_file: Path | None) -> ssl.SSLContext:
    """The certificates to trust: those of the system's authorities, or those in a file."""
    try:
        trust = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise PoolUnreachable(
            f"{ca_file} holds no certificates that can be read ({error.strerror or error}): give a file in PEM form."
        ) from None
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    return trust


async def dial(
    url: str, make_link: Callable[[], AgentLink], trust: ssl.SSLContext, within_s: float = DIAL_S
) -> "DialledConnection":
    """Connect, and begin the link."""
    endpoint = endpoint_of(url)

    def make_connection() -> DialledConnection:
        return DialledConnection(make_link(), endpoint.websocket)

    try:
        async with asyncio.timeout(within_s):
            _, connection = await asyncio.get_running_loop().create_connection(
                make_connection,
                endpoint.host,
                endpoint.port,
                ssl=trust if endpoint.secure else None,
                server_hostname=endpoint.host if endpoint.secure else None,
                happy_eyeballs_delay=0.25,
            )
    except (OSError, ssl.SSLError) as error:
        raise PoolUnreachable(why_unreachable(endpoint, error, within_s)) from None
    return connection


def why_unreachable(endpoint: PoolEndpoint, error: OSError, within_s: float = DIAL_S) -> str:
    """What to look at when there is no connection."""
    match error:
        case socket.gaierror():
            return (
                f"The name {endpoint.host} leads nowhere ({error.strerror}): check the address and this machine's DNS."
            )
        case ssl.SSLCertVerificationError():
            return (
                f"The certificate of {endpoint} is not trusted ({error.verify_message}): use the name that it is for, "
                "and if your own authority signed it, give its certificate with --ca or agent.ca_file."
            )
        case ssl.SSLError():
            return f"What answers at {endpoint} does not speak TLS ({error.reason or error}): check the address."
        case TimeoutError():
            return f"{endpoint} did not answer within {within_s:g} s: check the address, firewalls and the network."
        case ConnectionRefusedError():
            return f"Nobody listens at {endpoint}: check the address, and whether the pool is up."
    return f"{endpoint} cannot be reached ({error.strerror or error}): check the address and this machine's network."


class DialledConnection(asyncio.Protocol):
    """A socket and the agent's end of the link on it. `has_answered` says whether the pool may know our hello."""

    def __init__(self, link: AgentLink, websocket: str) -> None:
        self.link = link
        self.has_answered = False
        self._framed = agent_end(link, websocket)
        self._transport: asyncio.Transport | None = None
        self._events: list[LinkEvent] = []
        self._news = asyncio.Event()
        self._gone = asyncio.Event()
        self._end_noted = False
        self._full = False
        self._ticking: asyncio.TimerHandle | None = None

    async def events(self) -> Sequence[LinkEvent]:
        """Wait for events, and take them. Empty once the end of the link was taken."""
        while not self._events and not self._gone.is_set():
            self._news.clear()
            await self._news.wait()
        events, self._events = self._events, []
        if self._transport and not self._transport.is_closing():
            self._transport.resume_reading()
        return events

    def flush(self) -> None:
        """Send the link's frames, as many as the socket takes."""
        while self._transport and not self._full and not self._transport.is_closing():
            pieces, events = self._framed.to_send(_WRITE_BYTES)
            if not pieces:
                break
            self._transport.writelines(pieces)
            self._note(events)
        if not self._full and (self._framed.is_over or self.link.state is LinkPhase.CLOSED):
            self._close()

    async def end(self, code: str, sentence: str) -> None:
        """Say goodbye, and wait until the connection is gone, a little while at the most."""
        self.link.close(code, sentence)
        self.flush()
        try:
            await asyncio.wait_for(self._gone.wait(), _GOODBYE_S)
        except TimeoutError:
            self.abort()

    def abort(self) -> None:
        """Let go of the connection at once."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._tick()

    def data_received(self, data: bytes) -> None:
        self._note(self._framed.receive(data, steady()))
        self.has_answered = self.has_answered or self.link.state in (LinkPhase.ANSWERING, LinkPhase.OPEN)
        self.flush()
        if len(self._events) > _EVENTS_MAX and self._transport and not self._transport.is_closing():
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._note(self._framed.receive(b"", steady()))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ticking:
            self._ticking.cancel()
        if not self._end_noted:
            cause = f" ({exc})" if exc else ""
            self._note([Closed("gone", f"The connection to the pool was lost{cause}.", ours=False)])
        self._gone.set()
        self._news.set()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self.flush()

    def _tick(self) -> None:
        self._note(self.link.tick(steady()))
        self.flush()
        if not self._gone.is_set():
            self._ticking = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _note(self, events: Sequence[LinkEvent]) -> None:
        if events and not self._end_noted:
            self._events += events
            self._end_noted = any(isinstance(event, Closed | TurnedAway) for event in events)
            self._news.set()

    def _close(self) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.writelines(self._framed.finish())
            self._transport.close()
            asyncio.get_running_loop().call_later(_GOODBYE_S, self.abort)
