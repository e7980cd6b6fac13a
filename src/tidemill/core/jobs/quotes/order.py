"""What a customer orders, read and bounded: a kind of task with its parameters, or a training in a few words.

An unknown field is refused, since somebody meant something by it. Everything that is wrong is told at once, field by
field. An order that was read can be stored as it was sent, and quoted; whether it can be carried out is checked when it
is confirmed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, get_args, get_type_hints
from uuid import UUID

from tidemill.core.bounded_json import Whole
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.guide import GUIDES
from tidemill.core.jobs.kinds.kind import FieldError, KindRefusal, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.parameters import (
    ERRORS_MAX,
    NAME_MAX,
    PARAMETERS,
    objection_of,
    unknown_field,
    with_known_names,
)
from tidemill.core.jobs.kinds.task_body import Priority
from tidemill.core.jobs.quotes import chunks, training
from tidemill.core.jobs.quotes.order_fields import OF_ALL, OF_NODES, OF_TASKS, Misread, OrderField, read_key
from tidemill.core.jobs.quotes.quantities import Range
from tidemill.core.jobs.quotes.training import Training
from tidemill.core.placement.demand import NO_REQUIREMENTS, Requirements

_TRAINING_FIELDS = (*OF_ALL, *training.FIELDS)
_TASK_FIELDS = (*OF_ALL, *OF_NODES, *OF_TASKS)

_KNOWN = frozenset({"kind", PARAMETERS, *(field.name for field in _TASK_FIELDS)})

GPU_FIELDS = ("gpu_count", "gpu_models", "gpu_memory", "nvlink")
"""What only work that can have GPUs may ask for."""

Read = Mapping[str, Any]
"""The fields of an order by name, each read or its usual value."""


@dataclass(frozen=True)
class Order:
    """An order. `work` is all of it; a training has none. `memory_mib` is what a machine must have.

    `tasks` is how many it is divided into at the fewest and at the most; `expected` are SHA-256 of results, one a task.
    `deadline_s` counts from when it is confirmed. Results are sealed to the `result_key`, an X25519 public key, if
    there is one.
    """

    kind: str
    parameters: Mapping[str, object]
    name: str = ""
    work: Any = None
    training: Training | None = None
    inputs: tuple[tuple[str, UUID], ...] = ()
    priority: Priority = Priority.NORMAL
    budget_uc: int | None = None
    tasks: tuple[int, int] = (1, 1)
    memory_mib: int = 0
    gpu_count: int | None = None
    requirements: Requirements = NO_REQUIREMENTS
    deadline_s: int | None = None
    expected: tuple[bytes, ...] = ()
    result_key: bytes | None = None

    @property
    def has_runner(self) -> bool:
        return self.training is None


def parse_order(body: Mapping[str, object], tasks_max: int = 1_000) -> Order | TaskObjection:
    """The order in a body, or everything that is wrong with it."""
    if _has_zero(body):
        return objection_of([FieldError("", "A text of the job holds a zero character, which cannot be kept.")])
    return _training(body) if "type" in body else _tasks(body, tasks_max)


def read_result_key(raw: object) -> bytes | TaskObjection | None:
    """The customer's public key, if there is one."""
    key = None if raw is None else read_key(raw)
    return objection_of([FieldError("result_key", key.sentence)]) if isinstance(key, Misread) else key


def field_names(*tables: Sequence[OrderField]) -> list[str]:
    """All names of fields in some tables."""
    return sorted(field.name for table in tables for field in table)


def _has_zero(value: object) -> bool:
    """Whether any text in it holds a zero character, which no database stores."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_zero(item) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(map(_has_zero, value))


def _training(body: Mapping[str, object]) -> Order | TaskObjection:
    read, errors = _fields(_TRAINING_FIELDS, ("type",), body)
    if not isinstance(body["type"], str) or body["type"] not in training.TYPES:
        types = f"type must be one of {', '.join(sorted(training.TYPES))}; other work has a kind: {', '.join(KINDS)}."
        return objection_of([FieldError("type", types), *errors], KindRefusal.KIND_UNKNOWN)
    if errors:
        return objection_of(errors)
    parameters = {name: body[name] for name in ("type", *field_names(training.FIELDS)) if name in body}
    asked = Training(read["framework"], read["model_params"], read["dataset_size"])
    return Order(training.KIND, parameters, training=asked, **_shared(read))


def _tasks(body: Mapping[str, object], tasks_max: int) -> Order | TaskObjection:
    read, errors = _fields(_TASK_FIELDS, ("kind", PARAMETERS), body)
    kind = KINDS.get(str(body.get("kind"))[:64])
    if kind is None:
        return objection_of([FieldError("kind", _no_kind(body)), *errors], KindRefusal.KIND_UNKNOWN)
    asked = body.get(PARAMETERS)
    if not isinstance(asked, dict | None):
        errors.insert(0, FieldError(PARAMETERS, "parameters must be an object."))
    elif asked is not None or not body.keys() - _KNOWN:
        return _work(kind, read, errors, asked or {}, tasks_max)
    return objection_of(errors)  # parameters that are missing may stand under a name that is misspelt


def _work(
    kind: TaskKind[Any], read: Read, errors: list[FieldError], asked: Mapping[str, object], tasks_max: int
) -> Order | TaskObjection:
    """The order of work with these parameters, whose other fields were read with these errors."""
    errors = [*errors, *_about_gpus(kind.name, read, asked)]
    parameters = _with_gpus(kind.name, read, asked)
    work = chunks.read_whole(kind, parameters)
    objections = [work] if isinstance(work, TaskObjection) else []
    if objections:  # what else is wrong can be told if only names of parameters are
        parameters = with_known_names(GUIDES[kind.name].shape, parameters)
        work = chunks.read_whole(kind, parameters)
    tasks, memory_mib = _sizes(kind.name, work, parameters, read, tasks_max)
    objections += [misfit for misfit in (tasks, memory_mib) if isinstance(misfit, TaskObjection)]
    if objections or errors:
        refusal = KindRefusal.PARAMETERS_MALFORMED if errors else objections[0].refusal
        return objection_of([*(error for misfit in objections for error in misfit.errors), *errors], refusal)
    return Order(
        kind.name,
        parameters,
        work=work,
        inputs=read["inputs"],
        tasks=_sure(tasks),
        memory_mib=_sure(memory_mib),
        gpu_count=read["gpu_count"],
        requirements=_requirements(read),
        expected=read["expected"],
        result_key=read["result_key"],
        **_shared(read),
    )


def _sizes(
    kind: str, work: Any, parameters: Mapping[str, object], read: Read, tasks_max: int
) -> tuple[tuple[int, int] | TaskObjection | None, int | TaskObjection | None]:
    """How many tasks, and the memory of a machine; None where what they depend on could not be read."""
    can_count = not isinstance(work, TaskObjection)
    tasks, memory = (can_count and not isinstance(read[name], Misread) for name in ("tasks", "memory"))
    return (
        _count(kind, work, parameters, read["tasks"], tasks_max) if tasks else None,
        _least_memory(read, kind, work, parameters) if memory else None,
    )


def _shared(read: Read) -> dict[str, Any]:
    """The fields that every order may have."""
    return {
        "name": read["name"],
        "priority": read["priority"],
        "budget_uc": read["max_budget"],
        "deadline_s": read["deadline"],
    }


def _requirements(read: Read) -> Requirements:
    return Requirements(
        device_models=read["gpu_models"],
        gpu_memory_mib=read["gpu_memory"],
        nvlink=read["nvlink"],
        regions=read["regions"],
        labels=read["labels"],
        reputation_floor=read["reputation"],
        hourly_max_uc=read["hourly"],
        policy=read["policy"],
        avoided=read["avoid"],
    )


def _fields(
    table: Sequence[OrderField], besides: Collection[str], body: Mapping[str, object]
) -> tuple[Read, list[FieldError]]:
    """Every field of a table, and what is wrong with them. `besides` are read elsewhere."""
    known = {field.name for field in table} | set(besides)
    errors = [_strange(str(name), known) for name in sorted(map(str, body.keys() - known))[:ERRORS_MAX]]
    read = {}
    for field in table:
        raw = body.get(field.name)
        value = field.usual if raw is None and not field.is_needed else field.read(raw)
        if isinstance(value, Misread):
            errors.append(FieldError(field.name, value.sentence))
        read[field.name] = value
    return read, errors


def _strange(name: str, known: Collection[str]) -> FieldError:
    """An unknown field, as somebody wrote it, and what it may have been meant to be."""
    return FieldError(name[:NAME_MAX], unknown_field("The job", name[:NAME_MAX], sorted(known)))


def _no_kind(body: Mapping[str, object]) -> str:
    begins = "There is no such kind" if "kind" in body else "kind must be there"
    return f"{begins}: the kinds are {', '.join(KINDS)}."


def takes_gpus(kind: str) -> bool:
    """Whether work of a kind may have GPUs."""
    return any(field.name == "devices" for field in fields(GUIDES[kind].shape))


def _gpus_max(kind: str) -> int:
    """How many GPUs a task of a kind may have at most."""
    hint = get_type_hints(GUIDES[kind].shape, include_extras=True)["devices"]
    return max(bound.high for bound in get_args(hint) if isinstance(bound, Whole))


def _wants_gpus(read: Read) -> bool:
    return any(read[name] and not isinstance(read[name], Misread) for name in ("gpu_models", "gpu_memory", "nvlink"))


def _with_gpus(kind: str, read: Read, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """The parameters with the number of GPUs that the order asks for."""
    count = read["gpu_count"] if isinstance(read["gpu_count"], int) else None
    if not takes_gpus(kind) or (count is None and (not _wants_gpus(read) or parameters.get("devices"))):
        return parameters
    return {**parameters, "devices": min(count or 1, _gpus_max(kind))}


def _about_gpus(kind: str, read: Read, parameters: Mapping[str, object]) -> Iterator[FieldError]:
    """What does not fit together in what is asked of GPUs."""
    count, stated = read["gpu_count"], parameters.get("devices")
    wanted = count if isinstance(count, int) else 0
    asked = [name for name in GPU_FIELDS if read[name]]
    if asked and not takes_gpus(kind):
        with_gpus = " and ".join(name for name in KINDS if takes_gpus(name))
        yield FieldError(asked[0], f"{kind} works on processors: leave out {', '.join(asked)}, or order {with_gpus}.")
    elif asked and max(wanted, 2 if read["nvlink"] is True else 0) > (most := _gpus_max(kind)):
        gpus = "1 GPU" if most == 1 else f"{most} GPUs"
        yield FieldError("nvlink" if wanted <= most else "gpu_count", f"{kind} uses at most {gpus} a task.")
    elif count is not None and stated not in (None, 0, count):
        yield FieldError("gpu_count", "gpu_count and parameters.devices say different numbers: leave one of them out.")
    elif read["nvlink"] is True and max(wanted, stated if isinstance(stated, int) else 0) < 2:
        yield FieldError("nvlink", "nvlink joins GPUs with each other: ask for a gpu_count of 2 or more.")


def _least_memory(read: Read, kind: str, work: Any, parameters: Mapping[str, object]) -> int | TaskObjection:
    """The memory that a machine must have, as ordered; refused if the order allows less than is needed."""
    low_mib, high_mib = read["memory"]
    needs_mib = chunks.DIVIDED[kind].whole(work, parameters).memory_mib
    if high_mib is not None and high_mib < needs_mib:
        sentence = f"The work needs {needs_mib:,} MiB of memory, and memory allows less."
        return objection_of([FieldError("memory", sentence)], KindRefusal.WORK_TOO_LARGE)
    return int(low_mib)


def _count(
    kind: str, work: Any, parameters: Mapping[str, object], asked: Range | None, most: int
) -> tuple[int, int] | TaskObjection:
    """How many tasks, at the fewest and at the most: as ordered, or the usual number."""
    fewest, largest = chunks.DIVIDED[kind].bounds(work, parameters)
    usual = max(fewest, min(chunks.usual_count(kind, work, parameters), most))
    counts = asked or Range(Decimal(fewest), Decimal(usual))
    low = max(fewest, int(counts.low or fewest))
    high = min(largest, most, int(counts.high if counts.high is not None else most))
    if low > most:
        sentence = f"The job would have {low:,} tasks, and may have {most:,}."
        return objection_of([FieldError("tasks", sentence)], KindRefusal.WORK_TOO_LARGE)
    if low > high:
        sentence = f"This work can be divided into {fewest:,} to {largest:,} tasks: {_hint(kind)}"
        return objection_of([FieldError("tasks", sentence)])
    return low, high


def _hint(kind: str) -> str:
    if kind in ("script", "container"):
        return f"write {chunks.NUMBER} among its arguments where each task finds its number."
    return "ask for as many."


def _sure(read: Any) -> Any:
    assert not isinstance(read, TaskObjection), "what is wrong was told before"
    return read
