"""Parameters of a task, as a customer wrote them, read into the dataclass that a kind keeps them in.

A field that the kind does not know is refused, since it is misspelt: somebody meant something by it. Nothing that was
written is repeated.
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
    for where, known in _unknown(shape, parameters, ""):
        return malformed(f"{where or 'The task'} has a field that is not known; it may have {known}.")
    return read


def malformed(figures: str) -> TaskObjection:
    return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, figures)


def too_large(figures: str) -> TaskObjection:
    return TaskObjection(KindRefusal.WORK_TOO_LARGE, figures)


def _unknown(shape: Any, value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Every place with a field that its dataclass does not have, and those it has."""
    shape = _inner(shape)
    if isinstance(value, list) and get_origin(shape) is tuple:
        for place, item in enumerate(value):
            yield from _unknown(get_args(shape)[0], item, f"{where}[{place}]")
    elif isinstance(value, Mapping) and is_dataclass(shape):
        hints = _hints(cast(Any, shape))
        if value.keys() - hints.keys():
            yield where, ", ".join(hints)
        for name in hints.keys() & value.keys():
            yield from _unknown(hints[name], value[name], f"{where}.{name}" if where else name)


def _inner(shape: Any) -> Any:
    """A type without its bound and without None."""
    while get_origin(shape) in (Annotated, Union, UnionType):
        shape = get_args(shape)[0]
    return shape


@cache
def _hints(shape: Any) -> dict[str, Any]:
    hints = get_type_hints(shape, include_extras=True)
    return {field.name: hints[field.name] for field in fields(shape)}
