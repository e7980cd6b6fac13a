"""How a process that does not own the server finds it.

Everything is read from the home, nothing from the environment: the caller's environment may differ from the owner's.
"""

from pathlib import Path

from tidemill.core.faults import DatabaseFault, NotRunning
from tidemill.store.address import DatabaseUrls
from tidemill.store.embedded.layout import ServerLayout
from tidemill.store.embedded.passwords import database_urls, read_passwords
from tidemill.store.embedded.processes import READY, running_postmaster


def has_cluster(home: Path) -> bool:
    """Whether a home holds the data of a server, running or not."""
    return ServerLayout.of(home).data.is_dir()


def attach(home: Path) -> DatabaseUrls:
    """The URLs of the running server, without connecting to it."""
    layout = ServerLayout.of(home)
    try:
        running = running_postmaster(layout)
    except PermissionError:
        raise DatabaseFault(
            f"The pool in {layout.home} belongs to another user: run this command as the user who started it."
        ) from None
    if running is None and not has_cluster(home):
        raise NotRunning(
            f"There is no pool in {home}: start one with `tidemill up`, or name its home in TIDEMILL_HOME."
        )
    if running is None:
        raise NotRunning("The pool is not running: start it with `tidemill up`.")
    passwords = read_passwords(layout)
    if running.status != READY or running.socket_directory is None or passwords is None:
        raise NotRunning("The pool is still starting, or already stopping: try again in a moment.")
    return database_urls(passwords, running.socket_directory)
