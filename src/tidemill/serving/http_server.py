"""The HTTP server of a control process: its socket, its limits, its end."""

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import uvicorn
from starlette.types import ASGIApp

from tidemill.core.faults import Fault
from tidemill.core.settings import Settings
from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.serving.deadlines import GuardedProtocol, guarded
from tidemill.serving.http_door import HttpDoor
from tidemill.serving.listener import Listener, ListenerTls
from tidemill.serving.request_entry import BodyMemory


class WebsocketServer(Protocol):
    """Takes over connections that ask to become websockets, such as agents' links."""

    @property
    def connection(self) -> Callable[..., asyncio.Protocol]:
        """Makes the protocol of one connection."""
        ...

    async def drain(self) -> None:
        """Send everybody elsewhere."""
        ...


class HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: the process decides what a signal means."""

    on_started: Callable[[], None]
    handshake_s: float
    protocol: type[GuardedProtocol]
    door: HttpDoor
    body_memory: BodyMemory
    websockets: WebsocketServer | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own, but connections come in by the door, and a TLS handshake has a deadline too."""
        config = self.config
        make = partial(self.protocol, config, self.server_state, {})
        tls = ListenerTls(config.ssl, self.handshake_s) if config.ssl else None
        self.servers = [Listener(listener, self.door, make, tls) for listener in sockets or []]  # type: ignore[misc]
        self.started = True
        self.on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's own, and at the same time the websockets' peers are sent to other processes."""
        for server in self.servers:
            server.close()
        leaving = self.websockets.drain() if self.websockets and not self.force_exit else asyncio.sleep(0)
        await asyncio.gather(leaving, super().shutdown(sockets))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(host: str, port: int) -> socket.socket:
    """Take the port now, so that an error shows before anything else has started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        hint = "is a pool running already? Stop it, or" if error.errno == errno.EADDRINUSE else "you may have to"
        raise Fault(
            f"Cannot listen on {host}:{port} ({error.strerror}): {hint} choose another port with TIDEMILL_PORT."
        ) from error
    listener.setblocking(False)
    return listener


def allow_many_files() -> None:
    """Raise the limit of open files as far as this process may: a link is one, and shells allow few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check_certificate(http: HttpSettings) -> None:
    """Refuse a certificate or key that cannot be used, before anything has started."""
    if http.tls_certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(http.tls_certificate, http.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise Fault(
            f"TLS cannot be used with {http.tls_certificate} and {http.tls_key} ({error.strerror or error}): "
            "give a certificate chain and its key, both in PEM."
        ) from error


def create_server(app: ASGIApp, settings: Settings, websockets: WebsocketServer | None = None) -> HttpServer:
    """The server of this process. Websockets use the same port, if there is a server for them."""
    if websockets:
        allow_many_files()
    http = settings.http
    door, memory = HttpDoor(http), BodyMemory(http)
    protocol = guarded(http, door, memory)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws=websockets.connection if websockets else "none",  # type: ignore[arg-type]  # whatever makes a protocol will do
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=int(http.keep_alive_s),
        timeout_graceful_shutdown=int(http.drain_s),
        proxy_headers=bool(http.trusted_proxies),
        forwarded_allow_ips=list(http.trusted_proxies),
        ssl_certfile=http.tls_certificate,
        ssl_keyfile=http.tls_key,
    )
    config.load()
    server = HttpServer(config)
    server.protocol, server.door, server.body_memory = protocol, door, memory
    server.handshake_s = http.header_deadline_s
    server.websockets = websockets
    return server
