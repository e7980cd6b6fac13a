"""Artefacts, as a control process runs them."""

from tidemill.control.area import Area
from tidemill.control.artefacts import routes, upload_routes
from tidemill.control.artefacts.fee_loop import StorageFeeDuty
from tidemill.control.artefacts.loops import ArtefactDuty, SweepDuty
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop


def _loops(control: Control) -> list[Loop]:
    return [
        ArtefactDuty(control, control.artefacts),
        SweepDuty(control, control.artefacts),
        StorageFeeDuty(control),
    ]


AREA = Area(
    routers=(
        upload_routes.router,
        routes.router,
    ),
    loops=_loops,
)
