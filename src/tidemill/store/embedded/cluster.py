"""The cluster on disk: made completely or not at all, and of a version that the programs can read.

`initdb`, the roles and the database are made in a directory beside the final one, without a server that anybody could
reach; a rename makes it the cluster. The next attempt removes what an interrupted one left.
"""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tidemill.core.faults import DatabaseFault, WrongVersion
from tidemill.host.private_files import sync_directory
from tidemill.store.embedded.binaries import Binaries
from tidemill.store.embedded.failures import failure
from tidemill.store.embedded.layout import ServerLayout
from tidemill.store.embedded.passwords import (
    DATABASE,
    OWNER,
    PROGRAM,
    SUPERUSER,
    RolePasswords,
    new_passwords,
    read_passwords,
    write_passwords,
)
from tidemill.store.embedded.processes import KILL, clear_leftovers, shut_down
from tidemill.store.embedded.system_user import SystemUser, give, run

# The builtin provider sorts the same on every machine, and needs no locale of the operating system.
INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--auth=reject",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
)
# A failed statement ends the run, and is not repeated in the output: it may hold a password.
SINGLE_USER_OPTIONS = ("-c", "exit_on_error=on", "-c", "log_min_error_statement=panic", "-c", "log_checkpoints=off")
REMOVAL_TRIES = 20


async def ensure_cluster(
    layout: ServerLayout, account: SystemUser, binaries: Binaries, report: Callable[[str], None]
) -> RolePasswords:
    """The passwords of the cluster; the cluster is made if there is none. Only for the owner of the home."""
    passwords = read_passwords(layout)
    if not _is_made(layout.data):
        report(f"Making a new database in {layout.top}.")
        if passwords is None:
            passwords = new_passwords()
            write_passwords(layout, passwords)
        await _make(layout, account, binaries, passwords)
    _check_version(layout, binaries)
    if passwords is None:
        report(f"The passwords in {layout.passwords} are gone: setting new ones.")
        passwords = await _replace_passwords(layout, account, binaries)
    return passwords


def database_statements(name: str) -> list[str]:
    """Statements for the superuser: make a database that the owner owns and the program can only connect to."""
    return [
        f"CREATE DATABASE {name} OWNER {OWNER}",
        f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {name} TO {PROGRAM}",
    ]


def _is_made(data: Path) -> bool:
    if (data / "PG_VERSION").exists():
        return True
    if data.exists() and any(data.iterdir()):
        raise DatabaseFault(
            f"{data} holds files but no PostgreSQL database: move it away, or put back what is missing."
        )
    return False


def _check_version(layout: ServerLayout, binaries: Binaries) -> None:
    written_by = (layout.data / "PG_VERSION").read_text(encoding="utf-8", errors="replace").strip()
    if written_by != binaries.major:
        raise WrongVersion(
            f"The database in {layout.data} was written by PostgreSQL {written_by}, and this Tidemill brings "
            f"PostgreSQL {binaries.version}. To upgrade, install the Tidemill that wrote it and run "
            f"`tidemill db backup`; then install this one again, move {layout.data} away and run "
            "`tidemill db restore FILE`."
        )


async def _make(layout: ServerLayout, account: SystemUser, binaries: Binaries, passwords: RolePasswords) -> None:
    await _remove_unfinished(layout)
    layout.new_data.mkdir(mode=0o700)
    give(account, [layout.new_data])
    # Working in the directory itself lets the next attempt find these processes, should we be killed.
    command: list[str | Path] = [binaries.initdb, *INITDB_OPTIONS, "-D", layout.new_data]
    outcome = await run(account, command, directory=layout.new_data)
    if outcome.code != 0:
        raise failure(layout, "PostgreSQL could not make a new database", outcome.output)
    statements = [*_password_statements("CREATE ROLE", passwords), *database_statements(DATABASE)]
    await _execute(layout, account, binaries, layout.new_data, statements)
    layout.new_data.rename(layout.data)
    sync_directory(layout.top)


async def _remove_unfinished(layout: ServerLayout) -> None:
    """A killed attempt's `initdb` may still be writing, so removing its directory can take more than one try."""
    await clear_leftovers(layout.new_data, layout.cluster_name, KILL)
    for _ in range(REMOVAL_TRIES):
        await asyncio.to_thread(shutil.rmtree, layout.new_data, ignore_errors=True)
        if not layout.new_data.exists():
            return
        await asyncio.sleep(0.1)
    raise DatabaseFault(f"What an earlier attempt left in {layout.new_data} cannot be removed: remove it yourself.")


async def _replace_passwords(layout: ServerLayout, account: SystemUser, binaries: Binaries) -> RolePasswords:
    """Set new passwords. The file is written last: if we are killed before, it is still missing and we start again."""
    await shut_down(layout)
    passwords = new_passwords()
    (layout.data / "postmaster.pid").unlink(missing_ok=True)
    await _execute(layout, account, binaries, layout.data, _password_statements("ALTER ROLE", passwords))
    write_passwords(layout, passwords)
    return passwords


def _password_statements(verb: str, passwords: RolePasswords) -> list[str]:
    return [
        f"ALTER ROLE {SUPERUSER} PASSWORD '{passwords.superuser}'",
        f"{verb} {OWNER} LOGIN PASSWORD '{passwords.owner}'",
        f"{verb} {PROGRAM} LOGIN PASSWORD '{passwords.program}'",
    ]


async def _execute(
    layout: ServerLayout, account: SystemUser, binaries: Binaries, data: Path, statements: Sequence[str]
) -> None:
    """Run statements in single-user mode, one a line. Passwords go through the pipe, not through the arguments."""
    command: list[str | Path] = [binaries.postgres, "--single", *SINGLE_USER_OPTIONS, "-D", data, "postgres"]
    outcome = await run(account, command, directory=data, script="".join(f"{line};\n" for line in statements))
    if outcome.code != 0:
        raise failure(layout, "PostgreSQL could not set up its roles", outcome.output)
