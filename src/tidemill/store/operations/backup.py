"""Backups: a dump is read back before it gets its name, and a restore replaces the database only when complete.

A restore fills a new database beside the old one and swaps their names at the end, so a broken file does no harm. The
old database is kept, under another name, until the next restore. A restored pool begins a new generation of events,
because another server numbered the transactions in a dump.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tidemill.core.faults import DatabaseFault, DiskFull
from tidemill.core.ids import Ids
from tidemill.host.private_files import sync_directory
from tidemill.store.address import DatabaseUrls, replace_database, tool_arguments
from tidemill.store.database import connect, faults
from tidemill.store.embedded import database_statements, tool
from tidemill.store.embedded.system_user import clean_environment
from tidemill.store.migrate import renew

DRAFT = ".partial"
_INCOMING = "tidemill_incoming"
_PREVIOUS = "tidemill_previous"


def folder_of(home: Path) -> Path:
    """Where the pool keeps its own backups."""
    folder = home / "backups"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


async def _nothing() -> None:
    """Nothing belongs to the dump but itself."""


async def make_backup(owner_url: str, file: Path, before_it_is_named: Callable[[], Awaitable[None]] = _nothing) -> int:
    """Dump the database to a file that appears only when it is complete, with what belongs to it. Returns its size in
    bytes."""
    url, environment = tool_arguments(owner_url)
    with _draft_of(file) as draft:
        await run_tool("pg_dump", "--format=custom", f"--file={draft}", f"--dbname={url}", environment=environment)
        await run_tool("pg_restore", "--list", str(draft))
        await before_it_is_named()
        return _finish(draft, file)


async def restore(superuser_url: str, urls: DatabaseUrls, file: Path, ids: Ids, version: str) -> None:
    """Replace the pool's database by a backup. Nobody else may be connected."""
    incoming = DatabaseUrls(replace_database(urls.program, _INCOMING), replace_database(urls.owner, _INCOMING))
    superuser = await connect(superuser_url)
    try:
        with faults():
            await superuser.execute(f"DROP DATABASE IF EXISTS {_INCOMING}")
            for statement in database_statements(_INCOMING):
                await superuser.execute(statement)
        await _fill(incoming.owner, file)
        await renew(incoming, file.name, ids, version)
        with faults():
            await superuser.execute(f"DROP DATABASE IF EXISTS {_PREVIOUS}")
            async with superuser.transaction():
                await superuser.execute(f"ALTER DATABASE tidemill RENAME TO {_PREVIOUS}")
                await superuser.execute(f"ALTER DATABASE {_INCOMING} RENAME TO tidemill")
    finally:
        await superuser.close()


async def run_tool(name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run one of PostgreSQL's tools to its end. Returns its output; a fault quotes its errors."""
    process = await asyncio.create_subprocess_exec(
        str(tool(name)),
        *arguments,
        env={**clean_environment(), **(environment or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C at the terminal is ours to hand on
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    if process.returncode == 0:
        return output.decode()
    cause = " ".join(errors.decode(errors="replace").split())
    if "No space left on device" in cause:
        raise DiskFull(f"{name} ran out of disk space: free some, and try again. It said: {cause}")
    raise DatabaseFault(f"{name} failed: {cause}")


async def _fill(owner_url: str, file: Path) -> None:
    url, environment = tool_arguments(owner_url)
    await run_tool(
        "pg_restore",
        "--exit-on-error",
        "--no-owner",
        "--no-privileges",
        "--single-transaction",
        f"--dbname={url}",
        str(file),
        environment=environment,
    )


@contextmanager
def _draft_of(file: Path) -> Iterator[Path]:
    """A file beside the wanted one that only we can read, with an unpredictable name; removed unless it was renamed."""
    descriptor, name = tempfile.mkstemp(prefix=".", suffix=DRAFT, dir=file.parent)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _finish(draft: Path, file: Path) -> int:
    """Sync the draft to disk, then give it its name. Returns its size."""
    descriptor = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        size_bytes = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    draft.rename(file)
    sync_directory(file.parent)
    return size_bytes
