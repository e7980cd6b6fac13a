"""The HTTP application of a control process, put together from its routes."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from tidemill import __doc__ as summary
from tidemill import __version__
from tidemill.control.accounts import account_routes, admin_routes, auth_routes, key_routes, second_factor_routes
from tidemill.control.artefacts import routes as artefacts
from tidemill.control.artefacts import upload_routes
from tidemill.control.context import Control
from tidemill.control.events import routes as events
from tidemill.control.events import trail_routes
from tidemill.control.http import problems
from tidemill.control.http.edge import Edge
from tidemill.control.jobs import routes as jobs
from tidemill.control.ledger import routes as ledger
from tidemill.control.models import routes as models
from tidemill.control.nodes import join_token_routes, telemetry_routes
from tidemill.control.nodes import routes as nodes
from tidemill.control.operations import health_routes, routes
from tidemill.control.pages import routes as pages
from tidemill.control.placement import explanation_routes, marketplace_routes

# Searched in this order, so what programs ask for comes before what people look at.
ROUTERS = (
    health_routes.router,
    auth_routes.set_up_router,
    auth_routes.router,
    account_routes.router,
    second_factor_routes.router,
    key_routes.router,
    events.router,
    join_token_routes.router,
    nodes.router,
    telemetry_routes.router,
    upload_routes.router,
    artefacts.router,
    models.router,
    jobs.router,
    explanation_routes.router,
    marketplace_routes.router,
    routes.router,
    admin_routes.router,
    trail_routes.router,
    ledger.router,
    pages.router,
)


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
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # flat: a tree of routers is searched branch by branch
    return app
