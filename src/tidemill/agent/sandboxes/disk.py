"""How much disk a run takes, looked at while it runs.

Counted are the entries of its work directory and the deleted files that it still holds open. What hides from both
(a deleted file that is only mapped, or under way between two of its processes) ends at the machine's own spare
space: a run on a filesystem that has less than that left is ended.
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
    """Whether a run has more than it may, or the machine has too little left for anybody."""
    free = os.statvfs(work)
    if free.f_bavail * free.f_frsize < SPARE_BYTES:
        return True
    seen = _tree_bytes(work, limits)
    return seen is None or seen + _deleted_bytes(work, pids) > limits.disk_bytes


def surely_little_disk(work: Path, limits: RunLimits) -> bool:
    """Whether a look at no more than a few entries shows that an ended run took no more than it may."""
    return not too_much_disk(work, [], replace(limits, work_entries=min(FEW, limits.work_entries)))


def _tree_bytes(work: Path, limits: RunLimits) -> int | None:
    """Bytes on disk below a directory; None once there are too many entries, or too deep.

    The task may swap a directory for a link while we look: then it is charged for what is not its own.
    """
    waiting, count, total = deque([(work, 0)]), 0, 0
    while waiting:
        place, depth = waiting.popleft()
        try:
            entries = list(islice(os.scandir(place), limits.work_entries - count + 1))
            total += sum(_entry_bytes(entry) for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # closed to us, or its path is too long: whatever is in there cannot be counted
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
                    found = os.stat(descriptor.path)
                    if found.st_dev == device and found.st_nlink == 0 and stat.S_ISREG(found.st_mode):
                        sizes[found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())
