"""The HTTP application of a control process, put together from its routes."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from tidemill import __doc__ as summary
from tidemill import __version__
from tidemill.control import problems
from tidemill.control.context import Control
from tidemill.control.edge import Edge
from tidemill.control.routes import (
    account,
    admin,
    admin_accounts,
    artefacts,
    auth,
    events,
    explanations,
    health,
    jobs,
    join_tokens,
    keys,
    ledger,
    marketplace,
    models,
    node_telemetry,
    nodes,
    pages,
    second_factor,
    trail,
    uploads,
)

# Searched in this order, so what programs ask for comes before what people look at.
ROUTERS = (
    health.router,
    auth.set_up_router,
    auth.router,
    account.router,
    second_factor.router,
    keys.router,
    events.router,
    join_tokens.router,
    nodes.router,
    node_telemetry.router,
    uploads.router,
    artefacts.router,
    models.router,
    jobs.router,
    explanations.router,
    marketplace.router,
    admin.router,
    admin_accounts.router,
    trail.router,
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
