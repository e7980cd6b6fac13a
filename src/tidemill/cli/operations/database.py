"""`tidemill db`: the pool's database: a shell, backups, restores, and a check of everything that must hold."""

import asyncio
import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from tidemill import __version__
from tidemill.artefacts.backup_contents import FOLDER, TakenContents, list_of
from tidemill.cli.client.local_pool import (
    connected,
    database_urls,
    home_settings,
    load_configuration,
    outside_urls,
    running_urls,
    server_of,
)
from tidemill.cli.terminal.checks import print_checks
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, counted, in_words, report
from tidemill.control.operations.master_key import missing_keys
from tidemill.control.operations.pool_backup import PoolBackup, back_up, bring_back, check_artefacts, elsewhere
from tidemill.core.faults import AlreadyRunning
from tidemill.core.ids import Ids
from tidemill.core.operations.backups import backup_name
from tidemill.core.settings import Settings
from tidemill.store.address import tool_arguments
from tidemill.store.checks import DatabaseCheck, checks
from tidemill.store.clock import read_clock
from tidemill.store.embedded import owner_pid, tool
from tidemill.store.embedded.system_user import clean_environment
from tidemill.store.migrate import renew
from tidemill.store.operations import backup as backups

app = CommandGroup("This machine's database: shell, backup, restore, check.")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def shell(
    context: typer.Context,
    owner: Annotated[bool, typer.Option("--owner", help="As the role that owns the schema.")] = False,
) -> None:
    """Open psql on the database of a running pool. What follows `--` goes to psql."""
    urls = running_urls(load_configuration().settings)
    url, password = tool_arguments(urls.owner if owner else urls.program)
    terminal = {name: os.environ[name] for name in ("TERM", "HOME", "PAGER", "EDITOR") if name in os.environ}
    program = str(tool("psql"))
    os.execve(program, [program, "--dbname", url, *context.args], {**clean_environment(), **terminal, **password})


@app.command()
def backup(
    file: Annotated[Path | None, typer.Argument(help="Where to; the pool's own folder if left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a backup of the database and the artefacts now."""
    if file and (file.exists() or not file.name):
        raise CommandRefused(f"{file} is there already: name a file that is not.")
    if file and not file.parent.is_dir():
        raise CommandRefused(f"There is no directory {file.parent}.")
    backup_path, made = asyncio.run(_backup(file))
    kept = made.artefacts
    fields = {
        "file": str(backup_path),
        "size_bytes": made.size_bytes,
        "artefacts": kept.contents,
        "artefact_bytes": kept.size_bytes,
        "copied_bytes": kept.copied_bytes,
        "missing": kept.missing,
    }
    sentence = f"Backed up to {backup_path} ({in_words(made.size_bytes)}). {_artefacts_in(made, backup_path)}"
    report(sentence, fields, as_json=as_json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A backup made by `tidemill db backup`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the pool's database by a backup. The pool must be stopped; the old database is kept beside it."""
    settings = home_settings()
    if outside_urls(settings):
        raise CommandRefused(
            "This pool uses an outside database server: restore with that server's own tools, "
            "then run `tidemill db mark-restored`."
        )
    if not file.is_file():
        raise CommandRefused(f"There is no file {file}.")
    if pid := owner_pid(settings.home):
        raise AlreadyRunning(f"The pool is running (process {pid}): stop it first with `tidemill down`.")
    if not yes:
        typer.confirm(f"Replace the database in {settings.home} by {file.name}?", abort=True, err=True)
    back = bring_back(file, settings)
    without_key = asyncio.run(_restore(file))
    sentence = "What was there before is kept as `tidemill_previous` until the next restore."
    fields = {
        "restored": str(file),
        "kept": "tidemill_previous",
        "artefacts": None if back is None else back.contents,
        "missing": None if back is None else back.missing,
        "master_key": without_key or "ok",
    }
    key = f"`tidemill up` will refuse: {without_key}" if without_key else "Its master key is here."
    brought = _brought_back(back, file, settings)
    report(f"Restored from {file.name}. {brought} {sentence} {key}", fields, as_json=as_json)


@app.command("mark-restored")
def mark_restored(
    source: Annotated[str, typer.Argument(help="What it was restored from.")] = "an outside backup",
    as_json: AsJson = False,
) -> None:
    """Take over a database that an outside server's own tools have put back to an earlier state."""
    asyncio.run(renew(running_urls(load_configuration().settings), source, Ids(secrets.randbits), __version__))
    report("A new generation of events has begun.", {"source": source}, as_json=as_json)


@app.command()
def check(
    digests: Annotated[
        bool, typer.Option("--digests", help="Read every artefact, and compare it with its digest.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check everything that must hold in the database, and that the artefacts which it names are there."""
    print_checks(asyncio.run(_check(digests)), advice="the details say what to do.", as_json=as_json)


def _artefacts_in(made: PoolBackup, file: Path) -> str:
    """What a backup has of the artefacts."""
    kept = made.artefacts
    if made.elsewhere:
        return f"{made.elsewhere} Their list is in {list_of(file).name}."
    copied = f"{in_words(kept.copied_bytes)} of them copied" if kept.copied_bytes else "as links, which take no space"
    held = (
        f"With {counted(kept.contents, 'artefact')} ({in_words(kept.size_bytes)}, {copied}) in {file.parent / FOLDER}."
    )
    held = held if kept.contents else "There are no artefacts."
    gone = f" {counted(kept.missing, 'artefact')} missing in storage: see `tidemill db check`." if kept.missing else ""
    return held + gone


def _brought_back(back: TakenContents | None, file: Path, settings: Settings) -> str:
    """What a restore brought back of the artefacts."""
    if back is None and settings.artefacts.s3_endpoint is not None:
        return elsewhere(settings)
    if back is None:
        return f"No artefacts: there is no {list_of(file).name} beside it. See `tidemill db check`."
    gone = f" {back.missing} are missing in the backup: see `tidemill db check`." if back.missing else ""
    return f"{back.contents} artefacts are in storage again.{gone}"


async def _backup(file: Path | None) -> tuple[Path, PoolBackup]:
    settings = load_configuration().settings
    async with database_urls(settings) as urls:
        async with connected(urls.owner) as connection:
            now = await read_clock(connection)
        target = file or backups.folder_of(settings.home) / backup_name(now)
        return target, await back_up(urls.owner, target, settings)


async def _restore(file: Path) -> str | None:
    """Restore a dump. Returns why its secrets cannot be opened with the master key that is here, if they cannot."""
    settings = load_configuration().settings
    server = server_of(settings)
    await server.start()
    try:
        await backups.restore(server.superuser_url, server.urls, file, Ids(secrets.randbits), __version__)
        async with connected(server.urls.owner) as connection:
            return await missing_keys(connection, settings)
    finally:
        await server.stop()


async def _check(digests: bool) -> list[DatabaseCheck]:
    settings = load_configuration().settings
    async with database_urls(settings) as urls:
        found = await checks(urls)
        if not found[0].ok:
            return found  # what the schema names cannot be read
        return [*found, await check_artefacts(urls.owner, settings, digests=digests)]
