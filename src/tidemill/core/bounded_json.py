"""JSON from a stranger, read into frozen dataclasses whose fields say how much they hold.

A field's type is its bound: `Annotated[int, Whole(0, 64)]`, `Annotated[str, Text(100)]`, a truth value, an enum,
another dataclass, any of them or None, and `Annotated[tuple[X, ...], Most(64)]`. A value that was read fits every
bound and can be stored and, except for `Prose`, shown as it is. A field with a default may be missing; we skip fields
that we do not know, since newer peers may send them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

WHOLE = "The body"
"""How everything together is called."""

MISFITS_MAX = 32
"""How many values that do not fit are told of one body."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True)
class Text:
    """At most so many printable characters."""

    most: int


@dataclass(frozen=True)
class Prose:
    """At most so many bytes in UTF-8, of any characters: a program, or somebody's text."""

    most_bytes: int


@dataclass(frozen=True)
class Most:
    """At most so many items."""

    most: int


@dataclass(frozen=True)
class About:
    """What a field means, for whoever fills it in. It bounds nothing."""

    sentence: str


@dataclass(frozen=True)
class Malformed:
    """What does not fit: a path of our own field names, and what the value must be. It quotes nothing that was sent."""

    where: str
    expected: str

    @property
    def sentence(self) -> str:
        return f"{self.where} must be {self.expected}."


def read_json(kind: type[T], body: bytes, most_bytes: int) -> T | Malformed:
    """The value that a body encodes."""
    parsed = parse_json(body, most_bytes)
    return parsed if isinstance(parsed, Malformed) else read_value(kind, parsed)


def parse_json(body: bytes, most_bytes: int) -> object | Malformed:
    """The JSON in a body, of any shape."""
    if len(body) > most_bytes:
        return Malformed("The body", f"at most {most_bytes:,} bytes")
    try:
        parsed: object = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Malformed("The body", "JSON in UTF-8")
    return parsed


def read_value(kind: type[T], parsed: object) -> T | Malformed:
    """The value that parsed JSON encodes."""
    value, misfits = read_wholly(kind, parsed)
    return misfits[0] if value is None else value


def read_wholly(kind: type[T], parsed: object) -> tuple[T | None, Sequence[Malformed]]:
    """The value that parsed JSON encodes, or everything that does not fit, up to a bound."""
    try:
        value: T = _read(kind, parsed, "")
    except _Misfit as misfit:
        return None, misfit.every
    return value, ()


def json_bytes(value: object) -> bytes:
    """The inverse. Fields that are None are left out."""
    return json.dumps(plain_value(value), ensure_ascii=False, separators=(",", ":")).encode()


class _Misfit(Exception):
    def __init__(self, *every: Malformed) -> None:
        super().__init__(every[0].where)
        self.every = every


def _read(kind: Any, value: Any, path: str) -> Any:
    if get_origin(kind) in (UnionType, Union):
        return None if value is None else _read(get_args(kind)[0], value, path)
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        bounds = [note for note in notes if not isinstance(note, About)]
        return _bounded(inner, bounds[0], value, path) if bounds else _read(inner, value, path)
    if is_dataclass(kind):
        return _read_fields(kind, value, path)
    if kind is bool:
        return _checked(value, isinstance(value, bool), path, "true or false")
    return _read_choice(kind, value, path)


def _bounded(inner: Any, bound: Whole | Text | Prose | Most, value: Any, path: str) -> Any:
    match bound:
        case Whole(low, high):
            fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
            return _checked(value, fits, path, f"a whole number from {low:,} to {high:,}")
        case Text(most):
            fits = isinstance(value, str) and len(value) <= most and value.isprintable()
            return _checked(value, fits, path, f"a text of at most {most} printable characters")
        case Prose(most):
            return _checked(value, _is_prose(value, most), path, f"a text of at most {most:,} bytes in UTF-8")
        case Most(most):
            _checked(value, isinstance(value, list) and len(value) <= most, path, f"a list of at most {most}")
            item_kind = get_args(inner)[0]
            return tuple(_each((item_kind, item, f"{path}[{index}]") for index, item in enumerate(value)))


def _is_prose(value: Any, most_bytes: int) -> bool:
    """A lone surrogate is no character, though JSON can encode it."""
    try:
        return isinstance(value, str) and len(value) <= most_bytes and len(value.encode()) <= most_bytes
    except UnicodeEncodeError:
        return False


def _read_fields(kind: Any, value: Any, path: str) -> Any:
    _checked(value, isinstance(value, dict), path, "an object")
    paths = {name: f"{path}.{name}" if path else name for name in _hints(kind)}
    missing = [
        Malformed(paths[name], "there")
        for name, (_, required) in _hints(kind).items()
        if required and name not in value
    ]
    there = [name for name in paths if name in value]
    values = _each(((_hints(kind)[name][0], value[name], paths[name]) for name in there), missing)
    return kind(**dict(zip(there, values, strict=True)))


def _each(members: Iterable[tuple[Any, Any, str]], missing: Sequence[Malformed] = ()) -> list[Any]:
    """Every member of an object or a list; all that do not fit are told together."""
    values, misfits = [], list(missing)
    for kind, value, path in members:
        try:
            values.append(_read(kind, value, path))
        except _Misfit as misfit:
            misfits.extend(misfit.every)
            if len(misfits) >= MISFITS_MAX:
                break
    if misfits:
        raise _Misfit(*misfits[:MISFITS_MAX])
    return values


def _read_choice(kind: type[Enum], value: Any, path: str) -> Any:
    choices = [str(member.value) for member in kind]
    _checked(value, isinstance(value, str) and value in choices, path, f"one of {', '.join(choices)}")
    return kind(value)


def _checked(value: Any, fits: bool, path: str, expected: str) -> Any:
    if not fits:
        raise _Misfit(Malformed(path or WHOLE, expected))
    return value


@cache
def _hints(kind: Any) -> Mapping[str, tuple[Any, bool]]:
    """Each field's type, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    }


def plain_value(value: Any) -> Any:
    """A value as JSON has it. Fields that are None are left out."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    if is_dataclass(value):
        pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: plain_value(item) for name, item in pairs if item is not None}
    return value


def _no_constant(name: str) -> None:
    raise ValueError(name)
