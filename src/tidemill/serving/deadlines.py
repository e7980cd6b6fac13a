"""A deadline for slow clients: uvicorn has none for reading a request, nor for a peer that does not read its answer.

A connection that has not sent a whole request in time, sends headers without end, or stops reading, is closed. It costs
one timer and a bounded buffer until then. The body of an upload may take for ever, as long as it arrives at some pace
and the application reads it.
"""

from asyncio import BaseProtocol, TimerHandle, Transport
from http import HTTPStatus

from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.serving.large_bodies import PACE_BYTES_PER_S, may_be_large
from tidemill.serving.upload_body import BODY, LEAST_BYTES, BodyBuffers, BufferedBody, ConnectionBody

_FRAMING = 8
"""How many bytes of framing one byte of a body may have, if it comes in tiny chunks."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with deadlines. `limits` and `buffers` are set by `guarded`.

    Bytes of a request besides its body (headers, trailers, frames of chunks) are counted in `_overhead` and bounded.
    """

    limits: HttpSettings
    buffers: BodyBuffers
    _reading: TimerHandle | None = None
    _writing: TimerHandle | None = None
    _overhead: int = 0
    _body: int = 0
    _body_before: int = 0
    _large: bool = False
    _handed_over: bool = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_reading_timer()
        self._stop_writing_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._overhead += len(data)
        super().data_received(data)
        if self._handed_over:
            return
        if self._overhead > self.limits.header_limit_bytes + _FRAMING * self._body:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._reading is None and self.timeout_keep_alive_task is None and self._is_idle():
            # uvicorn has stopped its keep-alive timer, though an empty line is not yet a request.
            self._read_within(self.limits.header_deadline_s)

    def on_message_begin(self) -> None:
        self._await_request()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._read_within(self.limits.body_deadline_s)
        super().on_headers_complete()
        self._large = may_be_large(self.scope["method"], self.scope.get("path", ""))
        if self._large:
            self.scope["state"][BODY] = self._make_body()

    def on_body(self, body: bytes) -> None:
        self._overhead -= len(body)
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_reading_timer()
        self._overhead = self._body = 0
        super().on_message_complete()

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
        self._stop_reading_timer()
        self._stop_writing_timer()
        if self._is_idle():
            super().handle_websocket_upgrade()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.limits.write_deadline_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_writing_timer()
        super().resume_writing()

    def _await_request(self) -> None:
        self._body = self._body_before = 0
        self._large = False
        self._read_within(self.limits.header_deadline_s)

    def _make_body(self) -> ConnectionBody | BufferedBody:
        announced = next((value for name, value in self.headers if name == b"content-length"), b"0")
        if int(announced) >= LEAST_BYTES and not self.pipeline and not self.parser.should_upgrade():
            return ConnectionBody(self, self.cycle, int(announced))
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
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_writing_timer(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with a status, if no answer has begun, and close."""
        if self.transport.is_closing():
            return
        if self._is_idle():
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(line.encode())
            self.transport.close()
        else:
            self.transport.abort()


def guarded(limits: HttpSettings) -> type[GuardedProtocol]:
    """The protocol with the limits of this process; uvicorn wants a class."""
    return type("ConfiguredProtocol", (GuardedProtocol,), {"limits": limits, "buffers": BodyBuffers()})
