"""Parameters of a task, as a customer wrote them, read into the dataclass that a kind keeps them in.

An unknown field is refused, since it is probably misspelt. Refusals repeat nothing that the customer wrote.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tidemill.core.bounded_json import Malformed, read_value
from tidemill.core.jobs.kinds.kind import KindRefusal, TaskObjection

T = TypeVar("T")


def read_parameters(shape: type[T], parameters: Mapping[str, object]) -> T | TaskObjection:
    """The work that the parameters describe, every field within its bounds."""
    read = read_value(shape, dict(parameters))
    if isinstance(read, Malformed):
        return malformed(read.sentence)
    for path, known_fields in _unknown(shape, parameters, ""):
        return malformed(f"{path or 'The task'} has a field that is not known; it may have {known_fields}.")
    return read


def malformed(figures: str) -> TaskObjection:
    return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, figures)


def too_large(figures: str) -> TaskObjection:
    return TaskObjection(KindRefusal.WORK_TOO_LARGE, figures)


def _unknown(shape: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    """The path of every object with unknown fields, and the fields that it may have."""
    shape = _inner(shape)
    if isinstance(value, list) and get_origin(shape) is tuple:
        for index, item in enumerate(value):
            yield from _unknown(get_args(shape)[0], item, f"{path}[{index}]")
    elif isinstance(value, Mapping) and is_dataclass(shape):
        hints = _hints(cast(Any, shape))
        if value.keys() - hints.keys():
            yield path, ", ".join(hints)
        for name in hints.keys() & value.keys():
            yield from _unknown(hints[name], value[name], f"{path}.{name}" if path else name)


def _inner(shape: Any) -> Any:
    """A type without its bound and without None."""
    while get_origin(shape) in (Annotated, Union, UnionType):
        shape = get_args(shape)[0]
    return shape


@cache
def _hints(shape: Any) -> dict[str, Any]:
    hints = get_type_hints(shape, include_extras=True)
    return {field.name: hints[field.name] for field in fields(shape)}
