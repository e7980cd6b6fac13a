"""Where a command finds the agent of this machine.

Root acts as the user who owns the home, so that no file in it becomes root's by accident.
"""

import os
import pwd
from contextlib import suppress
from pathlib import Path

from tidemill.agent.home.home import Home, home_of
from tidemill.cli.client.local_pool import load_configuration
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.settings import Settings


def agent_settings(ca: Path | None = None) -> Settings:
    return load_configuration({"agent.ca_file": ca and ca.absolute()}).settings


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


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        raise CommandRefused(
            f"The agent's home belongs to user {user}, whom this system does not know: chown it."
        ) from None
