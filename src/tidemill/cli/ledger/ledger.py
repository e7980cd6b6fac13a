"""`tidemill ledger`, where it reads the pool's books. It talks to the database itself."""

import asyncio
import csv
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.ledger import ledger_adjustments, ledger_archives
from tidemill.cli.ledger.ledger_accounts import (
    COLUMNS,
    WRITTEN,
    LedgerAccountArgument,
    account_fields,
    account_id,
    account_row,
)
from tidemill.cli.terminal.checks import print_checks
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table
from tidemill.core.clock import as_datetime, as_instant
from tidemill.core.ledger import AccountKind
from tidemill.core.ledger.spreadsheets import harmless
from tidemill.core.money import credits_of
from tidemill.core.refusals import Refusal
from tidemill.store.ledger import books
from tidemill.store.ledger.archive import check_archives
from tidemill.store.ledger.books import Balance, OpenHold, StatementLine
from tidemill.store.query import Connection

app = CommandGroup("The pool's books: accounts, holds, adjustments, archives.")
app.add_typer(ledger_adjustments.app)
app.add_typer(ledger_archives.app)

T = TypeVar("T")

RowLimit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Show at most so many.")]


@app.command()
def accounts(
    kind: Annotated[AccountKind | None, typer.Option(help="Only accounts of this kind.")] = None,
    limit: RowLimit = 500,
    as_json: AsJson = False,
) -> None:
    """List the accounts and what is on them."""
    balances, money = _read(lambda c: books.balances(c, kind=kind, limit=limit)), load_configuration().settings.money
    if as_json:
        print_json([account_fields(balance, money) for balance in balances])
    else:
        print_table(COLUMNS, [account_row(balance, money) for balance in balances])


@app.command()
def show(
    account: LedgerAccountArgument,
    before: Annotated[
        int | None, typer.Option(min=1, max=2**63 - 1, help="Only what was posted before the line of this number.")
    ] = None,
    at: Annotated[datetime | None, typer.Option(help="Also the balance at this time (UTC).")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    limit: RowLimit = 50,
    as_json: AsJson = False,
) -> None:
    """Show an account's statement, newest first."""
    money = load_configuration().settings.money
    ledger_account_id = account_id(account, money)
    balance, lines, past_uc = _read(lambda c: _statement(c, ledger_account_id, before, at, limit))
    if as_json:
        past = {} if past_uc is None else {"posted_then": credits_of(past_uc)}
        print_json({**account_fields(balance, money), **past, "lines": [_line_fields(line) for line in lines]})
    elif as_csv:
        _print_csv(lines)
    else:
        print_table(COLUMNS, [account_row(balance, money)])
        if past_uc is not None:
            print_table(("posted then",), [(credits_of(past_uc),)])
        print_table(("when", "amount", "kind", "cause", "transfer"), [_line_row(line) for line in lines])


@app.command()
def holds(
    account: Annotated[str | None, typer.Option(help=f"Only holds on this account: {WRITTEN}.")] = None,
    limit: RowLimit = 500,
    as_json: AsJson = False,
) -> None:
    """List the holds of which something is left, those that expire soonest first."""
    ledger_account_id = None if account is None else account_id(account, load_configuration().settings.money)
    open_holds = _read(lambda c: books.open_holds(c, ledger_account_id, limit))
    if as_json:
        print_json([_hold_fields(hold) for hold in open_holds])
    else:
        columns = ("hold", "account", "amount", "captured", "expires", "cause")
        print_table(columns, [tuple(_hold_fields(hold).values()) for hold in open_holds])


@app.command()
def check(
    archives: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Also the archives: the folder of their files.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every balance and hold from the transfers. May run beside live traffic."""
    checks = _read(books.check_books)
    if archives is not None:
        checks += _read(lambda c: check_archives(c, archives))
    advice = "stop payouts, and keep the database as it is until the cause is known."
    print_checks(checks, advice=advice, as_json=as_json)


def _read(question: Callable[[Connection], Awaitable[T]]) -> T:
    async def read() -> T:
        async with connected(running_urls(load_configuration().settings).program) as connection:
            return await question(connection)

    return asyncio.run(read())


async def _statement(
    connection: Connection, account: UUID, before: int | None, at: datetime | None, limit: int
) -> tuple[Balance, list[StatementLine], int | None]:
    balances = await books.balances(connection, ids=[account])
    if not balances:
        raise CommandRefused(f"There is no account {account}: `tidemill ledger accounts` lists them.")
    instant = None if at is None else as_instant(at.replace(tzinfo=UTC))
    past_uc = None if instant is None else await books.balance_at(connection, account, instant)
    if isinstance(past_uc, Refusal):
        raise CommandRefused(past_uc.sentence)
    return balances[0], await books.statement(connection, account, before, limit), past_uc


def _print_csv(lines: list[StatementLine]) -> None:
    writer = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
    writer.writerow(("at", "amount", "kind", "cause", "counterpart", "transfer"))
    for line in lines:
        writer.writerow((_line_fields(line) | {"kind": harmless(line.kind), "cause": harmless(line.cause)}).values())


def _line_fields(line: StatementLine) -> dict[str, str]:
    return {
        "at": as_datetime(line.at).isoformat(),
        "amount": credits_of(line.amount_uc),
        "kind": line.kind,
        "cause": line.cause,
        "counterpart": str(line.counterpart_id),
        "transfer": str(line.id),
    }


def _line_row(line: StatementLine) -> tuple[str, ...]:
    return f"{as_datetime(line.at):%Y-%m-%d %H:%M:%S}", credits_of(line.amount_uc), line.kind, line.cause, str(line.id)


def _hold_fields(hold: OpenHold) -> dict[str, str]:
    return {
        "hold": str(hold.id),
        "account": str(hold.account_id),
        "amount": credits_of(hold.amount_uc),
        "captured": credits_of(hold.captured_uc),
        "expires": as_datetime(hold.expires_at).isoformat(),
        "cause": hold.cause,
    }
