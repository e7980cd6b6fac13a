"""`tidemill ledger`, where it reads the pool's books, as an operator. Only the checks need the database itself."""

import asyncio
import csv
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.ledger import ledger_adjustments, ledger_archives
from tidemill.cli.ledger.ledger_accounts import (
    COLUMNS,
    WRITTEN,
    LedgerAccountArgument,
    account_id,
    account_row,
)
from tidemill.cli.terminal.checks import print_checks
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, print_json, print_table
from tidemill.core.ids import short_id, with_short_ids
from tidemill.core.ledger import AccountKind
from tidemill.core.ledger.spreadsheets import harmless
from tidemill.store.ledger import books
from tidemill.store.ledger.archive import check_archives
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
    query = {} if kind is None else {"kind": kind.value}
    listed = pool_caller().listed("/ledger/accounts", query, limit)
    if as_json:
        print_json(listed)
    else:
        print_table(COLUMNS, [account_row(account) for account in listed])


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
    path, caller = f"/ledger/accounts/{account_id(account, load_configuration().settings.money)}", pool_caller()
    view = caller.ask("GET", path, query={} if at is None else {"at": at.replace(tzinfo=UTC).isoformat()})
    then = view.pop("posted_then")
    lines = caller.listed(f"{path}/statement", {} if before is None else {"after": str(before)}, limit)
    if as_json:
        past = {} if then is None else {"posted_then": then}
        print_json({**view, **past, "lines": [_line_fields(line) for line in lines]})
    elif as_csv:
        _print_csv(lines)
    else:
        print_table(COLUMNS, [account_row(view)])
        if then is not None:
            print_table(("posted then",), [(then,)])
        print_table(("when", "amount", "kind", "cause", "transfer"), [_line_row(line) for line in lines])


@app.command()
def holds(
    account: Annotated[str | None, typer.Option(help=f"Only holds on this account: {WRITTEN}.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="Show at most so many.")] = 500,
    as_json: AsJson = False,
) -> None:
    """List the holds of which something is left, those that expire soonest first."""
    only = {} if account is None else {"account": str(account_id(account, load_configuration().settings.money))}
    page = pool_caller().ask("GET", "/ledger/holds", query={**only, "limit": str(limit)})
    if as_json:
        print_json([_hold_fields(hold) for hold in page["items"]])
    else:
        columns = ("hold", "account", "amount", "captured", "expires", "cause")
        print_table(columns, [tuple(map(with_short_ids, _hold_fields(hold).values())) for hold in page["items"]])


@app.command()
def check(
    archives: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Also the archives: the folder of their files.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute every balance and hold of this machine's pool from the transfers. May run beside live traffic."""
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


def _print_csv(lines: list[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
    writer.writerow(("at", "amount", "kind", "cause", "counterpart", "transfer"))
    for line in lines:
        writer.writerow(
            (_line_fields(line) | {"kind": harmless(line["kind"]), "cause": harmless(line["cause"])}).values()
        )


def _line_fields(line: dict[str, Any]) -> dict[str, str]:
    fields = {name: line[name] for name in ("at", "amount", "kind", "cause", "counterpart")}
    return {**fields, "transfer": line["id"]}


def _line_row(line: dict[str, Any]) -> tuple[str, ...]:
    return moment(line["at"]), line["amount"], line["kind"], line["cause"], short_id(line["id"])


def _hold_fields(hold: dict[str, Any]) -> dict[str, str]:
    fields = {name: hold[name] for name in ("account", "amount", "captured")}
    return {"hold": hold["id"], **fields, "expires": hold["expires_at"], "cause": hold["cause"]}
