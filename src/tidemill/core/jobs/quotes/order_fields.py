"""The fields of an order: how each is read, and what it may hold as JSON schema. One declaration for both.

A reader answers with the value or with a sentence that says what the field must be. A schema allows everything that a
reader takes; bounds of quantities written as text, such as 24GB, only the reader knows.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tidemill.core.jobs.kinds.task_body import INPUTS_MAX, NAME, Priority
from tidemill.core.jobs.quotes.quantities import MEBIBYTES, PLAIN, TIME, Range, amount, range_of
from tidemill.core.jobs.results import is_reader
from tidemill.core.money import MoneyRefusal, micro_credits
from tidemill.core.nodes.machine.gpu_names import models_called
from tidemill.core.nodes.rules.rule_book import LABEL, LABEL_MAX, LABELS_MAX
from tidemill.core.placement.demand import HOUSE
from tidemill.core.references import refused_name

NAME_MAX = 100
DEADLINE_S = (60, 90 * 24 * 3600)
MEMORY_MAX_MIB = 4 * 1024 * 1024
GPUS_MAX = 16
NAMED_MAX = 16
"""How many models or regions an order may name."""

AVOIDED_MAX = 64
REPUTATION_MAX = 100

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_POLICY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)

NUMBER = r"[0-9]{1,18}(\.[0-9]{1,9})?"
SIZE = rf"{NUMBER} {{0,3}}([KkMmGgTt]?[Ii]?[Bb])?"
_CREDITS = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"}]}

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Misread:
    """Why a field cannot be read: what it must be."""

    sentence: str


@dataclass(frozen=True)
class OrderField:
    """One field. `usual` stands where it is left out or null, unless it is needed."""

    name: str
    read: Callable[[Any], Any]
    schema: Schema
    about: str
    usual: Any = None
    is_needed: bool = False


def _one_or_list(item: Schema, most: int) -> Schema:
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "maxItems": most}]}


def either(number: Schema, pattern: str) -> Schema:
    """A number, or a text of that pattern."""
    return {"anyOf": [number, {"type": "string", "pattern": f"^{pattern}$"}]}


def _range(end: str) -> str:
    """The pattern of a range: one amount, or two dots with an amount on one side at least."""
    return rf"({end}|{end}\.\.({end})?|\.\.{end})"


def _name(raw: object) -> str | Misread:
    fits = isinstance(raw, str) and len(raw) <= NAME_MAX and raw.isprintable()
    if not fits:
        return Misread(f"name must be a text of at most {NAME_MAX} printable characters.")
    refusal = refused_name(str(raw)) if raw else None
    return str(raw) if refusal is None else Misread(refusal.sentence)


def _priority(raw: object) -> Priority | Misread:
    is_one = isinstance(raw, str) and raw in list(Priority)
    return Priority(str(raw)) if is_one else Misread(f"priority must be one of {', '.join(Priority)}.")


def _budget(raw: object) -> int | Misread:
    budget_uc = micro_credits(raw)
    if isinstance(budget_uc, MoneyRefusal):
        return Misread(f"max_budget cannot be read. {budget_uc.sentence}")
    return budget_uc or Misread("max_budget must be above zero.")


def _deadline(raw: object) -> int | Misread:
    deadline_s = amount(raw, TIME)
    if deadline_s is None or not DEADLINE_S[0] <= deadline_s <= DEADLINE_S[1]:
        return Misread("deadline must be a time such as 2h, from 1m to 90d, counted from when the job is confirmed.")
    return int(deadline_s)


def _memory(raw: object) -> tuple[int, int | None] | Misread:
    """What a machine must have at least; and at most, if a range says so."""
    limits = range_of(raw, MEBIBYTES)
    if limits is None or (limits.low or 0) > MEMORY_MAX_MIB:
        return Misread(f"memory must be a size or a range such as 24GB.. or 8GB..64GB, up to {MEMORY_MAX_MIB:,} MiB.")
    high = limits.high if isinstance(raw, str) and ".." in raw else None
    return int(limits.low or 0), None if high is None else int(high)


def _tasks(raw: object) -> Range | Misread:
    read = range_of(raw, PLAIN)
    if read is None or any(end is not None and (end != int(end) or end < 1) for end in (read.low, read.high)):
        return Misread("tasks must be a whole number or a range such as 1..16.")
    return read


def _hourly(raw: object) -> int | Misread:
    """The most that a device-hour may cost; of a range only the upper end matters."""
    read = range_of(raw, PLAIN)
    high_uc = None if read is None or read.high is None else micro_credits(read.high)
    if high_uc is None or isinstance(high_uc, MoneyRefusal):
        return Misread("hourly must be the most credits that a device-hour may cost, such as 2.5 or ..2.5.")
    return high_uc


def _inputs(raw: object) -> tuple[tuple[str, UUID], ...] | Misread:
    if not isinstance(raw, dict) or len(raw) > INPUTS_MAX:
        return Misread(f"inputs must be an object of at most {INPUTS_MAX} names, each with an artefact's id.")
    if not all(isinstance(artefact_id, str) and _ID.fullmatch(artefact_id) for artefact_id in raw.values()):
        return Misread("Each input must be an artefact's id: `tidemill artefacts list` shows yours.")
    if not all(isinstance(name, str) and NAME.fullmatch(name) for name in raw):
        return Misread("An input's name must be 1 to 100 letters, digits, dots, hyphens and underscores.")
    return tuple((name, UUID(artefact_id)) for name, artefact_id in raw.items())


def _expected(raw: object) -> tuple[bytes, ...] | Misread:
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not all(isinstance(text, str) and _SHA256.fullmatch(text) for text in texts):
        return Misread("expected must be the SHA-256 of each task's result, 64 hexadecimal digits in lower case each.")
    return tuple(bytes.fromhex(text) for text in texts)


def read_key(raw: object) -> bytes | Misread:
    """The customer's public key. A key with which anybody could open the result is refused."""
    key = urlsafe_b64decode(raw + "=") if isinstance(raw, str) and _KEY.fullmatch(raw) else b""
    if not is_reader(key):
        return Misread("result_key must be an X25519 public key: 32 bytes in base64url, 43 characters.")
    return key


def _gpu_count(raw: object) -> int | Misread:
    fits = isinstance(raw, int) and not isinstance(raw, bool) and 1 <= raw <= GPUS_MAX
    return int(str(raw)) if fits else Misread(f"gpu_count must be a whole number from 1 to {GPUS_MAX}.")


def _gpu_memory(raw: object) -> int | Misread:
    least = range_of(raw, MEBIBYTES)
    if least is None or least.low is None or not 1 <= least.low <= MEMORY_MAX_MIB:
        return Misread("gpu_memory must be the least memory of each GPU, such as 24GB.")
    return int(least.low)


def _gpu_models(raw: object) -> frozenset[str] | Misread:
    """Every name that a model goes by in the catalogue; one that is not in it is taken as it is written."""
    names = _texts(raw, NAMED_MAX, LABEL_MAX)
    if names is None:
        return Misread(f"gpu_models must be a model such as RTX 4090, or a list of at most {NAMED_MAX}.")
    return frozenset(model for name in names for model in models_called(name) or {name})


def _regions(raw: object) -> frozenset[str] | Misread:
    names = _texts(raw, NAMED_MAX, LABEL_MAX)
    if names is None:
        return Misread(f"regions must be a region, or a list of at most {NAMED_MAX}, as owners of nodes name them.")
    return frozenset(names)


def _labels(raw: object) -> frozenset[str] | Misread:
    labels = _texts(raw, LABELS_MAX, LABEL_MAX)
    if labels is None or not all(LABEL.fullmatch(label) for label in labels):
        return Misread(f"labels must be a label such as rack=7, or a list of at most {LABELS_MAX}.")
    if HOUSE in labels:
        return Misread(f"labels cannot ask for {HOUSE}: the house checks results, and takes work when nobody else can.")
    return frozenset(labels)


def _reputation(raw: object) -> int | Misread:
    """Shown as 0.0 to 100.0, and kept as thousandths."""
    read = amount(raw, PLAIN)
    if read is None or read > REPUTATION_MAX or read * 10 != int(read * 10):
        return Misread("reputation must be the least reputation of an owner, from 0 to 100, such as 60 or 62.5.")
    return int(read * 10)


def _nvlink(raw: object) -> bool | Misread:
    return raw if isinstance(raw, bool) else Misread("nvlink must be true or false.")


def _policy(raw: object) -> str | Misread:
    fits = isinstance(raw, str) and _POLICY.fullmatch(raw)
    return str(raw) if fits else Misread("policy must be the name of a policy, such as value or trusted.")


def _avoid(raw: object) -> frozenset[UUID] | Misread:
    ids = _texts(raw, AVOIDED_MAX, LABEL_MAX)
    if ids is None or not all(_ID.fullmatch(node_id) for node_id in ids):
        return Misread(
            f"avoid must be a node's id, or a list of at most {AVOIDED_MAX}: `tidemill jobs why JOB --json` shows "
            "those of a job."
        )
    return frozenset(map(UUID, ids))


def _texts(raw: object, most: int, longest: int) -> Collection[str] | None:
    """One text, or a list of a few."""
    texts = [raw] if isinstance(raw, str) else raw
    if not isinstance(texts, list) or not 0 < len(texts) <= most:
        return None
    fits = all(isinstance(text, str) and 0 < len(text) <= longest and text.isprintable() for text in texts)
    return texts if fits else None


_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": LABEL_MAX}
_SIZES = either({"type": "number", "minimum": 0, "maximum": MEMORY_MAX_MIB}, _range(SIZE))

OF_ALL = (
    OrderField("name", _name, {"type": "string", "maxLength": NAME_MAX}, "What you call the job.", ""),
    OrderField("priority", _priority, {"enum": list(Priority)}, "How urgent it is.", Priority.NORMAL),
    OrderField(
        "max_budget", _budget, _CREDITS, "The most that it may cost, in credits; above, it cannot be confirmed."
    ),
    OrderField(
        "deadline",
        _deadline,
        either({"type": "number", "minimum": 60, "maximum": DEADLINE_S[1]}, rf"{NUMBER} {{0,3}}([Mm][Ss]|[SsMmHhDd])?"),
        "When it must be done, counted from when it is confirmed, such as 2h.",
    ),
)
"""The fields of every order."""

OF_NODES = (
    OrderField(
        "gpu_count",
        _gpu_count,
        {"type": "integer", "minimum": 1, "maximum": GPUS_MAX},
        "How many GPUs each task has; 1 where another field asks for a GPU.",
    ),
    OrderField(
        "gpu_models",
        _gpu_models,
        _one_or_list(_TEXT, NAMED_MAX),
        "GPUs of one of these models, such as RTX 4090.",
        frozenset[str](),
    ),
    OrderField("gpu_memory", _gpu_memory, _SIZES, "The least memory of each GPU, such as 24GB.", 0),
    OrderField("nvlink", _nvlink, {"type": "boolean"}, "Only GPUs that NVLink joins.", False),
    OrderField("memory", _memory, _SIZES, "The least memory of the machine, such as 16GB.", (0, None)),
    OrderField(
        "regions",
        _regions,
        _one_or_list(_TEXT, NAMED_MAX),
        "Only nodes in one of these regions, as their owners name them. The house may check results elsewhere.",
        frozenset[str](),
    ),
    OrderField(
        "labels",
        _labels,
        _one_or_list({**_TEXT, "pattern": f"^{LABEL.pattern}$"}, LABELS_MAX),
        "Only nodes with all of these labels, such as rack=7.",
        frozenset[str](),
    ),
    OrderField(
        "reputation",
        _reputation,
        either({"type": "number", "minimum": 0, "maximum": REPUTATION_MAX}, r"[0-9]{1,3}(\.[0-9])?"),
        "The least reputation of the owner, from 0 to 100.",
        0,
    ),
    OrderField(
        "hourly",
        _hourly,
        either({"type": "number", "minimum": 0}, _range(NUMBER)),
        "The most that a device-hour may cost, in credits.",
    ),
    OrderField(
        "policy",
        _policy,
        {"type": "string", "pattern": f"^{_POLICY.pattern}$"},
        "By which of the pool's policies a node is chosen: value, trusted, fast, packed, or one that it has installed.",
        "",
    ),
    OrderField(
        "avoid",
        _avoid,
        _one_or_list(_TEXT, AVOIDED_MAX),
        "Nodes that must not get it, by their ids.",
        frozenset[UUID](),
    ),
)
"""What an order asks of nodes."""

OF_TASKS = (
    OrderField(
        "inputs",
        _inputs,
        {
            "type": "object",
            "maxProperties": INPUTS_MAX,
            "propertyNames": {"pattern": f"^{NAME.pattern}$"},
            "additionalProperties": {"type": "string"},
        },
        "What the tasks read: a name, and an artefact's id. In a job file the path of a file will do.",
        (),
    ),
    OrderField(
        "tasks",
        _tasks,
        either({"type": "integer", "minimum": 1}, _range("[0-9]{1,9}")),
        "How many tasks it is divided into, or a range such as 4..16; as it suits where it is left out.",
    ),
    OrderField(
        "expected",
        _expected,
        {"anyOf": [item := {"type": "string", "pattern": "^[0-9a-f]{64}$"}, {"type": "array", "items": item}]},
        "The SHA-256 of each task's result, if you know it.",
        (),
    ),
    OrderField(
        "result_key",
        read_key,
        {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"},
        "An X25519 public key: results are sealed to it.",
    ),
)
"""The other fields of an order that has tasks."""
