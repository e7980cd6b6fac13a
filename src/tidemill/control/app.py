"""The HTTP application of a control process, put together from the routes of its areas."""

from collections.abc import Sequence

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
    """Tries only the routes that may fit a request, in their order.

    These are the routes of its path, or if there are none, those with parameters whose path begins like its own. A
    request that fits none of them goes to the router, which tries all, and answers what is wrong with it.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router.app
        routes = [route for route in router.routes if isinstance(route, APIRoute)]
        self._of_path = {
            path: [route for route in routes if route.path_regex.match(path)]
            for path in (route.path for route in routes if not route.param_convertors)
        }
        with_parameters = [(_beginning(route.path), route) for route in routes if route.param_convertors]
        self._with_parameters = {
            wanted: [route for beginning, route in with_parameters if beginning == wanted or "{" in "".join(beginning)]
            for wanted, _ in with_parameters
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for route in self._candidates(scope["path"]):
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                await route.handle(scope, receive, send)
                return
        await self._router(scope, receive, send)

    def _candidates(self, path: str) -> Sequence[APIRoute]:
        return self._of_path.get(path) or self._with_parameters.get(_beginning(path)) or ()


def _beginning(path: str) -> tuple[str, ...]:
    """The first three parts of a path, such as `/api/v1/jobs`."""
    return tuple(path.split("/", 4)[:4])
