"""What a task in the queue demands of a node, read from the node's own instructions; and what it takes there.

The bytes of a task are the pool's own. A task that this version cannot read has no demand, and waits for one that can.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from tidemill.core.clock import SECOND
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import FileForm, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.task_body import Input, Priority, Task, read_task
from tidemill.core.jobs.result_archives import archived_bytes
from tidemill.core.jobs.results import INLINE_MAX_BYTES, sealed_bytes
from tidemill.core.jobs.sandboxes import MIB
from tidemill.core.placement import demand as placement
from tidemill.core.placement.demand import Demand, NeededArtefact

ABILITY = "can:"
"""The prefix, among the labels that a task demands, of what a sandbox must enforce."""

HOUSE = "node=house"
"""The label of the operator's own nodes, whose results the pool trusts."""

SLACK_MS = 30_000
"""For the round trip, and for sealing."""

FETCHED_BYTES_A_MS = 1_000
"""A node that fetches inputs more slowly than this is late."""

NAMES_BYTES = 64 * MIB
"""What the names of a program's own files may add to a result."""

_SEED = re.compile(rb'"seed":\d+')
_ANY_SEED = b'"seed":0'

_PRIORITIES = {
    Priority.LOW: placement.PriorityLevel.LOW,
    Priority.NORMAL: placement.PriorityLevel.NORMAL,
    Priority.HIGH: placement.PriorityLevel.HIGH,
}


@dataclass(frozen=True)
class TaskDemand:
    """One task; `like` is the body of any task with the same demand."""

    like: bytes
    demand: Demand
    needs: Needs
    run_ms: int
    inputs: tuple[Input, ...]
    result_max_bytes: int
    """Of what is uploaded; zero where the result fits into its receipt."""

    def within_us(self, quoted_ms: int, factor: float) -> int:
        """How long a node has from its assignment to its receipt."""
        fetching_ms = self.demand.input_bytes // FETCHED_BYTES_A_MS
        return (max(int(quoted_ms * factor), self.run_ms) + fetching_ms + SLACK_MS) * SECOND // 1_000


def read_demand(body: bytes) -> TaskDemand | None:
    """What a task demands; None if this version knows no such task.

    The thousands of tasks of a job often differ only in a seed, which does not change what they demand.
    """
    return _parsed_demand(_SEED.sub(_ANY_SEED, body))


@lru_cache(maxsize=20_000)
def _parsed_demand(body: bytes) -> TaskDemand | None:
    task = read_task(body)
    if isinstance(task, TaskObjection):
        return None
    work = work_of(task)
    if isinstance(work, TaskObjection):
        return None
    kind = KINDS[task.kind]
    sizes = [output.most_bytes for output in kind.outputs(work)]
    has_names = any(output.form is FileForm.FILES for output in kind.outputs(work))
    plain_bytes = archived_bytes(sizes) + (NAMES_BYTES if has_names else 0)
    return TaskDemand(
        like=body,
        demand=_demand_of(task),
        needs=kind.needs(work),
        run_ms=ceil(task.limits.seconds * 1_000),
        inputs=task.inputs,
        result_max_bytes=sealed_bytes(plain_bytes) if plain_bytes > INLINE_MAX_BYTES else 0,
    )


def _demand_of(task: Task) -> Demand:
    limits = task.limits
    memory_bytes = limits.memory_bytes + limits.temporary_bytes
    if not KINDS[task.kind].in_image:  # an engine counts what a container shares as its memory
        memory_bytes += limits.shared_memory_bytes
    return Demand(
        kind=task.kind,
        devices=task.devices,
        gpu_memory_mib=task.gpu_memory_mib,
        cpu_milli=ceil(limits.cpu_share * 1_000),
        memory_mib=ceil(memory_bytes / MIB),
        disk_mib=ceil((limits.disk_bytes + sum(input_.size_bytes for input_ in task.inputs)) / MIB),
        labels=frozenset(ABILITY + ability.name for ability in task.demands),
        inputs=tuple(NeededArtefact(input_.digest.text, input_.size_bytes) for input_ in task.inputs),
        priority=_PRIORITIES[task.priority],
    )
