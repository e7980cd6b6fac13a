"""What a task demands of a node, and what it takes there: decided when the task is made, and stored with it.

A demand has a stable form, and its id is made of that. A form that this version cannot read is no demand: the task
waits for a version that can.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
from tidemill.core.nodes.machine.gpu_names import MEMORY_TOLERANCE_PCT
from tidemill.core.placement import demand as placement
from tidemill.core.placement.demand import HOUSE, NO_REQUIREMENTS, Demand, NeededArtefact, PriceBasis, Requirements

ABILITY = "can:"
"""The prefix, among the labels that a task demands, of what a sandbox must enforce."""

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


POOLS_POLICY = ""
"""The policy of a stored demand that leaves the choice to the pool."""

_STORED = (
    "kind", "devices", "gpu_memory_mib", "cpu_milli", "memory_mib", "disk_mib", "nvlink", "reputation_floor",
    "price_max_uc", "policy",
)  # fmt: skip
"""The fields of a demand that are stored as they are."""

_STORED_SETS = ("device_models", "labels", "regions")
"""Those that are stored as lists."""


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
    """What a task demands whose customer asks for nothing in particular."""
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


def demand_for(
    task: Task, needs: Needs, result_max_bytes: int, requirements: Requirements = NO_REQUIREMENTS
) -> TaskDemand:
    """What a task with such work demands, if its customer asks for so much besides."""
    facts = (
        _demand_of(task, needs, requirements),
        needs,
        ceil(task.limits.seconds * 1_000),
        task.inputs,
        result_max_bytes,
    )
    return TaskDemand(id_of(_form(*facts)), *facts)


def for_house(demand: Demand) -> Demand:
    """The same work as the house does it, to check it or to say who is right: where, by whom and at which price the
    customer wanted it does not matter then, only that the same can be computed."""
    abilities = frozenset(label for label in demand.labels if label.startswith(ABILITY))
    return replace(
        demand,
        labels=abilities | {HOUSE},
        regions=frozenset(),
        excluded_nodes=frozenset(),
        reputation_floor=0,
        price_max_uc=None,
    )


def usable_mib(gpu_memory_mib: int) -> int:
    """What a device that is sold with so much memory tells of it."""
    return gpu_memory_mib * (100 - MEMORY_TOLERANCE_PCT) // 100


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
            device_models=frozenset(form["demand"]["device_models"]),
            labels=frozenset(form["demand"]["labels"]),
            regions=frozenset(form["demand"]["regions"]),
            excluded_nodes=frozenset(UUID(node_id) for node_id in form["demand"]["excluded_nodes"]),
            inputs=_artefacts(inputs),
            priority=placement.PriorityLevel(form["demand"]["priority"]),
            price_basis=price_basis(needs),
        )
        return TaskDemand(demand_id, demand, needs, form["run_ms"], inputs, form["result_max_bytes"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _form(demand: Demand, needs: Needs, run_ms: int, inputs: tuple[Input, ...], result_max_bytes: int) -> str:
    fields = {name: getattr(demand, name) for name in _STORED}
    form = {
        "demand": {
            **fields,
            **{name: sorted(getattr(demand, name)) for name in _STORED_SETS},
            "excluded_nodes": sorted(map(str, demand.excluded_nodes)),
            "priority": int(demand.priority),
        },
        "needs": asdict(needs),
        "run_ms": run_ms,
        "inputs": [(input_.name, input_.digest.text, input_.size_bytes) for input_ in inputs],
        "result_max_bytes": result_max_bytes,
    }
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _artefacts(inputs: tuple[Input, ...]) -> tuple[NeededArtefact, ...]:
    return tuple(NeededArtefact(input_.digest.text, input_.size_bytes) for input_ in inputs)


def _demand_of(task: Task, needs: Needs, requirements: Requirements) -> Demand:
    limits = task.limits
    memory_bytes = limits.memory_bytes + limits.temporary_bytes
    if not KINDS[task.kind].in_image:  # an engine counts what a container shares as its memory
        memory_bytes += limits.shared_memory_bytes
    return Demand(
        kind=task.kind,
        devices=task.devices,
        device_models=requirements.device_models,
        gpu_memory_mib=max(task.gpu_memory_mib, usable_mib(requirements.gpu_memory_mib)),
        nvlink=requirements.nvlink,
        cpu_milli=ceil(limits.cpu_share * 1_000),
        memory_mib=ceil(memory_bytes / MIB),
        disk_mib=ceil((limits.disk_bytes + sum(input_.size_bytes for input_ in task.inputs)) / MIB),
        labels=frozenset(ABILITY + ability.name for ability in task.demands) | requirements.labels,
        regions=requirements.regions,
        reputation_floor=requirements.reputation_floor,
        price_max_uc=requirements.hourly_max_uc,
        excluded_nodes=requirements.avoided,
        policy=requirements.policy,
        inputs=_artefacts(task.inputs),
        priority=_PRIORITIES[task.priority],
        price_basis=price_basis(needs),
    )
