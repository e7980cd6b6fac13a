"""A deadline for slow clients: uvicorn has none for reading a request, nor for a peer that does not read its answer.

A connection that has not sent a whole request in time, sends headers without end, or stops reading, is closed. It costs
one timer and a bounded buffer until then.
"""

from asyncio import TimerHandle, Transport
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidemill.core.settings.edge import HttpSettings


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with deadlines. `limits` is set by `guarded`."""

    limits: HttpSettings
    _reading: TimerHandle | None = None
    _writing: TimerHandle | None = None
    _header_bytes: int = 0
    _in_headers: bool = True

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_reading_timer()
        self._stop_writing_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > self.limits.header_limit_bytes:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        if not self._in_headers:
            self._await_request()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._header_bytes = 0
        self._read_within(self.limits.body_deadline_s)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._stop_reading_timer()
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.limits.write_deadline_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_writing_timer()
        super().resume_writing()

    def _await_request(self) -> None:
        self._in_headers = True
        self._header_bytes = 0
        self._read_within(self.limits.header_deadline_s)

    def _read_within(self, seconds: float) -> None:
        self._stop_reading_timer()
        self._reading = self.loop.call_later(seconds, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _stop_reading_timer(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _stop_writing_timer(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Say why, if nothing has been said yet, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            line = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(line.encode())
            self.transport.close()
        else:
            self.transport.abort()


def guarded(limits: HttpSettings) -> type[GuardedProtocol]:
    """The protocol with the limits of this process; uvicorn wants a class."""
    return type("ConfiguredProtocol", (GuardedProtocol,), {"limits": limits})
