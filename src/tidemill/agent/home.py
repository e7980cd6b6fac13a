"""The agent's home: a directory that only its user can use, and a lock, so that one identity never runs twice.

The kernel lets go of the lock however its holder dies, so it is never stale. The pid in it is for display.
"""

import asyncio
import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tidemill.core.faults import AgentFault

_ROOTS = Path("/var/lib/tidemill-agent")
_TRIES = 10  # whoever looks whether the lock is held has a share of it for a moment
_POLL_S = 0.05


@dataclass(frozen=True)
class Home:
    """The names of what is in it."""

    place: Path

    @property
    def membership(self) -> Path:
        """The identity, the pool, and the node's id in it."""
        return self.place / "membership.json"

    @property
    def rules(self) -> Path:
        """What the owner has set on this machine."""
        return self.place / "rules.json"

    @property
    def spool(self) -> Path:
        return self.place / "spool.sqlite"

    @property
    def status(self) -> Path:
        """How the agent stands, for its owner's commands."""
        return self.place / "status.json"

    @property
    def speed(self) -> Path:
        """What was measured of the line to the pool."""
        return self.place / "speed.json"

    @property
    def authority(self) -> Path:
        """Certificates of the authority that signed the pool's, if it is none that everybody trusts."""
        return self.place / "authority.pem"

    @property
    def leave(self) -> Path:
        """The owner's wish to leave the pool, until it was carried out."""
        return self.place / "leave.json"

    @property
    def attempts(self) -> Path:
        """What was accepted, until the pool has its receipt."""
        return self.place / "attempts"

    @property
    def runs(self) -> Path:
        """Where tasks run in bubblewrap."""
        return self._passable("runs")

    @property
    def images(self) -> Path:
        """Where tasks run in an engine."""
        return self._passable("images")

    @property
    def cache(self) -> Path:
        """Inputs and models, kept while there is room."""
        return self.place / "cache"

    @property
    def uploads(self) -> Path:
        """Where the results are that are on their way to the pool."""
        return self.place / "uploads"

    @property
    def lock(self) -> Path:
        return self.place / "agent.lock"

    def _passable(self, name: str) -> Path:
        """Root's agent gives each task a user of its own, who could not pass through a closed home."""
        return self.place.with_name(f"{self.place.name}-{name}") if os.geteuid() == 0 else self.place / name


class HomeLock:
    """A held lock. `release` gives it up."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let another process have the home. The pid goes first, so that it is never shown for the next one."""
        with suppress(OSError):
            _show(self._descriptor, "")
        os.close(self._descriptor)


def home_of(chosen: Path | None) -> Home:
    """The home that the setting names, or the usual one: root's is where services keep their state."""
    usual = _ROOTS if os.geteuid() == 0 else platformdirs.user_data_path("tidemill-agent", appauthor=False)
    return Home(chosen or usual)


def prepare(home: Home) -> None:
    """Make the home, or see that the one there is ours and closed to others."""
    try:
        home.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.place.stat()
    except OSError as error:
        raise AgentFault(f"{home.place} cannot be made ({error.strerror}): choose another agent.home.") from None
    if found.st_uid != os.geteuid():
        raise AgentFault(
            f"{home.place} belongs to another user: run the agent as that user, or choose another agent.home."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise AgentFault(f"Others than its owner may use {home.place}: run `chmod 700 {home.place}`.")


async def take_lock(home: Home) -> HomeLock:
    """Have the home to ourselves, or refuse with the pid of the process that has it."""
    try:
        descriptor = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise AgentFault(f"{home.lock} cannot be used ({error.strerror}): run the agent as its user.") from None
    for _ in range(_TRIES):
        if _lock(descriptor, fcntl.LOCK_EX):
            with suppress(OSError):  # a full disk must not keep an agent from running
                _show(descriptor, str(os.getpid()))
            return HomeLock(descriptor)
        await asyncio.sleep(_POLL_S)
    pid = _pid_in(descriptor)
    os.close(descriptor)
    raise AgentFault(_in_use(home, pid))


def running_pid(home: Home) -> int | None:
    """The pid of the process that has the home, if one has and we may see it."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        return None if _lock(descriptor, fcntl.LOCK_SH) else _pid_in(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _show(descriptor: int, text: str) -> None:
    os.pwrite(descriptor, f"{text:<19}\n".encode(), 0)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _in_use(home: Home, pid: int | None) -> str:
    who = f"process {pid}" if pid else "another process"
    return f"An agent already runs in {home.place} ({who}): stop that one first, or choose another agent.home."
