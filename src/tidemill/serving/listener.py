"""Takes connections from a listening socket, each with a place at the door before anything else is made for it.

A server of asyncio says who calls only after a TLS handshake; until then, connections would cost memory and files and
nobody could count them.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog

from tidemill.serving.deadlines import GuardedProtocol
from tidemill.serving.http_door import HttpDoor, Place

log = structlog.get_logger()

_BACKLOG = 4096
_AT_ONCE = 64
"""How many connections are taken before others get their turn."""

_REST_S = 0.2
_FAREWELL_S = 1.0


@dataclass(frozen=True)
class ListenerTls:
    """The certificate, and how long a handshake may take."""

    context: ssl.SSLContext
    handshake_s: float


class Listener:
    """One listening socket. It has the part of an asyncio server that uvicorn uses."""

    def __init__(
        self, sock: socket.socket, door: HttpDoor, make: Callable[[], GuardedProtocol], tls: ListenerTls | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._door = door
        self._make = make
        self._tls: dict[str, object] = {}
        if tls:
            times = {"ssl_handshake_timeout": tls.handshake_s, "ssl_shutdown_timeout": _FAREWELL_S}
            self._tls = {"ssl": tls.context, **times}
        self._beginnings: set[asyncio.Task[None]] = set()
        sock.listen(_BACKLOG)
        self._listen()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()

    async def wait_closed(self) -> None:
        return

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._rest(error)
                return
            self._begin(connection, peer[0])

    def _begin(self, connection: socket.socket, address: str) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        place = self._door.enter(address, partial(_cut, connection))
        beginning = self._loop.create_task(self._connect(connection, place))
        self._beginnings.add(beginning)
        beginning.add_done_callback(self._beginnings.discard)

    async def _connect(self, connection: socket.socket, place: Place) -> None:
        def make() -> GuardedProtocol:
            protocol = self._make()
            protocol.place = place
            return protocol

        try:
            await self._loop.connect_accepted_socket(make, connection, **self._tls)  # type: ignore[arg-type]
        except OSError:  # the peer has left, or its handshake failed or took too long
            self._door.leave(place)
            connection.close()

    def _rest(self, error: OSError) -> None:
        """There are no files or memory left: take no more for a moment."""
        log.warning("cannot take connections", cause=str(error))
        self._loop.remove_reader(self._socket)
        self._loop.call_later(_REST_S, self._listen)


def _cut(connection: socket.socket) -> None:
    """End a connection that is not yet served: whoever has it finds it closed."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
