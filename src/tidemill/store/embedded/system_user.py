"""Which system user the server runs as, and how its processes are started.

PostgreSQL refuses to run as root, so root starts its processes as a separate system user; anyone else starts them as
themselves. Every process starts in its own session, inherits no file of ours, and gets only an environment we chose: no
locale, no PG* variable and none of the pool's secrets.
"""

import asyncio
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tidemill.core.faults import DatabaseFault

KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
USERADD = ("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin")
CREATING = Path("/run/tidemill-creates-a-user.lock")
FIRST_CLOSED = 'for place; do [ -x "$place" ] || { printf "%s" "$place"; exit 1; }; done'


@dataclass(frozen=True)
class SystemUser:
    """The user that the server runs as. `lent` is set when we are root and run it as another user."""

    name: str
    uid: int
    gid: int
    lent: bool


@dataclass(frozen=True)
class ProcessResult:
    """The exit code and the output of a finished process."""

    code: int
    output: str


def find_system_user(server_user: str, report: Callable[[str], None]) -> SystemUser:
    """Ourselves, or for root the system user `server_user`, created if it is missing."""
    if os.geteuid() != 0:
        return SystemUser(str(os.geteuid()), os.geteuid(), os.getegid(), lent=False)
    entry = _system_user(server_user, report)
    if entry.pw_uid == 0:
        raise DatabaseFault(
            f"PostgreSQL refuses to run as root, and {server_user} is root: "
            "name another user in TIDEMILL_DATABASE_SERVER_USER."
        )
    return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid, lent=True)


def clean_environment() -> dict[str, str]:
    """The environment for PostgreSQL's programs: a broken locale or a stray PGPORT must not reach them."""
    return {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ} | {"LC_ALL": "C"}


def launch(
    account: SystemUser, arguments: Sequence[str | Path], *, directory: Path, stdin: int, stdout: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a process of the account. `directory` must be one the account can reach."""
    return subprocess.Popen(
        arguments,
        cwd=directory,
        env=clean_environment(),
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a Ctrl-C at the terminal is ours; we shut the server down in order
        user=account.uid if account.lent else None,
        group=account.gid if account.lent else None,
        extra_groups=[] if account.lent else None,
    )


async def run(
    account: SystemUser, arguments: Sequence[str | Path], *, directory: Path = Path("/"), script: str = ""
) -> ProcessResult:
    """Run a process to its end and return its output. When the caller is cancelled, the process is killed."""
    process = launch(account, arguments, directory=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        output, _ = await asyncio.to_thread(process.communicate, script.encode())
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return ProcessResult(process.returncode, output.decode(errors="replace"))


async def check_reach(account: SystemUser, path: Path) -> None:
    """Refuse a path below a directory that a lent account may not pass, and name that directory."""
    if not account.lent:
        return
    way = [*reversed(path.parents), path]
    outcome = await run(account, ["/bin/sh", "-c", FIRST_CLOSED, "sh", *way])
    if outcome.code != 0:
        raise DatabaseFault(
            f"PostgreSQL cannot run as root, so it runs as the system user {account.name}, who may not pass "
            f"{outcome.output or path}: choose a TIDEMILL_HOME that others can reach, such as /var/lib/tidemill."
        )


def give(account: SystemUser, paths: Iterable[Path]) -> None:
    """Make the account the owner of what we, as root, have made for it."""
    if account.lent:
        for path in paths:
            os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _system_user(name: str, report: Callable[[str], None]) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        report(f"PostgreSQL refuses to run as root: creating the system user {name} for it.")
        _create_system_user(name)
        return pwd.getpwnam(name)


def _create_system_user(name: str) -> None:
    program = shutil.which(USERADD[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    error = _add_user(program, name) if program else "there is no useradd here"
    if not _exists(name):
        raise DatabaseFault(
            f"PostgreSQL refuses to run as root, and the system user {name} could not be created ({error}): "
            "create it, name another in TIDEMILL_DATABASE_SERVER_USER, or run Tidemill as an ordinary user."
        )


def _add_user(program: str, name: str) -> str:
    """Make the user unless it exists by now, and return the error, if any."""
    try:
        with _alone():
            if _exists(name):
                return ""
            command = [program, *USERADD[1:], "--", name]
            return subprocess.run(
                command, capture_output=True, text=True, check=False, env=clean_environment()
            ).stderr.strip()
    except OSError as error:
        return str(error)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time. If two `useradd` run at once, the second replaces the user of the first by one with
    another number, and files given to the first belong to nobody."""
    with CREATING.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
