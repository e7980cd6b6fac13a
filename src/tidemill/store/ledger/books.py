"""Reads the ledger: balances, statements, holds, and whether all of it agrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ledger import AccountKind
from tidemill.core.refusals import Refusal
from tidemill.store.checks import DatabaseCheck
from tidemill.store.query import Connection, Query

_BALANCES = Query("ledger/ledger/balances")
_STATEMENT = Query("ledger/ledger/statement")
_BALANCE_AT = Query("ledger/ledger/balance_at")
_OPEN_HOLDS = Query("ledger/ledger/open_holds")
_CHECK_BALANCES = Query("ledger/ledger/check_balances")
_CHECK_CHECKPOINTS = Query("ledger/ledger/check_checkpoints")
_CHECK_HOLDS = Query("ledger/ledger/check_holds")
_CHECK_STRAYS = Query("ledger/ledger/check_strays")

_NUMBER_MAX = 2**63 - 1


class PastRefusal(Refusal):
    ARCHIVED = "Entries of that time were archived: the files that `tidemill ledger archive` wrote have them."


@dataclass(frozen=True)
class Balance:
    """An account and its balance: `posted_uc`, of which `held_uc` is reserved. Deleted owners have no address."""

    id: UUID
    kind: AccountKind
    owner_id: UUID | None
    owner_address: str | None
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
class StatementLine:
    """One transfer in one account's statement: positive if money came in. Numbers give the order."""

    number: int
    id: UUID
    at: Instant
    kind: str
    cause: str
    counterpart_id: UUID
    amount_uc: int


@dataclass(frozen=True)
class OpenHold:
    """A hold with something left."""

    id: UUID
    account_id: UUID
    amount_uc: int
    currency: str
    captured_uc: int
    expires_at: Instant
    cause: str
    at: Instant


async def balances(
    connection: Connection,
    *,
    ids: Sequence[UUID] | None = None,
    kind: AccountKind | None = None,
    owner_id: UUID | None = None,
    after: UUID | None = None,
    limit: int = 500,
) -> list[Balance]:
    """Accounts ordered by id; page on with the last."""
    wanted = kind.value if kind else None
    rows = await _BALANCES.rows(connection, ids=ids, kind=wanted, owner_id=owner_id, after=after, limit=limit)
    return [Balance(**{**row, "kind": AccountKind(row["kind"])}) for row in rows]


async def statement(connection: Connection, account_id: UUID, before: int | None, limit: int) -> list[StatementLine]:
    """The newest lines of an account before a line; page on with the number of the last."""
    rows = await _STATEMENT.rows(
        connection, account_id=account_id, before=_NUMBER_MAX if before is None else before, limit=limit
    )
    return [StatementLine(**row) for row in rows]


async def balance_at(connection: Connection, account_id: UUID, instant: Instant) -> int | PastRefusal:
    """The balance of an account at an instant."""
    row = await _BALANCE_AT.row(connection, account_id=account_id, instant=instant)
    assert row
    posted_uc: int = row["posted_uc"]
    return PastRefusal.ARCHIVED if row["archived"] else posted_uc


async def open_holds(connection: Connection, account_id: UUID | None, limit: int) -> list[OpenHold]:
    rows = await _OPEN_HOLDS.rows(connection, account_id=account_id, limit=limit)
    return [OpenHold(**row) for row in rows]


async def check_books(connection: Connection) -> list[DatabaseCheck]:
    """Recompute every balance, checkpoint and hold from the transfers. Reads only; each check sees one moment."""
    balances_wrong = [row["wrong"] for row in await _CHECK_BALANCES.rows(connection)]
    checkpoints_wrong = [str(row["account_id"]) for row in await _CHECK_CHECKPOINTS.rows(connection)]
    holds_wrong = [str(row["id"]) for row in await _CHECK_HOLDS.rows(connection)]
    strays = await _CHECK_STRAYS.row(connection)
    assert strays
    return [
        _check("balances", balances_wrong, "Each is what its transfers say, and all together are zero."),
        _check("checkpoints", checkpoints_wrong, "Each is the one before it and what was posted between."),
        _check("holds", holds_wrong, "Each is what its captures say."),
        DatabaseCheck(
            "sum", strays["strays"] == 0, f"{strays['transfers']} transfers, {strays['strays']} of them astray."
        ),
    ]


def _check(name: str, wrong: Sequence[str], well: str) -> DatabaseCheck:
    detail = f"Wrong: {', '.join(wrong[:5])}{' …' if len(wrong) > 5 else ''}." if wrong else well
    return DatabaseCheck(name, not wrong, detail)
