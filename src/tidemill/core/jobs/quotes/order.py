"""What a customer orders, read and bounded: a kind of task with its parameters, or a training in a few words.

An unknown field is refused, since somebody meant something by it. An order that was read can be stored as it was sent,
and quoted; whether it can be carried out is checked when it is confirmed.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import KindRefusal, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import malformed, too_large
from tidemill.core.jobs.kinds.task_body import INPUTS_MAX, NAME, Priority
from tidemill.core.jobs.quotes import chunks, training
from tidemill.core.jobs.quotes.quantities import MEBIBYTES, PLAIN, TIME, Range, amount, range_of
from tidemill.core.jobs.quotes.training import Training
from tidemill.core.jobs.results import is_reader
from tidemill.core.money import MoneyRefusal, micro_credits
from tidemill.core.references import refused_name

NAME_MAX = 100
DEADLINE_S = (60, 90 * 24 * 3600)
MEMORY_MAX_MIB = 4 * 1024 * 1024

_NAMED_MAX, _NAME_MAX = 3, 40
_SHARED = frozenset({"name", "priority", "max_budget", "deadline"})
_OF_TASKS = frozenset({"kind", "parameters", "inputs", "tasks", "memory", "hourly", "expected", "result_key"})
_OF_TRAINING = frozenset({"type", "framework", "dataset_size", "model_params"})
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True)
class Order:
    """An order. `work` is all of it; a training has none. `memory_mib` is what a machine must have.

    `tasks` is how many it is divided into at the fewest and at the most; `expected` are SHA-256 of results, one a task.
    `hourly_max_uc` is the most that a device-hour may cost, and `deadline_s` counts from when it is confirmed. Results
    are sealed to the `result_key`, an X25519 public key, if there is one.
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
    hourly_max_uc: int | None = None
    deadline_s: int | None = None
    expected: tuple[bytes, ...] = ()
    result_key: bytes | None = None

    @property
    def has_runner(self) -> bool:
        return self.training is None


def parse_order(body: Mapping[str, object], tasks_max: int = 1_000) -> Order | TaskObjection:
    """The order in a body, or what is wrong with it."""
    of_training = "type" in body
    known_fields = _SHARED | (_OF_TRAINING if of_training else _OF_TASKS)
    if strange := body.keys() - known_fields:
        field_names = ", ".join(sorted(known_fields))
        return malformed(f"The job has a field that is not known, {_named(strange)}; it may have {field_names}.")
    if _has_zero(body):
        return malformed("A text of the job holds a zero character, which cannot be kept.")
    order = _training(body) if of_training else _tasks(body, tasks_max)
    return order if isinstance(order, TaskObjection) else _shared(order, body)


def _named(fields: Iterable[object]) -> str:
    """A few field names, as somebody wrote them."""
    return ", ".join(repr(name[:_NAME_MAX]) for name in sorted(map(str, fields))[:_NAMED_MAX])


def read_result_key(raw: object) -> bytes | TaskObjection | None:
    """The customer's public key. A key with which anybody could open the result is refused."""
    if raw is None:
        return None
    key = urlsafe_b64decode(raw + "=") if isinstance(raw, str) and _KEY.fullmatch(raw) else b""
    if not is_reader(key):
        return malformed("result_key must be an X25519 public key: 32 bytes in base64url, 43 characters.")
    return key


def _has_zero(value: object) -> bool:
    """Whether any text in it holds a zero character, which no database stores."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_zero(item) for pair in value.items() for item in pair)
    return isinstance(value, list) and any(map(_has_zero, value))


def _training(body: Mapping[str, object]) -> Order | TaskObjection:
    if not isinstance(body["type"], str) or body["type"] not in training.TYPES:
        return TaskObjection(
            KindRefusal.KIND_UNKNOWN,
            f"type must be one of {', '.join(sorted(training.TYPES))}; other work has a kind: {', '.join(KINDS)}.",
        )
    read = training.read_training(body)
    if isinstance(read, TaskObjection):
        return read
    parameters = {name: body[name] for name in ("type", *_OF_TRAINING) if name in body}
    return Order(training.KIND, parameters, training=read)


def _tasks(body: Mapping[str, object], tasks_max: int) -> Order | TaskObjection:
    kind, parameters = KINDS.get(str(body.get("kind"))[:64]), body.get("parameters", {})
    if kind is None:
        return TaskObjection(KindRefusal.KIND_UNKNOWN, f"The kinds there are: {', '.join(KINDS)}.")
    if not isinstance(parameters, dict):
        return malformed("parameters must be an object.")
    work = chunks.read_whole(kind, parameters)
    if isinstance(work, TaskObjection):
        return work
    memory = _memory(chunks.DIVIDED[kind.name].whole(work, parameters), body.get("memory"))
    inputs, tasks = _inputs(body.get("inputs", {})), _count(kind.name, work, parameters, body.get("tasks"), tasks_max)
    hourly, expected = _hourly(body.get("hourly")), _expected(body.get("expected", []))
    result_key = read_result_key(body.get("result_key"))
    for read in (memory, inputs, tasks, hourly, expected, result_key):
        if isinstance(read, TaskObjection):
            return read
    order = Order(kind.name, parameters, work=work, inputs=_sure(inputs), tasks=_sure(tasks))
    order = replace(order, result_key=_sure(result_key))
    return replace(order, memory_mib=_sure(memory), hourly_max_uc=_sure(hourly), expected=_sure(expected))


def _shared(order: Order, body: Mapping[str, object]) -> Order | TaskObjection:
    """The fields that every job may have."""
    name, priority = body.get("name", ""), body.get("priority", Priority.NORMAL.value)
    if unfit := _unfit_name(name):
        return malformed(unfit)
    if not isinstance(priority, str) or priority not in list(Priority):
        return malformed(f"priority must be one of {', '.join(Priority)}.")
    budget_uc = None if body.get("max_budget") is None else micro_credits(body["max_budget"])
    if isinstance(budget_uc, MoneyRefusal):
        return malformed(f"max_budget cannot be read. {budget_uc.sentence}")
    if budget_uc == 0:
        return malformed("max_budget must be above zero.")
    deadline_s = None if body.get("deadline") is None else amount(body["deadline"], TIME)
    if body.get("deadline") is not None and (deadline_s is None or not DEADLINE_S[0] <= deadline_s <= DEADLINE_S[1]):
        return malformed("deadline must be a time such as 2h, from 1m to 90d, counted from when the job is confirmed.")
    kept_s = None if deadline_s is None else int(deadline_s)
    return replace(order, name=_sure(name), priority=Priority(priority), budget_uc=budget_uc, deadline_s=kept_s)


def _unfit_name(name: object) -> str | None:
    """Why a job cannot have this name. It needs none."""
    if not isinstance(name, str) or len(name) > NAME_MAX or not name.isprintable():
        return f"name must be a text of at most {NAME_MAX} printable characters."
    refusal = refused_name(name) if name else None
    return None if refusal is None else refusal.sentence


def _memory(needs: Needs, raw: object) -> int | TaskObjection:
    """The memory that a machine must have, as ordered; refused if the order allows less than is needed."""
    limits = Range() if raw is None else range_of(raw, MEBIBYTES)
    if limits is None or (limits.low or 0) > MEMORY_MAX_MIB:
        return malformed(f"memory must be a size or a range such as 24GB.. or 8GB..64GB, up to {MEMORY_MAX_MIB:,} MiB.")
    high = limits.high if isinstance(raw, str) and ".." in raw else None
    if high is not None and high < needs.memory_mib:
        return too_large(f"The work needs {needs.memory_mib:,} MiB of memory, and memory allows less.")
    return int(limits.low or 0)


def _count(
    kind: str, work: Any, parameters: Mapping[str, object], raw: object, most: int
) -> tuple[int, int] | TaskObjection:
    """How many tasks, at the fewest and at the most: as ordered, or the usual number."""
    fewest, largest = chunks.DIVIDED[kind].bounds(work, parameters)
    if raw is None:
        usual = chunks.usual_count(kind, work, parameters)
        counts = Range(Decimal(fewest), Decimal(max(fewest, min(usual, most))))
    else:
        read = range_of(raw, PLAIN)
        if read is None or any(end is not None and (end != int(end) or end < 1) for end in (read.low, read.high)):
            return malformed("tasks must be a whole number or a range such as 1..16.")
        counts = read
    low = max(fewest, int(counts.low or fewest))
    high = min(largest, most, int(counts.high if counts.high is not None else most))
    if low > most:
        return too_large(f"The job would have {low:,} tasks, and may have {most:,}.")
    if low > high:
        return malformed(f"This work can be divided into {fewest:,} to {largest:,} tasks: {_hint(kind)}")
    return low, high


def _hint(kind: str) -> str:
    if kind in ("script", "container"):
        return f"write {chunks.NUMBER} among its arguments where each task finds its number."
    return "ask for as many."


def _inputs(raw: object) -> tuple[tuple[str, UUID], ...] | TaskObjection:
    if not isinstance(raw, dict) or len(raw) > INPUTS_MAX:
        return malformed(f"inputs must be an object of at most {INPUTS_MAX} names, each with an artefact's id.")
    if not all(isinstance(artefact_id, str) and _ID.fullmatch(artefact_id) for artefact_id in raw.values()):
        return malformed("Each input must be an artefact's id: `tidemill artefacts list` shows yours.")
    inputs = tuple((str(name), UUID(artefact_id)) for name, artefact_id in raw.items())
    if not all(NAME.fullmatch(name) for name, _ in inputs):
        return malformed("An input's name must be 1 to 100 letters, digits, dots, hyphens and underscores.")
    return inputs


def _hourly(raw: object) -> int | TaskObjection | None:
    """The most that a device-hour may cost; of a range only the upper end matters."""
    if raw is None:
        return None
    read = range_of(raw, PLAIN)
    high_uc = None if read is None or read.high is None else micro_credits(read.high)
    if high_uc is None or isinstance(high_uc, MoneyRefusal):
        return malformed("hourly must be the most credits that a device-hour may cost, such as 2.5 or ..2.5.")
    return high_uc


def _expected(raw: object) -> tuple[bytes, ...] | TaskObjection:
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(text, str) and _SHA256.fullmatch(text) for text in texts):
        return malformed(
            "expected must be the SHA-256 of each task's result, 64 hexadecimal digits in lower case each."
        )
    return tuple(bytes.fromhex(text) for text in texts)


def _sure(read: Any) -> Any:
    assert not isinstance(read, TaskObjection), "what is wrong was told before"
    return read
