"""Reads the ledger: balances, statements, holds, and whether all of it agrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ledger import AccountKind
from tidemill.core.refusals import Refusal
from tidemill.store.checks import DatabaseCheck
from tidemill.store.query import Connection, Query

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


class _PastBalanceRow(NamedTuple):
    posted_uc: int
    archived: bool


class _StraysRow(NamedTuple):
    strays: int
    transfers: int


_BALANCES = Query("ledger/ledger/balances", Balance)
_STATEMENT = Query("ledger/ledger/statement", StatementLine)
_BALANCE_AT = Query("ledger/ledger/balance_at", _PastBalanceRow)
_OPEN_HOLDS = Query("ledger/ledger/open_holds", OpenHold)
_CHECK_BALANCES = Query("ledger/ledger/check_balances", str)
_CHECK_CHECKPOINTS = Query("ledger/ledger/check_checkpoints", UUID)
_CHECK_HOLDS = Query("ledger/ledger/check_holds", UUID)
_CHECK_STRAYS = Query("ledger/ledger/check_strays", _StraysRow)


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
    return await _BALANCES.rows(connection, ids=ids, kind=wanted, owner_id=owner_id, after=after, limit=limit)


async def statement(connection: Connection, account_id: UUID, before: int | None, limit: int) -> list[StatementLine]:
    """The newest lines of an account before a line; page on with the number of the last."""
    return await _STATEMENT.rows(
        connection, account_id=account_id, before=_NUMBER_MAX if before is None else before, limit=limit
    )


async def balance_at(connection: Connection, account_id: UUID, instant: Instant) -> int | PastRefusal:
    """The balance of an account at an instant."""
    past = await _BALANCE_AT.only(connection, account_id=account_id, instant=instant)
    return PastRefusal.ARCHIVED if past.archived else past.posted_uc


async def open_holds(connection: Connection, account_id: UUID | None, limit: int) -> list[OpenHold]:
    return await _OPEN_HOLDS.rows(connection, account_id=account_id, limit=limit)


async def check_books(connection: Connection) -> list[DatabaseCheck]:
    """Recompute every balance, checkpoint and hold from the transfers. Reads only; each check sees one moment."""
    balances_wrong = await _CHECK_BALANCES.rows(connection)
    checkpoints_wrong = await _CHECK_CHECKPOINTS.rows(connection)
    holds_wrong = await _CHECK_HOLDS.rows(connection)
    strays, transfers = await _CHECK_STRAYS.only(connection)
    return [
        _check("balances", balances_wrong, "Each is what its transfers say, and all together are zero."),
        _check("checkpoints", checkpoints_wrong, "Each is the one before it and what was posted between."),
        _check("holds", holds_wrong, "Each is what its captures say."),
        DatabaseCheck("sum", strays == 0, f"{transfers} transfers, {strays} of them astray."),
    ]


def _check(name: str, wrong: Sequence[str | UUID], well: str) -> DatabaseCheck:
    detail = f"Wrong: {', '.join(map(str, wrong[:5]))}{' …' if len(wrong) > 5 else ''}." if wrong else well
    return DatabaseCheck(name, not wrong, detail)
