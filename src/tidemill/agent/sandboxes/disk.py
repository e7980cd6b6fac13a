"""How much disk a run takes, measured while it runs.

It counts the entries of its work directory, and the deleted files that it still holds open or mapped. A run can hide a
deleted file that is being passed between two of its processes. The machine's spare space bounds that: a run on a
filesystem that has less than that left is ended.

Counting takes a moment for each entry, so a run is counted a few times a second, and sooner when its filesystem loses
space quickly. Together with a filter of calls that take space without writing, this bounds how far a run gets beyond
its limit: what it writes between two glances and while it is counted.
"""

import os
import re
import stat
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tidemill.agent.sandboxes.outputs import DEPTH_MAX
from tidemill.core.jobs.sandboxes import MIB, RunLimits

SPARE_BYTES = 512 * MIB
FEW = 100
ENTRY_BYTES = 4096
"""What an entry takes at least, for its name and its inode. It also bounds how many there are to count."""
GLANCE_S = 0.05
LOOK_S = 0.2
REST = 4
"""How much longer than a count the pause after it is, unless space is lost quickly."""
_CHECKED_EACH = 1000
_DELETED = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) .*\(deleted\)$", re.MULTILINE)
"""A mapped file without a name in /proc/PID/maps: its addresses, its device and its inode."""


class DiskLook(NamedTuple):
    """What a count found: how much more the run may take, what its filesystem had free, and how long it took."""

    left_bytes: int
    free_bytes: int
    took_s: float = 0.0

    @property
    def is_too_much(self) -> bool:
        return self.left_bytes < 0

    def is_outdated(self, free_bytes: int, since_s: float) -> bool:
        """Whether to count again: the time has come, or the run may have taken half of what was left."""
        if since_s >= max(LOOK_S, REST * self.took_s):
            return True
        return self.free_bytes - free_bytes > self.left_bytes // 2 and since_s >= self.took_s


def free_bytes(work: Path) -> int:
    status = os.statvfs(work)
    return status.f_bavail * status.f_frsize


def before_start(work: Path, limits: RunLimits) -> DiskLook:
    return DiskLook(limits.disk_bytes, free_bytes(work))


def look_at_disk(work: Path, pids: list[int], limits: RunLimits) -> DiskLook:
    """Count what a run takes. Nothing is left if it takes more than it may, or if the machine has too little."""
    began_s, free = time.monotonic(), free_bytes(work)
    used_bytes = None if free < SPARE_BYTES else _tree_bytes(work, limits)
    left = -1 if used_bytes is None else limits.disk_bytes - used_bytes - _deleted_bytes(work, pids)
    return DiskLook(left, free, time.monotonic() - began_s)


def surely_little_disk(work: Path, limits: RunLimits) -> bool:
    """Whether a look at a few entries shows that an ended run took no more than it may."""
    return not look_at_disk(work, [], replace(limits, work_entries=min(FEW, limits.work_entries))).is_too_much


def _tree_bytes(work: Path, limits: RunLimits) -> int | None:
    """Bytes on disk below a directory; None as soon as there are too many, or too many entries, or they are too deep.

    The task may replace a directory by a link while we look. Then files that are not its own count against it.
    """
    waiting, count, total = deque([(work, 0)]), 0, 0
    while waiting:
        directory, depth = waiting.popleft()
        try:
            for entry in os.scandir(directory):
                count, total = count + 1, total + _entry_bytes(entry)
                if total > limits.disk_bytes or count > limits.work_entries or depth > DEPTH_MAX:
                    return None
                if count % _CHECKED_EACH == 0 and free_bytes(work) < SPARE_BYTES:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((Path(entry.path), depth + 1))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:  # closed to us, or its path is too long: its entries cannot be counted
            return None
    return total


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return max(ENTRY_BYTES, entry.stat(follow_symlinks=False).st_blocks * 512)
    except FileNotFoundError:
        return 0


def _deleted_bytes(work: Path, pids: list[int]) -> int:
    """Bytes of files without a name on the work directory's filesystem that these processes have open or mapped."""
    device, sizes = os.stat(work).st_dev, {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            for descriptor in os.scandir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    status = os.stat(descriptor.path)
                    if status.st_dev == device and status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        sizes[status.st_ino] = status.st_blocks * 512
            for inode, size_bytes in _mapped(pid, device):
                sizes.setdefault(inode, size_bytes)
    return sum(sizes.values())


def _mapped(pid: int, device: int) -> Iterator[tuple[int, int]]:
    """Files without a name that a process has mapped, and their sizes. Only root is told how much they have on disk;
    for others a file is as large as its largest mapping."""
    longest: dict[int, int] = {}
    for begin, end, major, minor, inode in _DELETED.findall(Path(f"/proc/{pid}/maps").read_bytes()):
        try:
            status = os.stat(f"/proc/{pid}/map_files/{begin.decode()}-{end.decode()}")
            if status.st_dev == device and status.st_nlink == 0:
                yield status.st_ino, status.st_blocks * 512
        except PermissionError:
            if os.makedev(int(major, 16), int(minor, 16)) == device:
                longest[int(inode)] = max(longest.get(int(inode), 0), int(end, 16) - int(begin, 16))
        except OSError:
            continue
    yield from longest.items()
