"""Where the files of the server are under one home, and in which directory its socket is.

All paths are absolute and free of symbolic links, so that a process's working directory can be compared with them. The
tree belongs to the server's account and to nobody else; files that only we may read stay ours.
"""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.faults import DatabaseFault
from tidemill.host.private_files import sync_directory
from tidemill.store.embedded.system_user import SystemUser, give

PORT = 5432  # only part of the socket's name: there is no TCP
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_MAX = 100  # bytes; the kernel's limit is 104 on macOS and 108 on Linux
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")
OURS = ("run", "log", "data", "start.log", "programs-", "lost+found")
NOT_OURS = "We may not use {directory}: run Tidemill as the user it belongs to, or choose another TIDEMILL_HOME."


@dataclass(frozen=True)
class ServerLayout:
    """The names of things under `home/postgres`."""

    home: Path
    top: Path

    @classmethod
    def of(cls, home: Path) -> "ServerLayout":
        """The layout of a home, which need not exist yet. `home/postgres` may be a link to a larger disk."""
        home = home.resolve()
        return cls(home, (home / "postgres").resolve())

    @property
    def data(self) -> Path:
        return self.top / "data"

    @property
    def new_data(self) -> Path:
        return self.top / "data.new"

    @property
    def run(self) -> Path:
        return self.top / "run"

    @property
    def log(self) -> Path:
        return self.top / "log"

    @property
    def lock(self) -> Path:
        """Outside what the server's account can change, because we act on its pid."""
        return self.home / "postgres.lock"

    @property
    def passwords(self) -> Path:
        return self.home / "postgres.secrets.json"

    @property
    def start_log(self) -> Path:
        return self.top / "start.log"

    @property
    def cluster_name(self) -> str:
        """Distinguishes this home's processes from another's in a process listing."""
        return f"tidemill-{hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]}"


def prepare(layout: ServerLayout, account: SystemUser) -> None:
    """Make the directories. An existing home keeps its mode: whether it can be reached is checked later."""
    try:
        make_home(layout.home)
        for directory in (layout.top, layout.run, layout.log):
            directory.mkdir(mode=0o700, exist_ok=True)
        owner = os.stat(layout.top).st_uid
        foreign = owner not in (account.uid, os.geteuid())
        if foreign or (owner != account.uid and not all(name.startswith(OURS) for name in os.listdir(layout.top))):
            raise DatabaseFault(NOT_OURS.format(directory=layout.top))
        give(account, (layout.top, layout.run, layout.log))
        layout.top.chmod(0o700)
    except PermissionError as error:
        raise DatabaseFault(NOT_OURS.format(directory=error.filename)) from None
    except (FileExistsError, NotADirectoryError) as error:
        raise DatabaseFault(f"{error.filename} is not a directory: move it away, it is in Tidemill's way.") from None


def socket_directory(layout: ServerLayout, account: SystemUser) -> Path:
    """The directory of the socket: beside the data if the path is short and plain, else a short private directory."""
    if _fits(layout.run):
        return layout.run
    for parent in _short_parents(account):
        directory = parent / layout.cluster_name
        if _fits(directory):
            _claim(directory, account)
            return directory
    raise DatabaseFault(f"No short directory for the database's socket was found: set TMPDIR, or move {layout.home}.")


def drop_socket_directory(layout: ServerLayout, directory: Path) -> None:
    """Remove our directory from a public one. If it is not empty, it is not ours to remove."""
    if directory.name == layout.cluster_name:
        with suppress(OSError):
            directory.rmdir()


def write_file(path: Path, text: str, account: SystemUser | None = None) -> None:
    """Replace a file at once, durably, readable by the account alone (or by us alone)."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if account:
        give(account, [fresh])
    fresh.replace(path)
    sync_directory(path.parent)


def make_home(home: Path) -> None:
    """Make the home. The server's account can pass through directories we make, whatever the umask, but cannot list
    them.

    Root works only in a home that nobody else can change: others could redirect it to any file with a link.
    """
    try:
        _make(home)
    except OSError as error:
        raise DatabaseFault(f"{home} cannot be made ({error.strerror}): choose another TIDEMILL_HOME.") from None
    status = home.stat()
    if os.geteuid() == 0 and (status.st_uid != 0 or status.st_mode & 0o022):
        raise DatabaseFault(
            f"Others than root may change {home}: run Tidemill as the user it belongs to, or choose another "
            "TIDEMILL_HOME."
        )


def _make(directory: Path) -> None:
    if directory.is_dir():
        return
    if not directory.parent.is_dir():
        _make(directory.parent)
    directory.mkdir(exist_ok=True)
    directory.chmod(0o711)


def _fits(directory: Path) -> bool:
    path = str(directory / SOCKET_NAME)
    return bool(PLAIN_PATH.fullmatch(path)) and len(path) <= SOCKET_PATH_MAX


def _short_parents(account: SystemUser) -> Iterator[Path]:
    """Root's server cannot enter root's own runtime directory, so root uses /run itself."""
    runtime = "/run" if account.lent else os.environ.get("XDG_RUNTIME_DIR", "")
    for name in (runtime, tempfile.gettempdir(), "/tmp"):  # noqa: S108 - the directory made in it is private
        directory = Path(name)
        if directory.is_absolute() and directory.is_dir() and os.access(directory, os.W_OK):
            yield directory.resolve()


def _claim(directory: Path, account: SystemUser) -> None:
    """Make the directory, or check that the existing one is private and the server's own: the parent may be public."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
        give(account, [directory])
    status = directory.lstat()
    private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700 and status.st_uid == account.uid
    if not private:
        raise DatabaseFault(
            f"{directory} should be a directory with mode 0700 of user {account.name}, for the database's socket, "
            "but it is not: remove it if nobody needs it."
        )
