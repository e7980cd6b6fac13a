"""Reading the ledger: what is on an account, how it came there, what is reserved, and whether all of it agrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import first_id_at
from tidemill.core.ledger import AccountKind
from tidemill.core.ledger.posting import AHEAD_US
from tidemill.store.check import Check
from tidemill.store.query import Connection, Query

_BALANCES = Query("ledger/balances")
_STATEMENT = Query("ledger/statement")
_BALANCE_AT = Query("ledger/balance_at")
_OPEN_HOLDS = Query("ledger/open_holds")
_CHECK_BALANCES = Query("ledger/check_balances")
_CHECK_HOLDS = Query("ledger/check_holds")
_CHECK_STRAYS = Query("ledger/check_strays")

_NUMBER_MAX = 2**63 - 1


@dataclass(frozen=True)
class Balance:
    """An account and what is on it: `posted_uc`, of which `held_uc` is reserved."""

    id: UUID
    kind: AccountKind
    owner_id: UUID | None
    name: str
    currency: str
    frozen: bool
    opened_at: Instant
    posted_uc: int
    held_uc: int

    @property
    def available_uc(self) -> int:
        return self.posted_uc - self.held_uc


@dataclass(frozen=True)
class Line:
    """One transfer as one account's statement shows it: positive for what came in. Numbers tell the order."""

    number: int
    id: UUID
    at: Instant
    kind: str
    cause: str
    counterpart_id: UUID
    amount_uc: int


@dataclass(frozen=True)
class OpenHold:
    """A hold of which something is left."""

    id: UUID
    account_id: UUID
    amount_uc: int
    currency: str
    captured_uc: int
    expires_at: Instant
    cause: str
    at: Instant


async def balances(
    connection: Connection, *, ids: Sequence[UUID] | None = None, after: UUID | None = None, limit: int = 500
) -> list[Balance]:
    rows = await _BALANCES.rows(connection, ids=ids, after=after, limit=limit)
    return [Balance(**{**row, "kind": AccountKind(row["kind"])}) for row in rows]


async def statement(connection: Connection, account_id: UUID, before: int | None, limit: int) -> list[Line]:
    """The newest lines of an account that were posted before a line; page on with the number of the last."""
    rows = await _STATEMENT.rows(connection, account_id=account_id, before=before or _NUMBER_MAX, limit=limit)
    return [Line(**row) for row in rows]


async def balance_at(connection: Connection, account_id: UUID, instant: Instant) -> int:
    """What was posted to an account up to an instant."""
    newest_id = first_id_at(Instant(instant + AHEAD_US))
    row = await _BALANCE_AT.row(connection, account_id=account_id, instant=instant, newest_id=newest_id)
    assert row
    posted_uc: int = row["posted_uc"]
    return posted_uc


async def open_holds(connection: Connection, account_id: UUID | None, limit: int) -> list[OpenHold]:
    rows = await _OPEN_HOLDS.rows(connection, account_id=account_id, limit=limit)
    return [OpenHold(**row) for row in rows]


async def check_books(connection: Connection) -> list[Check]:
    """Recompute every balance and every hold from the transfers. Reads only, and one moment of the books at a time."""
    wrong = await _CHECK_BALANCES.rows(connection)
    holds = await _CHECK_HOLDS.rows(connection)
    strays = await _CHECK_STRAYS.row(connection)
    assert strays
    return [
        Check(
            "balances", not wrong, _told([str(row["account_id"]) for row in wrong], "Each is what its transfers say.")
        ),
        Check("holds", not holds, _told([str(row["id"]) for row in holds], "Each is what its captures say.")),
        Check("sum", strays["strays"] == 0, f"{strays['transfers']} transfers, {strays['strays']} of them astray."),
    ]


def _told(wrong: Sequence[str], well: str) -> str:
    return f"Wrong: {', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''}." if wrong else well
