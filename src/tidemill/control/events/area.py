"""Events and the audit trail, as a control process runs it."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.events import routes, trail_routes
from tidemill.control.events.loops import TipDuty, TrailLoop
from tidemill.control.loops.frame import Loop


def _loops(control: Control) -> list[Loop]:
    return [
        control.feed,
        TrailLoop(control),
        TipDuty(control),
    ]


AREA = Area(
    routers=(
        routes.router,
        trail_routes.router,
    ),
    loops=_loops,
)
