"""Events: what happened, typed, in one order that never changes.

Every state change appends one event in its own transaction. An event names its kind, what it is about, and who may
read it besides operators: anyone, or some accounts. A cursor is (generation, transaction, number): transactions are
ordered as PostgreSQL numbers them, and a restored backup begins a new generation.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self
from uuid import UUID

from tidemill.core.clock import Instant

_NUMBER_MAX = 2**63 - 1


class Cursor(NamedTuple):
    """A position in the log, behind one event. Cursors compare in the order of the log."""

    generation: int
    transaction: int
    number: int

    def __str__(self) -> str:
        return f"{self.generation}.{self.transaction}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None for text that is not a cursor."""
        parts = text.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
            return None
        cursor = cls(*map(int, parts))
        return cursor if max(cursor) <= _NUMBER_MAX else None


LOG_START = Cursor(0, 0, 0)


@dataclass(frozen=True)
class Event:
    """Base of all events. `public` events may be read by anyone; `audited` ones go into the audit trail."""

    kind: ClassVar[str]
    public: ClassVar[bool] = False
    audited: ClassVar[bool] = False

    def __init_subclass__(cls, *, kind: str, public: bool = False, audited: bool = False) -> None:
        assert kind not in KINDS, f"two events are called {kind}"
        cls.kind, cls.public, cls.audited = kind, public, audited
        KINDS[kind] = cls

    @property
    def subject(self) -> str:
        """What the event is about, such as `process:0190…`."""
        return "pool"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        """The accounts that may read it."""
        return ()

    def body(self) -> Mapping[str, Any]:
        return {name: str(value) if isinstance(value, UUID) else value for name, value in asdict(self).items()}


KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True)
class RecordedEvent:
    """An event as the log holds it."""

    generation: int
    transaction: int
    number: int
    id: UUID
    at: Instant
    kind: str
    subject: str
    body: Mapping[str, Any]
    public: bool
    accounts: list[UUID]

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.generation, self.transaction, self.number)


@dataclass(frozen=True)
class EventReader:
    """A reader of events: an operator, an account, or (neither) a stranger."""

    operator: bool = False
    account_id: UUID | None = None


def may_read(reader: EventReader, event: RecordedEvent) -> bool:
    return reader.operator or event.public or (reader.account_id is not None and reader.account_id in event.accounts)


@dataclass(frozen=True)
class _OfProcess:
    """What events about one control process share."""

    process_id: UUID

    @property
    def subject(self) -> str:
        return f"process:{self.process_id}"


@dataclass(frozen=True)
class PoolCreated(Event, kind="pool.created", public=True, audited=True):
    """The pool began, with an empty database."""

    version: str


@dataclass(frozen=True)
class PoolRestored(Event, kind="pool.restored", public=True, audited=True):
    """The database was put back from a backup; what came after that backup is gone."""

    source: str


@dataclass(frozen=True)
class KeysRotated(Event, kind="pool.keys_rotated", audited=True):
    """An operator changed the keys that seal the pool's secrets. A master key is known by its id."""

    master_key: str
    by: str


@dataclass(frozen=True)
class SwitchThrown(Event, kind="pool.switch_thrown", public=True, audited=True):
    """An operator stopped a part of the pool, or started it again."""

    switch: str
    stopped: bool
    reason: str
    by: str


@dataclass(frozen=True)
class TrailTipPublished(Event, kind="audit.head_published", public=True):
    """The head of the audit trail, for everybody to keep: what came before it cannot be changed unnoticed."""

    number: int
    sha256: str
    at_us: int

    @property
    def subject(self) -> str:
        return "audit"


@dataclass(frozen=True)
class BackupMade(Event, kind="pool.backup_made"):
    """The daily backup was made, with so many artefacts; `missing` are named in the database and were not there."""

    file: str
    size_bytes: int
    artefacts: int
    missing: int


@dataclass(frozen=True)
class BackupFailed(Event, kind="pool.backup_failed"):
    """The daily backup could not be made; it is tried again."""

    cause: str


@dataclass(frozen=True)
class ClockAlarm(_OfProcess, Event, kind="pool.clock_alarm"):
    """The database's clock jumped, settled at its new time, or went back."""

    observation: str
    difference_s: float


@dataclass(frozen=True)
class ProcessStarted(_OfProcess, Event, kind="process.started", audited=True):
    """A control process joined the pool."""

    host: str
    version: str


@dataclass(frozen=True)
class ProcessStopped(_OfProcess, Event, kind="process.stopped"):
    """A process said goodbye."""


@dataclass(frozen=True)
class ProcessLost(_OfProcess, Event, kind="process.lost"):
    """A process went silent without saying goodbye."""


@dataclass(frozen=True)
class ProcessReturned(_OfProcess, Event, kind="process.returned"):
    """A process that was given up for lost is back."""


@dataclass(frozen=True)
class LedgerPosted(Event, kind="ledger.posted"):
    """A batch of entries was answered: so many were posted, so many refused for the first time."""

    posted: int
    refused: int

    @property
    def subject(self) -> str:
        return "ledger"


@dataclass(frozen=True)
class LedgerArchived(Event, kind="ledger.archived", audited=True):
    """A month of entries went into a file; its hash tells whether a file is that one."""

    month: str
    entries: int
    file: str
    sha256: str

    @property
    def subject(self) -> str:
        return "ledger"


@dataclass(frozen=True)
class _OfLedgerAccount:
    account_id: UUID

    @property
    def subject(self) -> str:
        return str(self.account_id)


@dataclass(frozen=True)
class AccountFrozen(_OfLedgerAccount, Event, kind="ledger.account_frozen", audited=True):
    """An operator froze an account of the ledger, or unfroze it."""

    frozen: bool
    reason: str
    by: str


@dataclass(frozen=True)
class _OfAdjustment:
    adjustment_id: UUID

    @property
    def subject(self) -> str:
        return str(self.adjustment_id)


@dataclass(frozen=True)
class AdjustmentProposed(_OfAdjustment, Event, kind="ledger.adjustment_proposed", audited=True):
    """An operator proposed a manual adjustment, which waits for a second one."""

    amount_uc: int
    currency: str
    reason: str
    by: str


@dataclass(frozen=True)
class AdjustmentSettled(_OfAdjustment, Event, kind="ledger.adjustment_settled", audited=True):
    """An operator approved an adjustment, which was posted; or rejected it."""

    state: str
    by: str
