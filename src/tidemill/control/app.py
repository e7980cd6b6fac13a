"""The HTTP application of a control process, put together from the routes of its areas."""

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from tidemill import __doc__ as summary
from tidemill import __version__
from tidemill.control.areas import AREAS
from tidemill.control.context import Control
from tidemill.control.http import problems
from tidemill.control.http.edge import Edge


def create_app(control: Control) -> ASGIApp:
    return Edge(create_api(control), control)


def create_api(control: Control | None = None) -> FastAPI:
    """The application without its outermost layer; without a control process it can only describe itself."""
    app = FastAPI(
        title="Tidemill",
        version=__version__,
        description=summary or "",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    app.state.control = control
    problems.install(app)
    for area in AREAS:
        for router in area.routers:
            app.router.routes.extend(router.routes)
    app.router.middleware_stack = _RouteIndex(app.router)
    return app


class _RouteIndex:
    """Tries only the routes whose path begins like the request's, in their order.

    A request that fits none of them goes to the router, which tries all, and answers what is wrong with it.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router.app
        routes = [(_beginning(route.path), route) for route in router.routes if isinstance(route, APIRoute)]
        self._routes = {
            wanted: [route for beginning, route in routes if beginning == wanted or "{" in "".join(beginning)]
            for wanted, _ in routes
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for route in self._routes.get(_beginning(scope["path"]), ()):
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                await route.handle(scope, receive, send)
                return
        await self._router(scope, receive, send)


def _beginning(path: str) -> tuple[str, ...]:
    """The first three parts of a path, such as `/api/v1/jobs`."""
    return tuple(path.split("/", 4)[:4])
