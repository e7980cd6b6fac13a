"""The guard before every route: who asks, how often, whether they may. A route without a row in the table is no route.

The sequence is fixed: foreign pages, then the caller, then the limit, then the table. So a flood of wrong tokens is
limited like any flood, and a caller without the right learns nothing about the object.
"""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.routing import APIRoute

from tidemill.control.accounts.callers import PresentedCredential
from tidemill.control.context import Control, address_of
from tidemill.control.http.problems import RouteRefused, documented
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.permissions import RULES, RouteRule, why_forbidden
from tidemill.core.accounts.roles import STRANGER, Caller, Credential
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.clock import SECOND, Instant
from tidemill.core.rate_limits import Limit, address_key
from tidemill.core.refusals import Refusal
from tidemill.serving.http_door import OPERATORS
from tidemill.serving.request_entry import ENTRY, RequestEntry

ACCESS_COOKIE = "tidemill_access"
REFRESH_COOKIE = "tidemill_refresh"
_REFRESH_PATH = "/api/v1/auth"
"""The access token goes to every path, the refresh token only to where it is changed."""
_COOKIES = frozenset({ACCESS_COOKIE, REFRESH_COOKIE})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

Serve = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """A route that serves only the callers that its row in the table allows."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        (method,) = options["methods"]
        self.rule = RULES[f"{method} {path}"]
        if not self.rule.unguarded:
            problems = documented(400, 401, 403, 429) if method == "POST" else documented(401, 403, 429)
            named = documented(409) if "_id}" in path else {}  # what was written for an id may mean several
            options["responses"] = {**problems, **named, **(options.get("responses") or {})}
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Serve:
        serve = super().get_route_handler()
        if self.rule.unguarded:
            return serve

        async def guarded(request: Request) -> Response:
            await admit(request, self.rule)
            return await serve(request)

        return guarded


async def admit(request: Request, rule: RouteRule) -> None:
    """Let the request through with its caller known, or refuse it."""
    control: Control = request.app.state.control
    now = control.clock.now()
    credential = _credential(request)
    if request.method not in _SAFE and _is_foreign(request, control):
        raise RouteRefused(RequestRefusal.FOREIGN_PAGE)
    address = address_of(request)
    caller = STRANGER if credential is None else control.callers.remembered(credential, address, now)
    if caller is None:
        assert credential is not None
        if not control.callers.knew(credential, address):
            await _limit(request, control, STRANGER, address, now)
        caller = await _find_caller(request, control, rule, credential, now)
    request.scope["caller"] = caller
    await _limit(request, control, caller, address, now)
    refusal: Refusal | None = why_forbidden(rule, caller, now, control.fresh_us)
    if refusal is None and not rule.before_set_up and caller.credential is not Credential.HOME:
        refusal = None if await control.is_set_up() else AccountStateRefusal.POOL_NOT_SET_UP
    refusal = refusal or _entry_refusal(request, caller, address)
    if refusal is not None:
        if caller is not STRANGER:
            control.denials.note(caller.name, address, f"{request.method} {request.scope['route'].path}", refusal)
        raise RouteRefused(refusal)


async def limited_by_address(control: Control, limit: Limit, device: SessionOrigin) -> None:
    """Take one from the limit of the device's address, or refuse."""
    await limited(control, limit, address_key(device.address))


async def limited(
    control: Control, limit: Limit, whose: str, *, cost: int = 1, refusal: Refusal = RequestRefusal.RATE_LIMITED
) -> None:
    """Take from a limit, or refuse. What costs more than the whole limit takes all of it."""
    allowance = await control.limiter.allowed(whose, limit, min(cost, limit.count))
    if not allowance.allowed:
        raise RouteRefused(refusal, allowance.retry_after_s)


def give_cookies(
    response: Response, control: Control, *, access: str, refresh: str, remember: bool, secure: bool
) -> None:
    """Scripts cannot read them and other sites cannot send them. Over TLS they are never sent in the clear.

    A session that is not remembered ends with the browser.
    """
    lasting_s = control.session_rules.remembered_us // SECOND if remember else None
    shared = {"httponly": True, "samesite": "strict", "secure": secure}
    response.set_cookie(ACCESS_COOKIE, access, max_age=control.tokens.lifetime_s, path="/", **shared)  # type: ignore[arg-type]
    response.set_cookie(REFRESH_COOKIE, refresh, max_age=lasting_s, path=_REFRESH_PATH, **shared)  # type: ignore[arg-type]


def take_cookies(response: Response) -> None:
    response.delete_cookie(ACCESS_COOKIE, path="/")
    response.delete_cookie(REFRESH_COOKIE, path=_REFRESH_PATH)


def _credential(request: Request) -> PresentedCredential | None:
    """The token, the key or the pass that a request shows."""
    if authorization := request.headers.get("authorization"):
        scheme, _, token = authorization.partition(" ")
        scheme = scheme.lower()
        if scheme not in ("bearer", "node"):
            raise RouteRefused(RequestRefusal.TOKEN_WRONG)
        return PresentedCredential(token.strip(), scheme == "node")
    cookie = request.cookies.get(ACCESS_COOKIE)
    return PresentedCredential(cookie) if cookie else None


def _is_foreign(request: Request, control: Control) -> bool:
    """Whether a page of another site sends this. Browsers say where a request comes from; programs need not."""
    origin = request.headers.get("origin")
    if origin is None:
        by_browser = "authorization" not in request.headers and not request.cookies.keys().isdisjoint(_COOKIES)
        return by_browser and request.headers.get("sec-fetch-site") != "same-origin"
    own = {f"{request.url.scheme}://{request.headers.get('host', '')}"}
    if public := control.settings.mail.public_url:
        parts = urlsplit(public)
        own.add(f"{parts.scheme}://{parts.netloc}")
    return origin not in own


async def _find_caller(
    request: Request, control: Control, rule: RouteRule, credential: PresentedCredential, now: Instant
) -> Caller:
    """Find the caller. An expired cookie is ignored on open routes: browsers send it unasked."""
    address = address_of(request)
    try:
        return await control.callers.find(credential, address, now)
    except RouteRefused as error:
        if rule.roles is None and "authorization" not in request.headers:
            return STRANGER
        route = f"{request.method} {request.scope['route'].path}"
        control.denials.note("stranger", address, route, error.refusal)
        raise


def _entry_refusal(request: Request, caller: Caller, address: str) -> Refusal | None:
    """Whether there is room for the caller's connection, and memory for the body; operators have their own places."""
    entry: RequestEntry = request.scope["state"][ENTRY]
    if caller.is_operator:
        return entry.admit(OPERATORS)
    return entry.admit(caller.account_id or caller.node_id or entry.key_of(address))


async def _limit(request: Request, control: Control, caller: Caller, address: str, now: Instant) -> None:
    """Take one request from the caller's bucket, and for a key from its account's, too. Every answer carries the state
    of the bucket with less in it."""
    limit = control.limits.of(caller)
    bucket_key = control.limits.whose_request(caller, address)
    allowance = control.limiter.take(bucket_key, limit, now) or await control.limiter.allowed(bucket_key, limit)
    request.scope["allowance"] = allowance
    if not allowance.allowed:
        raise RouteRefused(RequestRefusal.RATE_LIMITED)
    if (shared := control.limits.shared_by_keys(caller)) is None:
        return
    # After the key's own limit, so that a key that asks too often takes nothing from the others.
    whose = caller.account_bucket
    of_all = control.limiter.take(whose, shared, now) or await control.limiter.allowed(whose, shared)
    if of_all.remaining < allowance.remaining or not of_all.allowed:
        request.scope["allowance"] = of_all
    if not of_all.allowed:
        raise RouteRefused(RequestRefusal.ACCOUNT_RATE_LIMITED)
