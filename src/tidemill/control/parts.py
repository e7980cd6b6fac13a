"""What every loop and every route of one control process works with."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.control.metrics import Metrics
from tidemill.core.clock import Clock
from tidemill.core.ids import Ids
from tidemill.core.settings import Settings
from tidemill.store.database import Database
from tidemill.store.ledger.poster import Poster
from tidemill.store.operations.keyring import Keyring


@dataclass(kw_only=True)
class Parts:
    """Made once, when the process starts. Time and ids come from here, so that tests can bring their own."""

    settings: Settings
    process_id: UUID
    loop_database: Database
    clock: Clock
    ids: Ids
    metrics: Metrics
    poster: Poster
    keyring: Keyring
