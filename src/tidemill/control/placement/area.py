"""Placement, as a control process runs it."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.placement import explanation_routes, marketplace_routes
from tidemill.control.placement.assignment_loop import AssignmentLoop
from tidemill.control.placement.placing_loop import PlacingLoop
from tidemill.control.placement.queue_loop import QueueLoop


def _loops(control: Control) -> list[Loop]:
    assignment = AssignmentLoop(control, control.links)
    return [
        PlacingLoop(control, on_placed=assignment.placed),
        assignment,
        QueueLoop(control),
    ]


AREA = Area(
    routers=(
        explanation_routes.router,
        marketplace_routes.router,
    ),
    loops=_loops,
)
