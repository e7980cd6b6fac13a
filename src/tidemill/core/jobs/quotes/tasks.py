"""The tasks of a confirmed order: what each node receives, and the most that each may cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from tidemill.core.artefacts.artefact import Artefact
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.currency import CREDIT
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.needs import Needs, limits_of
from tidemill.core.jobs.kinds.parameters import malformed, too_large
from tidemill.core.jobs.kinds.task_body import TASK_MAX_BYTES, Input, Task, task_bytes
from tidemill.core.jobs.quotes import chunks
from tidemill.core.jobs.quotes.order import Order
from tidemill.core.jobs.sandboxes import RunLimits
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.task_demand import TaskDemand, demand_for, usable_mib, work_footprint
from tidemill.core.settings.sections.market import MarketSettings
from tidemill.core.settings.sections.work import ContainersSettings, JobsSettings

_UNLIMITED = RunLimits(seconds=1)
"""A placeholder until the price, and with it the time, is known."""


@dataclass(frozen=True)
class OrderPart:
    """One task of an order, what it needs, and its parameters as its kind has read them."""

    task: Task
    needs: Needs
    work: Any


@dataclass(frozen=True)
class OrderTerms:
    """The settings by which a pool carries orders out, and the public key to which it has private results sealed."""

    market: MarketSettings
    jobs: JobsSettings
    containers: ContainersSettings
    verification: bytes
    currency: str = CREDIT


@dataclass(frozen=True)
class TaskPlan:
    """A task to be created: its body, what it demands of a node, the most that it may cost, and the result that the
    customer expects."""

    body: bytes
    demand: TaskDemand
    cost_max_uc: int
    expected: bytes | None = None


def inputs_of(order: Order, artefacts: Mapping[UUID, Artefact]) -> Sequence[Input] | ArtefactRefusal:
    """The inputs of an order, out of the artefacts that its customer has."""
    if any(artefact_id not in artefacts for _, artefact_id in order.inputs):
        return ArtefactRefusal.UNKNOWN_ARTEFACT
    found = ((name, artefacts[artefact_id]) for name, artefact_id in order.inputs)
    return [Input(name, artefact.digest, artefact.size_bytes) for name, artefact in found]


def divide(order: Order, inputs: Sequence[Input]) -> Sequence[OrderPart] | TaskObjection:
    """The tasks that an order is divided into, each accepted by its kind."""
    assert order.has_runner, "an order without a runner has no tasks"
    parts = chunks.DIVIDED[order.kind].parts(order.work, order.parameters, task_count(order))
    if not order.tasks[0] <= len(parts) <= max(order.tasks):
        return malformed(f"The job cannot be divided into {order.tasks[1]:,} tasks: ask for {len(parts):,}.")
    if order.expected and len(order.expected) != len(parts):
        return malformed(f"expected has {len(order.expected):,} results, and the job has {len(parts):,} tasks.")
    order_parts = []
    for parameters in parts:
        part = _part(order, parameters, tuple(inputs))
        if isinstance(part, TaskObjection):
            return part
        order_parts.append(part)
    return order_parts


def tasks_of(
    order: Order,
    parts: Sequence[OrderPart],
    costs_max_uc: Sequence[int],
    limit_s: int,
    verification: bytes,
    containers: ContainersSettings,
) -> Sequence[TaskPlan] | TaskObjection:
    """The tasks to create, each with its own most cost. A run of our code ends after `limit_s` seconds at the latest.

    Results of a private order are sealed to the pool's verification, by its public key, and to the customer.
    """
    seal_to = () if order.result_key is None else (verification, order.result_key)
    limits_by_needs: dict[Needs, RunLimits] = {}
    demands: dict[tuple[Needs, Needs, int], TaskDemand] = {}
    plans = []
    for number, (part, cost_uc) in enumerate(zip(parts, costs_max_uc, strict=True)):
        limits = limits_by_needs.get(part.needs) or limits_by_needs.setdefault(
            part.needs, limits_of(part.needs, part.needs.seconds or limit_s, containers)
        )
        task = replace(part.task, limits=limits, seal_to=seal_to)
        body = task_bytes(task)
        if len(body) > TASK_MAX_BYTES:
            return too_large(f"A task would take {len(body):,} bytes, and may take {TASK_MAX_BYTES:,}: use inputs.")
        footprint = work_footprint(order.kind, part.work)
        key = part.needs, *footprint
        demand = demands.get(key) or demands.setdefault(key, demand_for(task, *footprint, order.requirements))
        plans.append(TaskPlan(body, demand, cost_uc, order.expected[number] if order.expected else None))
    return plans


def demanded(order: Order, part: OrderPart, containers: ContainersSettings) -> Demand:
    """What one task of an order demands of a node, however long it may take."""
    task = replace(part.task, limits=limits_of(part.needs, 1, containers))
    return demand_for(task, *work_footprint(order.kind, part.work), order.requirements).demand


def task_count(order: Order) -> int:
    """The most tasks allowed where the work is divided, the fewest where each task is a complete work of its own."""
    low, high = order.tasks
    return high if chunks.is_divided(order.kind) or low == high else low


def _part(order: Order, parameters: chunks.Parameters, inputs: tuple[Input, ...]) -> OrderPart | TaskObjection:
    work = work_of(Task(order.kind, parameters, _UNLIMITED, inputs))
    if isinstance(work, TaskObjection):
        return work
    needs = KINDS[order.kind].needs(work)
    gpu_memory_mib = max(needs.gpu_memory_mib, usable_mib(order.requirements.gpu_memory_mib)) if needs.devices else 0
    needs = replace(needs, memory_mib=max(needs.memory_mib, order.memory_mib), gpu_memory_mib=gpu_memory_mib)
    task = Task(
        kind=order.kind,
        parameters=parameters,
        limits=_UNLIMITED,
        inputs=inputs,
        devices=needs.devices,
        gpu_memory_mib=needs.gpu_memory_mib,
        priority=order.priority,
    )
    return OrderPart(task, needs, work)
