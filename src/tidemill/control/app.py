"""The HTTP application of a control process, put together from the routes of its areas."""

from fastapi import FastAPI
from starlette.types import ASGIApp

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
            app.router.routes.extend(router.routes)  # flat: a tree of routers is searched branch by branch
    return app
