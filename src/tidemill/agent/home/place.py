"""Where an agent keeps what its tasks can see the path of: inputs, and the directories they work in.

The kernel shows every task where its mounts come from. So that this names neither the owner nor the agent, the place
is beside the home under a random name, and not below a user's own directory. The home has a link to it.
"""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidemill.agent.sandboxes.outputs import remove_tree
from tidemill.core.faults import AgentFault

LINK = "place"
ABANDONED_S = 3600.0

_USERS_PARENT = Path("/var/tmp")  # noqa: S108 - what is made there has a random name, and is closed to others
_NAME = re.compile(r"tidemill-[0-9a-f]{16}")
_HOME = "home"
_IN_SERVICE = "INVOCATION_ID"
"""A variable that systemd sets for services. They lose what they have in /var/tmp."""


def place_of(home: Path) -> Path:
    """The place of a home. A home that was never prepared has none; then there is nothing in it either."""
    try:
        return Path(os.readlink(home / LINK))
    except OSError:
        return home


def prepare_place(home: Path) -> None:
    """Make the place of a home, unless it has one."""
    try:
        _prepare(home)
    except OSError as error:
        raise AgentFault(
            f"{place_of(home)}, where tasks run, cannot be made ({error.strerror}): look at who may write there."
        ) from None


@contextmanager
def kept_place(home: Path) -> Iterator[None]:
    """Hold a lock on the place, which keeps systemd from removing old files of a running agent in /var/tmp."""
    descriptor = os.open(place_of(home), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def remove_place(home: Path) -> None:
    if (place := place_of(home)) != home:
        remove_tree(place)
        (home / LINK).unlink()


def remove_abandoned(parent: Path, now_s: float) -> None:
    """Remove places of homes that are gone. Others' are closed to us, or not ours to remove."""
    for place in parent.glob("tidemill-*"):
        with suppress(OSError):
            status = place.lstat()
            is_old = status.st_uid == os.geteuid() and now_s - status.st_mtime > ABANDONED_S
            if is_old and _NAME.fullmatch(place.name) and place_of(Path((place / _HOME).read_text())) != place:
                remove_tree(place)


def _prepare(home: Path) -> None:
    if place_of(home) == home:
        with suppress(FileExistsError):  # a command and the agent may both do this
            os.symlink(_parent(home) / f"tidemill-{secrets.token_hex(8)}", home / LINK)
        remove_abandoned(place_of(home).parent, time.time())
    place = place_of(home)
    if not place.is_dir():
        place.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, exist_ok=True)  # root's tasks have their own users
        (place / _HOME).touch(mode=0o600)
        (place / _HOME).write_text(str(home))


def _parent(home: Path) -> Path:
    """Beside the home, which its owner chose for its disk, or in it where a service may write nowhere else.

    A home in a user's own directory names the user: then a neutral directory, if it is on the same disk.
    """
    names_user = os.geteuid() != 0 and home.is_relative_to(Path.home())
    if names_user and _IN_SERVICE not in os.environ and _USERS_PARENT.stat().st_dev == home.stat().st_dev:
        return _USERS_PARENT
    return home.parent if os.access(home.parent, os.W_OK, effective_ids=True) else home
