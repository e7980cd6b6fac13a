"""`tidemill artefacts`: inputs, models and results that you keep in the pool.

Interrupted uploads and downloads resume when the same command is run again.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.artefacts.artefact_downloads import download
from tidemill.cli.artefacts.artefact_uploads import FileToUpload, FileUpload, hash_file
from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import ArtefactReference, OwnerOption, at
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, in_words, print_fields, print_json, print_table, report
from tidemill.core.artefacts.artefact import Purpose
from tidemill.core.ids import short_id
from tidemill.host.standard_error import say

app = CommandGroup("Inputs, models and results that you keep in the pool.")

_ROUTE = "/artefacts"


class UploadPurpose(StrEnum):
    """What a person uploads."""

    INPUT = "input"
    MODEL = "model"


@app.command()
def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to upload.")],
    name: Annotated[str, typer.Option(help="What it is called in the pool; the file's own name if not given.")] = "",
    purpose: Annotated[UploadPurpose, typer.Option(help="What it is for.")] = UploadPurpose.INPUT,
    as_json: AsJson = False,
) -> None:
    """Upload a file. Run again after an interruption, it goes on where it was."""
    artefact = upload_file(file, name or file.name, purpose)
    print_artefact(artefact, as_json=as_json)


@app.command("list")
def list_artefacts(
    purpose: Annotated[Purpose | None, typer.Option(help="Only what is for this.")] = None,
    owner: OwnerOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List your artefacts, newest first; an operator sees everybody's."""
    filters = {"purpose": purpose, "owner": owner}
    artefacts = pool_caller().listed(_ROUTE, {name: str(value) for name, value in filters.items() if value}, limit)
    if as_json:
        print_json(artefacts)
    elif artefacts:
        print_table(("id", "name", "purpose", "size", "made (UTC)"), [_row(artefact) for artefact in artefacts])
    else:
        say("There are no artefacts: `tidemill artefacts put FILE` uploads one.")


@app.command()
def usage(as_json: AsJson = False) -> None:
    """Show how much you keep, how much you may keep, and what a day of it costs."""
    view = pool_caller().ask("GET", f"{_ROUTE}/usage")
    if as_json:
        print_json(view)
        return
    fields = {
        "kept": in_words(view["used_bytes"]),
        "under way": in_words(view["reserved_bytes"]),
        "you may keep": f"{in_words(view['allowed_bytes'])}, at your balance",
        "free for everybody": in_words(view["free_bytes"]),
        "price beyond that": f"{view['price']} credits a GiB and month",
        "your fee": f"{view['fee']} credits a day",
    }
    if until := view["unpaid_until"]:
        fields["not paid"] = f"what is not free is deleted on {moment(until)} UTC"
    print_fields(fields)


@app.command()
def show(artefact: ArtefactReference, as_json: AsJson = False) -> None:
    """Show an artefact, with its SHA-256."""
    print_artefact(pool_caller().ask("GET", at(_ROUTE, artefact)), as_json=as_json)


@app.command()
def get(
    artefact: ArtefactReference,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write; its own name else.")] = None,
    as_json: AsJson = False,
) -> None:
    """Download an artefact into a file. Run again after an interruption, it goes on where it was."""
    caller = pool_caller()
    view = caller.ask("GET", at(_ROUTE, artefact))
    target = output or Path(view["name"])
    with _progress("Downloading", view["size_bytes"]) as progress:
        download(caller, view, target, progress)
    report(f"{target} is there, with SHA-256 {view['digest']}.", {**view, "file": str(target)}, as_json=as_json)


@app.command()
def delete(
    artefact: ArtefactReference,
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why; operators say it of somebody else's.")] = "",
    as_json: AsJson = False,
) -> None:
    """Delete an artefact that no unfinished work needs. Who gives a reason does it as an operator, where they can."""
    caller = pool_caller()
    deleted = caller.ask("DELETE", at(_ROUTE, artefact), query={"reason": reason})
    report(f"{deleted['name']} is deleted.", deleted, as_json=as_json)


def upload_file(file: Path, name: str, purpose: UploadPurpose) -> dict[str, Any]:
    """Upload a file and return its artefact."""
    if not file.is_file():
        raise CommandRefused(f"{file} is no file: give one that can be read.")
    caller = pool_caller()
    with _progress("Hashing", file.stat().st_size) as progress:
        digest, size_bytes = hash_file(file, progress)
    with _progress("Uploading", size_bytes) as progress:
        artefact_id = FileUpload(caller, FileToUpload(file, name, purpose.value, size_bytes, digest)).run(progress)
    artefact: dict[str, Any] = caller.ask("GET", f"{_ROUTE}/{artefact_id}")
    return artefact


def print_artefact(artefact: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(artefact)
        return
    fields = {
        "id": artefact["id"],
        "name": artefact["name"],
        "purpose": artefact["purpose"],
        "size": f"{in_words(artefact['size_bytes'])} ({artefact['size_bytes']} bytes)",
        "sha256": artefact["digest"],
        "made (UTC)": moment(artefact["made_at"]),
    }
    print_fields(fields | ({"attempt": artefact["attempt_id"]} if artefact["attempt_id"] else {}))


def _row(artefact: dict[str, Any]) -> tuple[str, ...]:
    size, made_at = in_words(artefact["size_bytes"]), moment(artefact["made_at"])
    return short_id(artefact["id"]), artefact["name"], artefact["purpose"], size, made_at


@contextmanager
def _progress(title: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True))
    with Progress(*columns, TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield lambda at: bar.update(task, completed=at)
