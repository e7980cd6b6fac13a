"""The index of routes finds what the router finds that tries them all."""

import asyncio
import re
from typing import Any

import pytest
from starlette.routing import Match

from tidemill.control.app import create_api
from tidemill.control.http.guard import GuardedRoute

API = create_api()
PATHS = sorted(
    {re.sub(r"{\w+(:\w+)?}", "check", route.path) for route in API.routes if isinstance(route, GuardedRoute)}
)
STRANGE = ["", "/", "//", "/api", "/api/v1", "/api/v1/", "/api/v1/auth/check/", "/api/v1/nodes/a/b/c/d", "/pages/a/b"]


def found_by_trying_all(method: str, path: str) -> GuardedRoute | None:
    scope = {"type": "http", "method": method, "path": path}
    fitting = (route for route in API.routes if route.matches(scope)[0] is Match.FULL)
    route = next(fitting, None)
    assert route is None or isinstance(route, GuardedRoute)
    return route


def found_by_index(method: str, path: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The route that is asked to answer."""
    answering: list[GuardedRoute | None] = []

    async def handle(route: GuardedRoute, *_: Any) -> None:
        answering.append(route)

    async def answer_without_a_route(*_: Any) -> None:
        answering.append(None)

    index = API.router.middleware_stack
    monkeypatch.setattr(GuardedRoute, "handle", handle)
    monkeypatch.setattr(index, "_router", answer_without_a_route)
    asyncio.run(index({"type": "http", "method": method, "path": path}, None, None))  # type: ignore[arg-type]
    (route,) = answering
    return route


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_the_index_finds_the_route_that_trying_all_finds(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {path: found_by_trying_all(method, path) for path in (*PATHS, *STRANGE)}
    found = {path: found_by_index(method, path, monkeypatch) for path in every}
    every["/pages/check"] = None  # its path begins with a parameter, so it is left to the router
    assert found == every
