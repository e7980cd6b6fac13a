"""The outermost layer of the HTTP server: request ids, a limit on bodies, one log line and one metric a request.

Also the last word on bugs: an exception that nobody answered is logged with its request id and answered with 500.
"""

import re
from time import perf_counter

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemill.control.context import Control
from tidemill.control.http.limiter import headers as limit_headers
from tidemill.control.http.problems import refusal
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.nodes.pool_urls import is_loopback
from tidemill.serving.large_bodies import is_of_uploads, may_be_large

log = structlog.get_logger()

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_QUIET = {"/healthz", "/readyz", "/metrics"}
_LOCAL_NAMES = {"127.0.0.1", "localhost", "[::1]"}
_TUS = [(b"tus-resumable", b"1.0.0"), (b"tus-version", b"1.0.0")]
"""Headers that tus requires in every answer about uploads."""

_ONLY_BY_TLS = (b"strict-transport-security", b"max-age=31536000")
"""Browsers that have seen it ask by TLS only, for a year."""

_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]


class Edge:
    """Wraps the application. Plain ASGI, because every request passes here."""

    def __init__(self, app: ASGIApp, control: Control) -> None:
        self._app = app
        self._control = control
        settings = control.settings
        self._for_this_machine = is_loopback(settings.host) and not settings.http.trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope["request_id"] = self._request_id(scope)
        started = perf_counter()
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [(b"x-request-id", request_id.encode()), *_HEADERS, *message["headers"]]
                if scope["path"].startswith("/api/") and all(name != b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                if scope["scheme"] == "https" and not self._is_local(scope):
                    headers.append(_ONLY_BY_TLS)
                if is_of_uploads(scope["path"]):
                    headers += _TUS
                if (allowance := scope.get("allowance")) is not None:
                    headers += limit_headers(allowance)
                message = {**message, "headers": headers}
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                app = self._app if self._is_ours(scope) else self._elsewhere
                await app(scope, self._bounded(scope, receive), send_marked)
            except Exception:
                # The application has already answered with a problem; here the cause reaches the log.
                log.exception("bug", path=scope["path"])
            finally:
                self._record(scope, status, perf_counter() - started)

    def _is_ours(self, scope: Scope) -> bool:
        """Whether the host name is ours. On a pool for this machine, any other name is an attempt at DNS rebinding."""
        return not self._for_this_machine or self._is_local(scope)

    def _is_local(self, scope: Scope) -> bool:
        """Whether it was asked by a name of this machine, which belongs to other programs as well."""
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        return host.rpartition(":")[0] in _LOCAL_NAMES or host in _LOCAL_NAMES

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        await refusal(Request(scope), RequestRefusal.WRONG_HOST)(scope, receive, send)

    def _request_id(self, scope: Scope) -> str:
        """The caller's own id if it is well-formed, since it goes into our logs; else a new one."""
        request_id = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), "")
        return (
            request_id if _REQUEST_ID.fullmatch(request_id) else str(self._control.ids.new(self._control.clock.now()))
        )

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The request's body, until it is longer than we accept."""
        settings = self._control.settings
        large = may_be_large(scope["method"], scope["path"])
        limit = settings.artefacts.size_max_bytes if large else settings.http.body_limit_bytes
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            if announced.isdigit() and int(announced) > limit:
                raise HTTPException(413)
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413)
            return message

        return receive_bounded

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unmatched")
        self._control.metrics.http_requests.labels(scope["method"], route, str(status)).observe(seconds)
        if scope["path"] not in _QUIET:
            client = (scope.get("client") or ("",))[0]
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(seconds * 1000, 1),
                client=client,
            )
