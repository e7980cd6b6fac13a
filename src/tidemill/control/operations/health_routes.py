"""Health, readiness and metrics: for load balancers, scripts and monitoring."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from tidemill import __version__
from tidemill.control.context import Control, ControlPart
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.views import API
from tidemill.core.faults import Fault
from tidemill.store.operations import switches

router = APIRouter(tags=["health"], route_class=GuardedRoute)

_DATABASE_S = 2.0


class HealthView(BaseModel):
    alive: bool
    version: str


class ReadinessView(BaseModel):
    """`checks` says for each part `ok`, or what is wrong; `stopped` lists the switches that are thrown, and why."""

    ready: bool
    version: str
    process_id: str
    checks: dict[str, str]
    stopped: dict[str, str]


@router.get("/healthz")
async def healthz() -> HealthView:
    """The process answers."""
    return HealthView(alive=True, version=__version__)


@router.get("/readyz", responses={503: {"model": ReadinessView, "description": "Not ready; `checks` says why."}})
async def readyz(control: ControlPart) -> JSONResponse:
    """The process can do its work. Load balancers send nobody here while it cannot."""
    stopped: dict[str, str] = {}
    checks = {
        "database": await _database(control, stopped),
        "clock": "ok" if control.clock.trusted else "The database's clock jumped and is settling.",
        "loops": _loops(control),
        "requests": "The process is shutting down." if control.draining.is_set() else "ok",
    }
    ready = all(check == "ok" for check in checks.values())
    view = ReadinessView(
        ready=ready, version=__version__, process_id=str(control.process_id), checks=checks, stopped=stopped
    )
    return JSONResponse(view.model_dump(), 200 if ready else 503)


@router.get("/metrics", response_class=Response)
async def metrics(control: ControlPart) -> Response:
    """Prometheus metrics, for operators and for whoever shows the metrics token."""
    control.metrics.connections_used.set(control.loop_database.in_use + control.route_database.in_use)
    return Response(control.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


@router.get(f"{API}/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The API as programs read it."""
    return JSONResponse(request.app.openapi())


async def _database(control: Control, stopped: dict[str, str]) -> str:
    """Whether the database answers. The query also reads which switches are thrown."""
    try:
        async with asyncio.timeout(_DATABASE_S), control.loop_database.connection() as connection:
            states = await switches.states(connection)
    except TimeoutError:
        return f"The database did not answer within {_DATABASE_S:.0f} s."
    except Fault:
        return "The database cannot be used; the log says why."
    stopped.update({state.switch.value: state.reason for state in states.values() if state.stopped})
    return "ok"


def _loops(control: Control) -> str:
    failing = sorted(runner.loop.name for runner in control.runners if runner.failing)
    return f"Failing: {', '.join(failing)}; the log says why." if failing else "ok"
