"""The HTTP application of a control process, put together from its routes."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from tidemill import __doc__ as summary
from tidemill import __version__
from tidemill.control import problems
from tidemill.control.context import Control
from tidemill.control.edge import Edge
from tidemill.control.routes import API, admin, events, health, ledger, trail


def create_app(control: Control) -> ASGIApp:
    return Edge(create_api(control), control)


def create_api(control: Control | None = None) -> FastAPI:
    """The application without its outermost layer; without a control process it can only describe itself."""
    app = FastAPI(
        title="Tidemill",
        version=__version__,
        description=summary or "",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.control = control
    problems.install(app)
    app.include_router(health.router)
    app.include_router(events.router)
    app.include_router(admin.router)
    app.include_router(ledger.router)
    app.include_router(trail.router)
    return app
