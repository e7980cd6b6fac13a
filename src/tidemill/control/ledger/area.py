"""The ledger, as a control process runs it."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.ledger import routes
from tidemill.control.ledger.loops import CheckpointDuty, HoldExpiryLoop
from tidemill.control.loops.frame import Loop


def _loops(control: Control) -> list[Loop]:
    return [
        HoldExpiryLoop(control),
        CheckpointDuty(control),
    ]


AREA = Area(routers=(routes.router,), loops=_loops)
