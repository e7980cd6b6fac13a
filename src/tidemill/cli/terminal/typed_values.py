"""What a word on the command line means as a number, a choice, a path or an id.

Typer would read them with pydantic, which takes longer to load than most commands take to run, and speaks of types. It
still reads paths that have to exist.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import typer

PLACEHOLDERS: Mapping[type, str] = {
    str: "TEXT",
    int: "NUMBER",
    float: "NUMBER",
    Path: "FILE",
    UUID: "ID",
    datetime: "TIME",
}
"""What stands for a value in help, unless its parameter says something better."""

_WRONG: Mapping[type, str] = {
    int: "a whole number, such as 8",
    float: "a number, such as 2.5",
    UUID: "an id, such as 01a1e457-0baf-7960-a23e-15e98fca8080",
    datetime: "a time, such as 2026-05-17 or 2026-05-17T12:30",
}


def value_type(parameter: Any) -> Any:
    """The type of one value of a parameter; typer keeps it only here."""
    annotation = parameter.type_descriptor.annotation
    return (get_args(annotation) or (annotation,))[0]


def choices_of(parameter: Any) -> list[str]:
    kind = value_type(parameter)
    return [str(member.value) for member in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


class ValueReader:
    """Reads the values of one parameter. Typer calls `coerce`."""

    def __init__(self, kind: Callable[[str], Any]) -> None:
        self._kind = kind

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if param.multiple or param.nargs == -1:
            return tuple(self._read(one, param, ctx) for one in value or ())
        return None if value is None else self._read(value, param, ctx)

    def _read(self, value: Any, parameter: Any, context: Any) -> Any:
        kind: Any = self._kind
        try:
            read = value if isinstance(value, kind) else _read_time(value) if kind is datetime else kind(value)
        except ValueError:
            raise typer.BadParameter(f"{value!r} is not {_meant(parameter)}.", ctx=context, param=parameter) from None
        limits = (parameter.min, parameter.max)
        if isinstance(read, int | float) and not _within(read, *limits):
            raise typer.BadParameter(f"{value} is not {in_range(*limits)}.", ctx=context, param=parameter)
        return read


def read_leanly(parameter: Any) -> None:
    """Have a parameter's values read here, where its type is one that we know."""
    kind, wants = value_type(parameter), parameter.type_descriptor.parameter_info
    looks_at_disk = wants.exists or wants.writable or not (wants.file_okay and wants.dir_okay)
    if (kind in (bool, *PLACEHOLDERS) or choices_of(parameter)) and not looks_at_disk:
        reader = ValueReader(kind)
        parameter.get_runtime_param = lambda: reader


def in_range(low: float | None, high: float | None) -> str:
    """The bounds of a number in words; empty if it has none."""
    if low is not None and high is not None:
        return f"{low:,} to {high:,}"
    return f"at least {low:,}" if low is not None else f"at most {high:,}" if high is not None else ""


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _meant(parameter: Any) -> str:
    choices = choices_of(parameter)
    return f"one of {', '.join(choices)}" if choices else _WRONG.get(value_type(parameter), "a value for this")


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)
