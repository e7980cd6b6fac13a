"""One link, from the first byte to the last: reports go out in order, instructions come in, beats and streams pass.

Acknowledged reports are forgotten, the others are sent again on the next link. Instructions are obeyed one after the
other. A disk that fails ends the link, not the agent.
"""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import structlog

from tidemill.core.clock import SECOND
from tidemill.core.faults import Fault
from tidemill.host.clocks import steady
from tidemill.link.dialled.calls import NODE_REMOVED, CallEnd
from tidemill.link.dialled.connection import DialledConnection
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.streams import DialledStreams
from tidemill.wire.channels import ChannelEvent
from tidemill.wire.link import Closed, Instructed, Joined, LinkEvent, RoundTrip, Safe, TurnedAway
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import BeatMessage, Instruction

log = structlog.get_logger()

_READ_BYTES = 512 * 1024
_BEAT_LEAST_S = 0.1
_BEAT_MOST_S = 3_600.0

Welcomed = Callable[["LinkSession", UUID], Awaitable[None]]
Obey = Callable[[Instruction], Awaitable[None]]


class LinkSession:
    """A link and what belongs to it alone."""

    def __init__(self, connection: DialledConnection, reporting: Reporter, welcomed: Welcomed, obey: Obey) -> None:
        self.connection = connection
        self.streams = DialledStreams(connection)
        self.generation = 0
        self.round_trip_us: int | None = None
        self._link = connection.link
        self._reporting = reporting
        self._welcomed = welcomed
        self._obey = obey
        self._more = asyncio.Event()
        self._joined_at = 0
        self._pump: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return bool(self.generation) and self._link.state is LinkPhase.OPEN

    @property
    def beat_s(self) -> float:
        return min(max(self._link.beat_ms / 1000, _BEAT_LEAST_S), _BEAT_MOST_S)

    async def run(self) -> CallEnd:
        """Serve the link until it is over. Answers how it ended."""
        try:
            return await self._live()
        except Fault as fault:
            log.warning("link given up", cause=str(fault))
            self._give_up()
            return self._call_end(fault.code, str(fault))
        finally:
            self._reporting.pause()
            self.streams.lose()
            await self._stop_pump()

    def beat(self, beat: BeatMessage) -> bool:
        """Send a heartbeat. Answers whether there was a link to send it on."""
        if not self.is_open:
            return False
        self._link.beat(beat)
        self.connection.flush()
        return True

    async def _live(self) -> CallEnd:
        while events := await self.connection.events():
            for event in events:
                if end := await self._understand(event):
                    return end
        return self._call_end("gone", "The connection to the pool was lost.")

    async def _understand(self, event: LinkEvent) -> CallEnd | None:
        match event:
            case Joined():
                await self._begin(event)
            case Instructed(instructions):
                for instruction in instructions:
                    await self._obey(instruction)
            case Safe(received):
                await self._reporting.forget(received)
                self._more.set()
            case RoundTrip(took_us):
                self.round_trip_us = took_us
            case TurnedAway(code, sentence, retry_ms):
                return CallEnd(code, sentence, retry_ms, refused=True)
            case Closed(code, sentence):
                # Before the welcome the other side has not proved that it is the pool.
                is_believed = code != NODE_REMOVED or self.generation
                return self._call_end(code if is_believed else "gone", sentence)
            case _:
                self._pass_on(event)
        return None

    def _pass_on(self, event: LinkEvent) -> None:
        if isinstance(event, ChannelEvent):
            self.streams.notice(event)

    async def _begin(self, joined: Joined) -> None:
        await self._reporting.begin(joined.received, self._more.set)
        self.generation = joined.generation
        self._joined_at = steady()
        self._pump = asyncio.create_task(self._send_reports(joined.received))
        self._pump.add_done_callback(lambda _: self._give_up())
        await self._welcomed(self, UUID(bytes=joined.node_id))

    async def _send_reports(self, received: int) -> None:
        """Send reports from the spool, in order, as the link has room, until the link is over."""
        after = received
        while True:
            self._more.clear()
            page = await self._reporting.spool.read(after, _READ_BYTES)
            while page and self._link.wants_reports:
                for number, report in page:
                    sent_as = self._link.report(report)
                    assert sent_as == number, "reports are sent under the numbers that they have in the spool"
                    after = number
                self.connection.flush()
                page = await self._reporting.spool.read(after, _READ_BYTES)
            await self._more.wait()

    def _give_up(self) -> None:
        """Close the link: without its disk the agent cannot send reports."""
        self._link.close("agent_unusable", "The agent cannot use its disk.")
        self.connection.flush()

    async def _stop_pump(self) -> None:
        if self._pump is None:
            return
        self._pump.cancel()
        (outcome,) = await asyncio.gather(self._pump, return_exceptions=True)
        if isinstance(outcome, Fault):
            log.warning("spool not read", cause=str(outcome))
        elif isinstance(outcome, Exception):
            raise outcome

    def _call_end(self, code: str, sentence: str) -> CallEnd:
        lived_s = (steady() - self._joined_at) / SECOND if self.generation else 0.0
        return CallEnd(code, sentence, lived_s=lived_s)
