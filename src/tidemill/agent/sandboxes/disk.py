"""How much disk a run takes, measured while it runs.

It counts the entries of its work directory and the deleted files that it still holds open. A run can hide a deleted
file that is only mapped, or being passed between two of its processes. The machine's spare space bounds that: a run on
a filesystem that has less than that left is ended.
"""

import os
import stat
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tidemill.agent.sandboxes.outputs import DEPTH_MAX
from tidemill.core.jobs.sandboxes import MIB, RunLimits

SPARE_BYTES = 512 * MIB
FEW = 100


def too_much_disk(work: Path, pids: list[int], limits: RunLimits) -> bool:
    """Whether a run takes more than it may, or too little is left on the machine."""
    free = os.statvfs(work)
    if free.f_bavail * free.f_frsize < SPARE_BYTES:
        return True
    used_bytes = _tree_bytes(work, limits)
    return used_bytes is None or used_bytes + _deleted_bytes(work, pids) > limits.disk_bytes


def surely_little_disk(work: Path, limits: RunLimits) -> bool:
    """Whether a look at a few entries shows that an ended run took no more than it may."""
    return not too_much_disk(work, [], replace(limits, work_entries=min(FEW, limits.work_entries)))


def _tree_bytes(work: Path, limits: RunLimits) -> int | None:
    """Bytes on disk below a directory; None once there are too many entries, or they are too deep.

    The task may replace a directory by a link while we look. Then files that are not its own count against it.
    """
    waiting, count, total = deque([(work, 0)]), 0, 0
    while waiting:
        directory, depth = waiting.popleft()
        try:
            entries = list(islice(os.scandir(directory), limits.work_entries - count + 1))
            total += sum(_entry_bytes(entry) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # closed to us, or its path is too long: its entries cannot be counted
            return None
        count += len(entries)
        if count > limits.work_entries or depth > DEPTH_MAX:
            return None
        waiting += ((Path(entry.path), depth + 1) for entry in entries if entry.is_dir(follow_symlinks=False))
    return total


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0


def _deleted_bytes(work: Path, pids: list[int]) -> int:
    """Bytes of files without a name that these processes hold open on the filesystem of the work directory."""
    device, sizes = os.stat(work).st_dev, {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            for descriptor in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    status = os.stat(descriptor.path)
                    if status.st_dev == device and status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        sizes[status.st_ino] = status.st_blocks * 512
    return sum(sizes.values())
