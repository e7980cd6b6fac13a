"""Operating a pool: the routes and loops that every control process needs."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.operations import health_routes, routes
from tidemill.control.operations.backup_loop import BackupDuty
from tidemill.control.operations.housekeeping import (
    AnnounceLoop,
    ClockLoop,
    DemandDuty,
    ForgettingLoop,
    HeartbeatLoop,
    LostProcessLoop,
    PartitionDuty,
)
from tidemill.control.operations.keyring_loop import KeyringLoop
from tidemill.store.clock import DatabaseClock


def _loops(control: Control) -> list[Loop]:
    assert isinstance(control.clock, DatabaseClock)
    loops: list[Loop] = [
        AnnounceLoop(control),
        ClockLoop(control, control.clock),
        HeartbeatLoop(control),
        LostProcessLoop(control),
        ForgettingLoop(control),
        KeyringLoop(control),
        PartitionDuty(control),
        DemandDuty(control),
    ]
    if control.backups and control.settings.database.backups_enabled:
        loops.append(BackupDuty(control, control.backups.owner_url, control.backups.folder))
    return loops


AREA = Area(routers=(health_routes.router, routes.router), loops=_loops)
