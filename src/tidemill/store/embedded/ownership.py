"""Which process owns the server of a home: the one that holds the lock file, as long as it lives."""

from pathlib import Path

from tidemill.core.faults import AlreadyRunning
from tidemill.host.locks import HeldLock, Holder, holder_pid, take_lock
from tidemill.store.embedded.layout import ServerLayout


async def take_ownership(layout: ServerLayout) -> HeldLock:
    """Own the home, or refuse with the pid of the process that does."""
    taken = await take_lock(layout.lock)
    if isinstance(taken, Holder):
        raise AlreadyRunning(
            f"The pool in {layout.home} is already running ({taken}): use it, or stop it with `tidemill down`."
        )
    return taken


def owner_pid(home: Path) -> int | None:
    """The pid of the live process that owns the home's server, if there is one and we may see it."""
    return holder_pid(ServerLayout.of(home).lock)
