"""The agent's home: a directory that only its user can use, and a lock, so that one identity never runs twice."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from tidemill.core.faults import AgentFault
from tidemill.host import locks
from tidemill.host.locks import HeldLock, Holder, holder_pid

_ROOTS = Path("/var/lib/tidemill-agent")


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


async def take_lock(home: Home) -> HeldLock:
    """Have the home to ourselves, or refuse with the pid of the process that has it."""
    try:
        taken = await locks.take_lock(home.lock)
    except OSError as error:
        raise AgentFault(f"{home.lock} cannot be used ({error.strerror}): run the agent as its user.") from None
    if isinstance(taken, Holder):
        raise AgentFault(
            f"An agent already runs in {home.place} ({taken}): stop that one first, or choose another agent.home."
        )
    return taken


def running_pid(home: Home) -> int | None:
    """The pid of the process that has the home, if one has and we may see it."""
    return holder_pid(home.lock)
