"""The agent's home: a directory that only its user can use, with a lock, so that one identity never runs twice."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tidemill.agent.home.place import place_of
from tidemill.core.faults import AgentFault
from tidemill.host import locks
from tidemill.host.locks import HeldLock, Holder, holder_pid

_ROOTS = Path("/var/lib/tidemill-agent")


@dataclass(frozen=True)
class Home:
    """The paths of everything in the home."""

    path: Path

    @property
    def membership(self) -> Path:
        """The identity, the pool, and the node's id in it."""
        return self.path / "membership.json"

    @property
    def rules(self) -> Path:
        """What the owner has set on this machine."""
        return self.path / "rules.json"

    @property
    def spool(self) -> Path:
        return self.path / "spool.sqlite"

    @property
    def status(self) -> Path:
        """How the agent stands, for its owner's commands."""
        return self.path / "status.json"

    @property
    def speed(self) -> Path:
        """The measured speed of the line to the pool."""
        return self.path / "speed.json"

    @property
    def authority(self) -> Path:
        """Certificates of the authority that signed the pool's, if it is not a public one."""
        return self.path / "authority.pem"

    @property
    def leave(self) -> Path:
        """The owner's wish to leave the pool, until it is carried out."""
        return self.path / "leave.json"

    @property
    def attempts(self) -> Path:
        """Accepted attempts, until the pool has their receipts."""
        return self.path / "attempts"

    @property
    def place(self) -> Path:
        """Where everything is that tasks can see the path of."""
        return place_of(self.path)

    @property
    def runs(self) -> Path:
        """Where tasks run in bubblewrap."""
        return self.place / "runs"

    @property
    def images(self) -> Path:
        """Where tasks run in an engine."""
        return self.place / "images"

    @property
    def cache(self) -> Path:
        """Inputs and models, kept while there is room."""
        return self.place / "cache"

    @property
    def uploads(self) -> Path:
        """Notes on results that are being uploaded to the pool."""
        return self.path / "uploads"

    @property
    def lock(self) -> Path:
        return self.path / "agent.lock"


def home_of(chosen: Path | None) -> Home:
    """The home that the setting names, or the usual one: root's is where services keep their state."""
    usual = _ROOTS if os.geteuid() == 0 else platformdirs.user_data_path("tidemill-agent", appauthor=False)
    return Home(chosen or usual)


def prepare(home: Home) -> None:
    """Make the home, or check that the existing one is ours and closed to others."""
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = home.path.stat()
    except OSError as error:
        raise AgentFault(f"{home.path} cannot be made ({error.strerror}): choose another agent.home.") from None
    if status.st_uid != os.geteuid():
        raise AgentFault(
            f"{home.path} belongs to another user: run the agent as that user, or choose another agent.home."
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise AgentFault(f"Others than its owner may use {home.path}: run `chmod 700 {home.path}`.")


async def take_lock(home: Home) -> HeldLock:
    """Take the home's lock. A fault names the process that has it."""
    try:
        lock = await locks.take_lock(home.lock)
    except OSError as error:
        raise AgentFault(f"{home.lock} cannot be used ({error.strerror}): run the agent as its user.") from None
    if isinstance(lock, Holder):
        raise AgentFault(
            f"An agent already runs in {home.path} ({lock}): stop that one first, or choose another agent.home."
        )
    return lock


def running_pid(home: Home) -> int | None:
    """The pid of the process that has the home, if one has and we may see it."""
    return holder_pid(home.lock)
