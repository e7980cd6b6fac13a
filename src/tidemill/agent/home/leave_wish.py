"""Leaving the pool from the machine itself: a command writes a wish into the home, and the agent carries it out.

The wish stays until the pool has it, even if the agent is killed meanwhile. Then the identity, and all that belonged to
it, is removed.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tidemill.agent.home.home import Home
from tidemill.agent.home.identity import forget_membership
from tidemill.agent.home.place import remove_place
from tidemill.agent.sandboxes.outputs import remove_tree
from tidemill.core.faults import AgentFault
from tidemill.host.private_files import replace_private_file, sync_directory

REASON_MAX = 200
_FILE_MAX = 4_096


@dataclass(frozen=True)
class LeaveWish:
    """The owner's wish to remove this node. With `force` the pool need not know."""

    reason: str
    force: bool


def write_leave_wish(home: Home, leave: LeaveWish) -> None:
    try:
        replace_private_file(home.leave, json.dumps({"reason": leave.reason, "force": leave.force}) + "\n")
    except OSError as error:
        raise AgentFault(f"{home.leave} cannot be written ({error.strerror}): run this as the agent's user.") from None


def read_leave_wish(home: Home) -> LeaveWish | None:
    """The owner's wish to leave, if there is one."""
    try:
        wish = json.loads(home.leave.read_bytes()[:_FILE_MAX])
        return LeaveWish(str(wish["reason"])[:REASON_MAX], wish["force"] is True)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def forget_everything(home: Home) -> None:
    """Remove the membership, and the rules that were made for it."""
    for file in (home.rules, home.rules.with_suffix(".lock")):
        _remove(file)
    forget_pool(home)


def forget_pool(home: Home) -> None:
    """Forget the pool, but keep the owner's rules. Remove the identity last, so that a killed call can be repeated."""
    spool = home.spool.name
    for name in (spool, f"{spool}.damaged"):
        for end in ("", "-wal", "-shm", "-journal"):
            _remove(home.path / f"{name}{end}")
    for file in (home.status, home.speed, home.authority):
        _remove(file)
    for directory in (home.attempts, home.uploads):
        _remove_tree(directory)
    try:
        remove_place(home.path)
    except OSError as error:
        raise AgentFault(f"{home.place} cannot be removed ({error.strerror}): look at who may write there.") from None
    forget_membership(home.membership)
    _remove(home.leave)
    sync_directory(home.path)


def _remove_tree(directory: Path) -> None:
    try:
        remove_tree(directory)
    except OSError as error:
        raise AgentFault(f"{directory} cannot be removed ({error.strerror}): look at who may write there.") from None


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise AgentFault(f"{file} cannot be removed ({error.strerror}): look at who may write there.") from None
