"""A task as a node is assigned it: the bytes in an Offer message. Bounded, with one encoding only.

A node need not trust the pool with its memory: every field read here has a bound. Fields that a newer pool sends are
skipped.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.bounded_json import Malformed, Most, Text, Whole, parse_json, read_value
from tidemill.core.jobs.kinds.kind import KindRefusal, TaskObjection
from tidemill.core.jobs.sandboxes import Ability, RunLimits

TASK_MAX_BYTES = 64 * 1024
INPUTS_MAX = 64
SEALED_TO_MAX = 4
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""An input's name becomes a file name; so no slash, and no dot in front."""

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LARGEST = 2**53


class Priority(StrEnum):
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


@dataclass(frozen=True)
class Input:
    """An artefact that the task reads under a name of its own."""

    name: str
    digest: Digest
    size_bytes: int


@dataclass(frozen=True)
class Task:
    """One task. `seal_to` are X25519 public keys, first the pool's, then the customer's; with none it is not sealed."""

    kind: str
    parameters: Mapping[str, object]
    limits: RunLimits
    inputs: tuple[Input, ...] = ()
    demands: frozenset[Ability] = frozenset()
    devices: int = 0
    gpu_memory_mib: int = 0
    seal_to: tuple[bytes, ...] = ()
    priority: Priority = Priority.NORMAL


def task_bytes(task: Task) -> bytes:
    """The task as an Offer message carries it. The same task is always the same bytes."""
    plain = {
        "demands": sorted(ability.name for ability in task.demands),
        "devices": task.devices,
        "gpu_memory_mib": task.gpu_memory_mib,
        "inputs": [
            {"digest": input_.digest.text, "name": input_.name, "size_bytes": input_.size_bytes}
            for input_ in task.inputs
        ],
        "kind": task.kind,
        "limits": {name: value for name, value in vars(task.limits).items() if value is not None},
        "parameters": dict(task.parameters),
        "priority": task.priority.value,
        "seal_to": [key.hex() for key in task.seal_to],
    }
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def read_task(body: bytes) -> Task | TaskObjection:
    """The inverse."""
    parsed = parse_json(body, TASK_MAX_BYTES)
    form = parsed if isinstance(parsed, Malformed) else read_value(_Form, parsed)
    if isinstance(form, Malformed):
        return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, form.sentence)
    assert isinstance(parsed, dict), "what was read as fields is an object"
    parameters, limits = parsed.get("parameters"), _limits(parsed.get("limits"))
    if not isinstance(parameters, dict):
        return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, "parameters must be an object.")
    if limits is None:
        return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, "limits must be numbers above zero, by their names.")
    if figures := _misshapen(form):
        return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, figures)
    return _task(form, parameters, limits)


@dataclass(frozen=True)
class _InputForm:
    name: Annotated[str, Text(100)]
    digest: Annotated[str, Text(64)]
    size_bytes: Annotated[int, Whole(0, _LARGEST)]


@dataclass(frozen=True)
class _Form:
    """The fields of a task whose shape is fixed."""

    kind: Annotated[str, Text(64)]
    inputs: Annotated[tuple[_InputForm, ...], Most(INPUTS_MAX)]
    demands: Annotated[tuple[Annotated[str, Text(64)], ...], Most(64)]
    devices: Annotated[int, Whole(0, 64)]
    gpu_memory_mib: Annotated[int, Whole(0, 2**31)]
    seal_to: Annotated[tuple[Annotated[str, Text(64)], ...], Most(SEALED_TO_MAX)]
    priority: Priority


def _misshapen(form: _Form) -> str | None:
    """What is wrong with the fields besides their lengths."""
    if not all(NAME.fullmatch(input_.name) for input_ in form.inputs):
        return "An input's name must be 1 to 100 letters, digits, dots, hyphens and underscores, with no dot in front."
    if not all(_DIGEST.fullmatch(digest) for digest in (*(input_.digest for input_ in form.inputs), *form.seal_to)):
        return "A digest and a key must be 64 hexadecimal digits in lower case."
    if set(form.demands) - Ability.__members__.keys():
        return "demands must name what sandboxes can enforce, as this version knows it."
    return None


def _task(form: _Form, parameters: dict[str, object], limits: RunLimits) -> Task:
    return Task(
        kind=form.kind,
        parameters=parameters,
        limits=limits,
        inputs=tuple(Input(input_.name, Digest(input_.digest), input_.size_bytes) for input_ in form.inputs),
        demands=frozenset(Ability[name] for name in form.demands),
        devices=form.devices,
        gpu_memory_mib=form.gpu_memory_mib,
        seal_to=tuple(bytes.fromhex(key) for key in form.seal_to),
        priority=form.priority,
    )


def _limits(value: object) -> RunLimits | None:
    """Every limit must be present, so that none falls back to a default that the pool did not mean."""
    if not isinstance(value, dict):
        return None
    names = [field.name for field in fields(RunLimits)]
    limits: dict[str, Any] = {name: value[name] for name in names if name in value}
    missing = [field.name for field in fields(RunLimits) if field.name not in limits and field.default is not None]
    return RunLimits(**limits) if not missing and all(map(_fits, limits.items())) else None


def _fits(limit: tuple[str, object]) -> bool:
    name, value = limit
    kinds = (int, float) if name in {"seconds", "cpu_share"} else (int,)
    return isinstance(value, kinds) and not isinstance(value, bool) and 0 < value <= _LARGEST
