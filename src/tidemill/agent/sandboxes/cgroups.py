"""Control groups: what the kernel counts and limits for all processes of a run together.

A run's groups are made below the agent's own, so that a limit set on the agent binds its tasks as well. At the start
the agent tries once which controllers it can use, by making a group and setting a limit in it. Both versions of the
kernel's interface are used, each controller where it is. In the unified one a group with processes hands no controller
down, so there the agent moves itself into a group beside those of its runs.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.jobs.sandboxes import MIB, Ability, RunLimits

CONTROLLERS = {"memory": Ability.MEMORY, "pids": Ability.PIDS, "cpu": Ability.CPU}
PREFIX = "tidemill-"
ASIDE = f"{PREFIX}agent"
"""The group of the agent itself, when it had to step aside."""
ABANDONED_S = 3600.0
PERIOD_US = 100_000
SUPERVISORS = 2
"""The sandbox's own processes: one outside the namespaces, and the first inside."""


@dataclass(frozen=True)
class ParentGroups:
    """The agent's own group for each usable controller, and which controllers are unified."""

    paths: dict[str, Path]
    unified: frozenset[str]

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset(CONTROLLERS[name] for name in self.paths)


class RunGroups:
    """The groups of one run."""

    def __init__(self, parents: ParentGroups, name: str) -> None:
        self._unified = parents.unified
        self._of = {controller: parent / f"{PREFIX}{name}" for controller, parent in parents.paths.items()}
        self.paths = sorted(set(self._of.values()))

    def make(self) -> None:
        for group in self.paths:
            group.mkdir()

    def limit(self, limits: RunLimits) -> None:
        for controller, group in self._of.items():
            _limit(group, controller, controller in self._unified, limits)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of this run for its memory."""
        return "memory" in self._of and bool(_oom_kills(self._of["memory"], "memory" in self._unified))


class MemoryCount:
    """How many processes of a process's group the kernel killed for memory. The count goes with the group, which
    somebody else removes: callers keep the last count."""

    def __init__(self, pid: int) -> None:
        self._groups = list(_own_groups("memory", str(pid)))

    def kills(self) -> int | None:
        """The count; None if there is none, or none any more."""
        counts = [_oom_kills(group, is_unified) for group, is_unified in self._groups]
        counted = [count for count in counts if count is not None]
        return sum(counted) if counted else None


def _oom_kills(group: Path, is_unified: bool) -> int | None:
    try:
        lines = (group / ("memory.events" if is_unified else "memory.oom_control")).read_text().splitlines()
    except OSError:  # there is no count, or the group is gone or being removed
        return None
    counts = [int(line.removeprefix("oom_kill ")) for line in lines if line.startswith("oom_kill ")]
    return sum(counts) if counts else None


def usable_parents(name: str) -> ParentGroups:
    """The usable controllers. `name` is that of a trial group, which is removed at once."""
    parents: dict[str, Path] = {}
    unified: set[str] = set()
    for controller in CONTROLLERS:
        for group, is_unified in _own_groups(controller):
            if _works(group / f"{PREFIX}{name}", controller, is_unified):
                parents[controller] = group
                unified |= {controller} if is_unified else set()
                break
    return ParentGroups(parents, frozenset(unified))


def remove_abandoned(parents: ParentGroups, now_s: float) -> int:
    """Remove old groups without a process, left by an agent that was killed with its launcher and whose home is gone.

    A seat that waits for a run is a process in its groups, and the kernel removes no group that has one.
    """
    removed = 0
    for parent in set(parents.paths.values()):
        for group in parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                if now_s - group.stat().st_mtime > ABANDONED_S:
                    group.rmdir()
                    removed += 1
    return removed


def remove_group(group: Path) -> bool:
    """Kill a group's processes and remove it. False while a dying process still holds it."""
    with contextlib.suppress(FileNotFoundError):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _own_groups(controller: str, pid: str = "self") -> Iterator[tuple[Path, bool]]:
    """The group of the agent, or of another process, for a controller, and whether it is unified."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        yield from _groups_in(lines, controller)


def _groups_in(lines: list[str], controller: str) -> Iterator[tuple[Path, bool]]:
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for root, point in _hierarchies(controller if controllers else None):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                group = Path(point) / path[len(root) :].lstrip("/")
                yield group.parent if group.name == ASIDE else group, not controllers


def _hierarchies(controller: str | None) -> Iterator[tuple[str, str]]:
    """Root and mount point of a controller's hierarchy, or of the unified one."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        filesystem, _, options = kind.split(" ", 2)
        if controller is None:
            is_match = filesystem == "cgroup2"
        else:
            is_match = filesystem == "cgroup" and controller in options.split(",")
        if is_match:
            root, point = mount.split(" ")[3:5]
            yield root, point


def _works(group: Path, controller: str, is_unified: bool) -> bool:
    if is_unified and not _hands_down(group.parent, controller):
        return False
    try:
        group.mkdir()
    except OSError:
        return False
    try:
        _limit(group, controller, is_unified, RunLimits(seconds=1, memory_bytes=64 * MIB))
    except OSError:
        return False
    finally:
        remove_group(group)
    return True


def _hands_down(group: Path, controller: str) -> bool:
    """Whether groups below this one have the controller. Enables it if need be."""
    file = group / "cgroup.subtree_control"
    try:
        if controller in file.read_text().split():
            return True
        try:
            file.write_text(f"+{controller}")
        except OSError as error:
            if error.errno != errno.EBUSY:
                return False
            step_aside(group)
            file.write_text(f"+{controller}")
    except OSError:
        return False
    return True


def step_aside(group: Path) -> None:
    """Move this process out of a group, into one below it. Other processes stay."""
    aside = group / ASIDE
    aside.mkdir(exist_ok=True)
    (aside / "cgroup.procs").write_text(str(os.getpid()))


def _limit(group: Path, controller: str, is_unified: bool, limits: RunLimits) -> None:
    for name, value in _values(controller, is_unified, limits).items():
        try:
            _write(f"{group}/{name}", value)
        except FileNotFoundError:
            if name not in _OPTIONAL:
                raise


def _write(file: str, value: str) -> None:
    """Write with plain system calls, without Python's file objects: every run waits for this."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


_OPTIONAL = {"memory.memsw.limit_in_bytes", "memory.swap.max", "memory.oom.group"}
"""Files that are missing where the kernel cannot swap, or is too old to end all processes of a group at once."""


def _values(controller: str, is_unified: bool, limits: RunLimits) -> dict[str, str]:
    memory, quota = str(limits.memory_bytes), str(max(1000, int(limits.cpu_share * PERIOD_US)))
    if controller == "pids":
        return {"pids.max": str(limits.pids + SUPERVISORS)}
    if controller == "memory" and is_unified:
        return {"memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1"}
    if controller == "memory":
        return {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}
    if is_unified:
        return {"cpu.max": f"{quota} {PERIOD_US}"}
    return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota}
