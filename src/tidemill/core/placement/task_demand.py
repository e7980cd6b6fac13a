"""What a task demands of a node, and what it takes there: decided when the task is made, and stored with it.

A demand has a stable form, and its id is made of that. A form that this version cannot read is no demand: the task
waits for a version that can.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND
from tidemill.core.ids import id_of
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import FileForm, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.task_body import Input, Priority, Task
from tidemill.core.jobs.result_archives import archived_bytes
from tidemill.core.jobs.results import INLINE_MAX_BYTES, sealed_bytes
from tidemill.core.jobs.sandboxes import MIB
from tidemill.core.placement import demand as placement
from tidemill.core.placement.demand import Demand, NeededArtefact, PriceBasis

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

_PRIORITIES = {
    Priority.LOW: placement.PriorityLevel.LOW,
    Priority.NORMAL: placement.PriorityLevel.NORMAL,
    Priority.HIGH: placement.PriorityLevel.HIGH,
}


_STORED = ("kind", "devices", "gpu_memory_mib", "cpu_milli", "memory_mib", "disk_mib")
"""The fields of a demand that are stored as they are."""


@dataclass(frozen=True)
class TaskDemand:
    """What a task demands. Tasks with the same demand have the same id."""

    id: UUID
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


def demand_of(task: Task) -> TaskDemand | TaskObjection:
    """What a task demands."""
    work = work_of(task)
    return work if isinstance(work, TaskObjection) else demand_for(task, *work_footprint(task.kind, work))


def work_footprint(kind_name: str, work: Any) -> tuple[Needs, int]:
    """What work needs, and the most bytes of its result that are uploaded. Tasks of one order that are alike in both,
    and in their limits, have the same demand."""
    kind = KINDS[kind_name]
    outputs = kind.outputs(work)
    has_names = any(output.form is FileForm.FILES for output in outputs)
    plain_bytes = archived_bytes([output.most_bytes for output in outputs]) + (NAMES_BYTES if has_names else 0)
    return kind.needs(work), sealed_bytes(plain_bytes) if plain_bytes > INLINE_MAX_BYTES else 0


def demand_for(task: Task, needs: Needs, result_max_bytes: int) -> TaskDemand:
    """What a task with such work demands."""
    facts = _demand_of(task, needs), needs, ceil(task.limits.seconds * 1_000), task.inputs, result_max_bytes
    return TaskDemand(id_of(_form(*facts)), *facts)


def price_basis(needs: Needs) -> PriceBasis:
    """What the cost of a task with these needs follows from."""
    if not needs.devices:
        return PriceBasis.CORE
    return PriceBasis.DEVICE_HOUR if needs.seconds else PriceBasis.DEVICE_WORK


def stored_form(demand: TaskDemand) -> str:
    """A demand as JSON, the same for the same demand."""
    return _form(demand.demand, demand.needs, demand.run_ms, demand.inputs, demand.result_max_bytes)


def read_demand(demand_id: UUID, form: Mapping[str, Any]) -> TaskDemand | None:
    """The demand that a stored form tells of; None if this version cannot read it."""
    try:
        inputs = tuple(Input(name, Digest(digest), size) for name, digest, size in form["inputs"])
        needs = Needs(**form["needs"])
        demand = Demand(
            **{name: form["demand"][name] for name in _STORED},
            labels=frozenset(form["demand"]["labels"]),
            inputs=_artefacts(inputs),
            priority=placement.PriorityLevel(form["demand"]["priority"]),
            price_basis=price_basis(needs),
        )
        return TaskDemand(demand_id, demand, needs, form["run_ms"], inputs, form["result_max_bytes"])
    except (KeyError, TypeError, ValueError):
        return None


def _form(demand: Demand, needs: Needs, run_ms: int, inputs: tuple[Input, ...], result_max_bytes: int) -> str:
    fields = {name: getattr(demand, name) for name in _STORED}
    form = {
        "demand": {**fields, "labels": sorted(demand.labels), "priority": int(demand.priority)},
        "needs": asdict(needs),
        "run_ms": run_ms,
        "inputs": [(input_.name, input_.digest.text, input_.size_bytes) for input_ in inputs],
        "result_max_bytes": result_max_bytes,
    }
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _artefacts(inputs: tuple[Input, ...]) -> tuple[NeededArtefact, ...]:
    return tuple(NeededArtefact(input_.digest.text, input_.size_bytes) for input_ in inputs)


def _demand_of(task: Task, needs: Needs) -> Demand:
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
        inputs=_artefacts(task.inputs),
        priority=_PRIORITIES[task.priority],
        price_basis=price_basis(needs),
    )
