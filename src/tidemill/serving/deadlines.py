"""A deadline for slow clients: uvicorn has none for reading a request, nor for a peer that does not read its answer.

A connection that has not sent a whole request in time, sends headers without end, or stops reading, is closed. It costs
one timer and a bounded buffer until then. The body of an upload may take for ever, as long as it arrives at some pace
and the application reads it. The door is told when a connection waits for its peer, and when it works.
"""

import select
from asyncio import BaseProtocol, Task, TimerHandle, Transport
from functools import partial
from typing import Any

from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.serving.http_door import HttpDoor, Place
from tidemill.serving.large_bodies import PACE_BYTES_PER_S, may_be_large
from tidemill.serving.request_entry import ENTRY, BodyMemory, BodyShare, RequestEntry
from tidemill.serving.request_head import (
    DISPLACED,
    HEADERS_TOO_LARGE,
    MALFORMED,
    TOO_SLOW,
    EarlyAnswer,
    RequestHead,
    objection_to,
    read_head,
)
from tidemill.serving.upload_body import BODY, LEAST_BYTES, PLAIN_BYTES, BodyBuffers, BufferedBody, ConnectionBody

_FRAMING = 8
"""How many bytes of framing one byte of a body may have, if it comes in tiny chunks."""

_AHEAD_MAX = 16
"""How many requests a connection may send before the first of them is answered."""

_LOOK_S = 1.0
"""How often we look whether a peer has left that we do not read from."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with deadlines. `guarded` sets what all connections share, the listener `place`.

    Bytes of a request besides its body (headers, trailers, frames of chunks) are counted in `_overhead` and bounded.
    """

    limits: HttpSettings
    door: HttpDoor
    memory: BodyMemory
    buffers: BodyBuffers
    place: Place
    _reading: TimerHandle | None = None
    _writing: TimerHandle | None = None
    _looking: TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    _objection: EarlyAnswer = MALFORMED
    _overhead: int = 0
    _body: int = 0
    _body_before: int = 0
    _large: bool = False
    _handed_over: bool = False
    _is_lost: bool = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.place.close = self.make_way
        self._await_request()
        if not self.place.is_taken:
            transport.abort()  # displaced during its handshake

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._stop_timers()
        if (running := self._running) is not None:
            # uvicorn tells only the newest request, which may still be waiting behind this one.
            running.disconnected = not running.response_complete
            running.message_event.set()
        else:
            self.door.leave(self.place)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._overhead += len(data)
        super().data_received(data)
        if self._handed_over:
            return
        if self._overhead > self.limits.header_limit_bytes + _FRAMING * self._body:
            self._refuse(HEADERS_TOO_LARGE)
        elif self._reading is None and self.timeout_keep_alive_task is None and self._is_idle():
            # uvicorn has stopped its keep-alive timer, though an empty line is not yet a request.
            self._read_within(self.limits.header_deadline_s)

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser, or our look at the head, does not accept; never in the middle of an answer."""
        self._refuse(self._objection)

    def make_way(self) -> None:
        """Close the connection for others. One that was answered and has sent nothing since expects no more."""
        if self.cycle is not None and self._is_idle() and not self._overhead:
            self.transport.close()
        else:
            self._refuse(DISPLACED)
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._await_request()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        head = read_head(self.url, self.headers)
        needs_host = self.parser.get_http_version() != "1.0"
        objection = objection_to(head, self.limits, needs_host=needs_host)
        if objection or len(self.pipeline) >= _AHEAD_MAX:
            self._objection = objection or MALFORMED
            raise ValueError(self._objection.code)  # the parser stops, and uvicorn calls send_400_response
        self._read_within(self.limits.body_deadline_s)
        super().on_headers_complete()
        self._large = may_be_large(self.scope["method"], self.scope.get("path", ""))
        share = BodyShare(self.memory, self._needed_bytes(head))
        self.scope["state"][ENTRY] = RequestEntry(self.door, self.place, share)
        if self._large:
            self.scope["state"][BODY] = self._make_body(head, share)
        if self.pipeline:
            self._look_soon()

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body)
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_reading_timer()
        self._overhead = self._body = 0
        super().on_message_complete()
        self._tell_door()

    def on_response_complete(self) -> None:
        if self._running is not None and self._running.body:
            self._running.body = bytearray()  # nobody will read it, and the connection may stay
        super().on_response_complete()
        self._tell_door()

    def turn_over(self, taker: BaseProtocol) -> int:
        """Let `taker` read the rest of a body. Answers how much of it has come so far."""
        self._set_reader(taker)
        return self._body

    def count_received(self, size: int) -> None:
        """Count bytes of a body that its reader has received."""
        self._unset_keepalive_if_required()
        self._body += size

    def body_is_over(self) -> None:
        """The reader has the whole body. The parser has not seen its end, so the next request gets a new parser."""
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._set_reader(self)
        self.on_message_complete()
        if self._is_idle():
            self._read_within(self.limits.header_deadline_s)

    def handle_websocket_upgrade(self) -> None:
        """Turn the connection into a link, which has its own deadlines; not while an answer is still being written."""
        self._handed_over = True
        self._stop_timers()
        if self._is_idle():
            self.door.leave(self.place)
            super().handle_websocket_upgrade()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.limits.write_deadline_s, self.transport.abort)
        self._tell_door()

    def resume_writing(self) -> None:
        self._stop_writing_timer()
        super().resume_writing()
        self._tell_door()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """As uvicorn's own, but it is known which request is being answered, and when nothing of it is left."""
        self._running = cycle
        task = self.loop.create_task(cycle.run_asgi(app))
        task.add_done_callback(partial(self._finish, cycle))
        self.tasks.add(task)

    def _finish(self, cycle: RequestResponseCycle, task: "Task[None]") -> None:
        self.tasks.discard(task)
        cycle.scope["state"][ENTRY].share.end()
        if self._running is cycle:
            self._running = None
            if self._is_lost:
                self.door.leave(self.place)

    def _tell_door(self) -> None:
        """Whether we wait for the peer to send the rest of a request, or the next one, or to read an answer."""
        running = self._running
        if running is None or running.response_complete or running.more_body or self.flow.write_paused:
            self.door.begin_to_wait(self.place)
        else:
            self.door.begin_to_work(self.place)

    def _needed_bytes(self, head: RequestHead) -> int:
        """What the body takes at least. An upload is handed on as it comes; another body is kept until it is whole."""
        most_bytes = PLAIN_BYTES if self._large else self.limits.body_limit_bytes
        return most_bytes if head.is_chunked else min(head.announced_bytes, most_bytes)

    def _await_request(self) -> None:
        self._body = self._body_before = 0
        self._large = False
        self._read_within(self.limits.header_deadline_s)

    def _make_body(self, head: RequestHead, share: BodyShare) -> ConnectionBody | BufferedBody:
        if head.announced_bytes >= LEAST_BYTES and not self.pipeline and not self.parser.should_upgrade():
            return ConnectionBody(self, self.cycle, head.announced_bytes, share)
        return BufferedBody(self.cycle)

    def _set_reader(self, reader: BaseProtocol) -> None:
        """Change the reader while reading is paused: a transport asks for it only when it begins to read."""
        self.flow.pause_reading()
        self.transport.set_protocol(reader)
        self.flow.resume_reading()

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _read_within(self, seconds: float) -> None:
        self._stop_reading_timer()
        self._reading = self.loop.call_later(seconds, self._check_pace)

    def _check_pace(self) -> None:
        """Continue a large body if enough of it arrived since the last look, or if we did not read; else refuse."""
        enough = PACE_BYTES_PER_S * self.limits.body_deadline_s
        is_moving = self.flow.read_paused or self._body - self._body_before >= enough
        if self._large and is_moving and not self._is_idle():
            self._body_before = self._body
            self._read_within(self.limits.body_deadline_s)
        else:
            self._refuse(TOO_SLOW)

    def _look_soon(self) -> None:
        if self._looking is None:
            self._looking = self.loop.call_later(_LOOK_S, self._look_whether_left)

    def _look_whether_left(self) -> None:
        """A request waits behind another one, so we do not read, and would not notice that the peer has left."""
        self._looking = None
        if self.pipeline and not self.transport.is_closing():
            poll = select.poll()
            poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
            if poll.poll(0):
                self.transport.abort()
            else:
                self._look_soon()

    def _stop_timers(self) -> None:
        self._stop_reading_timer()
        self._stop_writing_timer()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_writing_timer(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _refuse(self, answer: EarlyAnswer) -> None:
        """Answer, if no other answer has begun, and close."""
        if self.transport.is_closing():
            return
        if self._is_idle():
            self.transport.write(answer.content)
            self.transport.close()
        else:
            self.transport.abort()


def guarded(limits: HttpSettings, door: HttpDoor, memory: BodyMemory) -> type[GuardedProtocol]:
    """The protocol with the limits of this process; uvicorn wants a class."""
    shared = {"limits": limits, "door": door, "memory": memory, "buffers": BodyBuffers()}
    return type("ConfiguredProtocol", (GuardedProtocol,), shared)
