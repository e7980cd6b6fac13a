"""Jobs, as a control process runs them."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.jobs import routes
from tidemill.control.jobs.reaping_loop import ReapingLoop
from tidemill.control.loops.frame import Loop


def _loops(control: Control) -> list[Loop]:
    return [
        ReapingLoop(control, control.attempt_reports),
    ]


AREA = Area(routers=(routes.router,), loops=_loops)
