"""Where a command finds the agent of this machine, or one of a demonstration's.

Where TIDEMILL_HOME names a home, the agent's is in it, so that nothing is written elsewhere. Root acts as the user who
owns the home, so that no file in it becomes root's by accident.
"""

import os
import pwd
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from tidemill.agent.home.home import Home, home_of
from tidemill.cli.client.local_pool import load_configuration
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.operations.demonstration import NODES_FOLDER, OPERATOR, OWNERS
from tidemill.core.settings import Settings, SourceKind

_node: ContextVar[str | None] = ContextVar("node_option", default=None)
_HOUSE = "house"


def choose_node(name: str | None) -> None:
    """Take the node of a demonstration that the command line names with `--node`."""
    _node.set(name)


def agent_settings(ca: Path | None = None) -> Settings:
    """The settings, with the agent's home."""
    configuration = load_configuration({"agent.ca_file": ca and ca.absolute()})
    settings = configuration.settings
    if (name := _node.get()) is not None:
        home: Path | None = _home_of_node(settings.home, name)
    elif settings.agent.home is None and configuration.sources["home"].kind is not SourceKind.DEFAULT:
        home = settings.home / "agent"
    else:
        home = settings.agent.home
    return replace(settings, agent=replace(settings.agent, home=home))


def member_home(settings: Settings) -> Home:
    """As `own_home`, for what makes no sense before this machine has joined, if a demonstration's node may be meant."""
    home = own_home(settings)
    if not home.membership.exists() and (names := _node_names(settings.home)):
        raise CommandRefused(
            f"This machine has joined no pool; the demonstration has the nodes {', '.join(names)}: name one, as "
            f"in `tidemill agent --node {names[0]} …`."
        )
    return home


def own_home(settings: Settings) -> Home:
    """The agent's home, as the user it belongs to."""
    home = home_of(settings.agent.home)
    with suppress(FileNotFoundError):
        owner = home.path.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.initgroups(_name_of(owner.st_uid), owner.st_gid)
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)
    return home


def _home_of_node(home: Path, name: str) -> Path:
    names = _node_names(home)
    if name not in names:
        known = f"it has {', '.join(names)}" if names else "it holds no demonstration"
        raise CommandRefused(f"{home} has no node {name!r}: {known}.")
    return home / NODES_FOLDER / (OPERATOR if name == _HOUSE else name)


def _node_names(home: Path) -> list[str]:
    """The nodes of the demonstration in this home, by their owners."""
    owners = (owner for owner in (*OWNERS, OPERATOR) if (home / NODES_FOLDER / owner).is_dir())
    return [_HOUSE if owner == OPERATOR else owner for owner in owners]


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        raise CommandRefused(
            f"The agent's home belongs to user {user}, whom this system does not know: chown it."
        ) from None
