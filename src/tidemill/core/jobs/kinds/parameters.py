"""Parameters of a task, as a customer wrote them, read into the dataclass that a kind keeps them in.

An unknown field is refused, since it is probably misspelt. Everything that is wrong is told at once, and refusals
repeat nothing that the customer wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tidemill.core.bounded_json import WHOLE, read_wholly
from tidemill.core.jobs.kinds.kind import FieldError, KindRefusal, TaskObjection

PARAMETERS = "parameters"
"""The field of an order below which these are."""

ERRORS_MAX = 20
"""How many errors of one order are told, each with its field; so much more would help nobody."""

TOLD_AT_ONCE = 3
"""How many of them stand in the sentence."""

T = TypeVar("T")


def read_parameters(shape: type[T], parameters: Mapping[str, object]) -> T | TaskObjection:
    """The work that the parameters describe, every field within its bounds."""
    read, misfits = read_wholly(shape, dict(parameters))
    strange = [
        FieldError(_below(path), f"{path or 'The task'} has a field that is not known; it may have {known_fields}.")
        for path, known_fields in islice(_unknown(shape, parameters, ""), ERRORS_MAX)
    ]
    errors = [*(FieldError(_below(misfit.where), misfit.sentence) for misfit in misfits), *strange]
    if errors:
        return objection_of(errors)
    assert read is not None, "what has no misfit was read"
    return read


def malformed(figures: str, at: str = "") -> TaskObjection:
    """A refusal of one of the parameters, or of all of them."""
    return TaskObjection(KindRefusal.PARAMETERS_MALFORMED, figures, (FieldError(_below(at), figures),))


def too_large(figures: str, at: str = "") -> TaskObjection:
    return TaskObjection(KindRefusal.WORK_TOO_LARGE, figures, (FieldError(_below(at), figures),))


def objection_of(
    errors: Sequence[FieldError], refusal: KindRefusal = KindRefusal.PARAMETERS_MALFORMED
) -> TaskObjection:
    """A refusal of all that is wrong, the first of it in figures."""
    told = errors[:ERRORS_MAX]
    figures = " ".join(error.sentence for error in told[:TOLD_AT_ONCE])
    more = len(errors) - min(len(told), TOLD_AT_ONCE)
    return TaskObjection(refusal, f"{figures} And {more} more." if more else figures, tuple(told))


def _below(path: str) -> str:
    return f"{PARAMETERS}.{path}" if path and path != WHOLE else PARAMETERS


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
