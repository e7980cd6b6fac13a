"""`tidemill ledger archive`: moves a month of the ledger into a file, as the role that owns the schema."""

import asyncio
import re
import secrets
from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table, report
from tidemill.core.clock import as_datetime
from tidemill.core.ids import Ids
from tidemill.core.refusals import Refusal
from tidemill.store.clock import read_clock
from tidemill.store.events import events
from tidemill.store.ledger import archive as store
from tidemill.store.ledger.archive import Archive

app = CommandGroup()


@app.command()
def archive(
    month: Annotated[str, typer.Argument(metavar="YYYY-MM", help="Which month; the oldest comes first.")],
    to: Annotated[Path, typer.Option(file_okay=False, exists=True, writable=True, help="The folder for the file.")],
    as_json: AsJson = False,
) -> None:
    """Write a month that is over to a file, and take it out of the database.

    Checkpoints stand for it, and its ids stay. Keep the file and a copy: its entries are nowhere else.
    """
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise CommandRefused(f"{month!r} is no month: write it as 2026-03.")
    archived = asyncio.run(_archive(month, to))
    sentence = (
        f"{archived.entries} entries of {archived.month} are in {to / archived.file}: keep it, and a copy elsewhere."
    )
    report(sentence, _fields(archived), as_json=as_json)


@app.command()
def archives(as_json: AsJson = False) -> None:
    """List the months that were archived, and the hashes of their files."""
    listed = asyncio.run(_archives())
    if as_json:
        print_json([_fields(archived) for archived in listed])
    else:
        print_table(
            ("month", "archived", "entries", "file", "sha256"),
            [tuple(_fields(archived).values()) for archived in listed],
        )


async def _archive(month: str, folder: Path) -> Archive:
    async with connected(running_urls(load_configuration().settings).owner) as owner:
        archived = await store.archive_month(owner, month, folder, Ids(secrets.randbits), await read_clock(owner))
        if isinstance(archived, Refusal):
            raise CommandRefused(archived.sentence)
        await events.wake(owner)
        return archived


async def _archives() -> list[Archive]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        return await store.archives(connection)


def _fields(archived: Archive) -> dict[str, str]:
    return {
        "month": archived.month,
        "archived_at": as_datetime(archived.archived_at).isoformat(timespec="seconds"),
        "entries": str(archived.entries),
        "file": archived.file,
        "sha256": archived.sha256,
    }
