"""Parameters of a task, as a customer wrote them, read into the dataclass that a kind keeps them in.

An unknown field is refused, since it is probably misspelt. Everything that is wrong is told at once; of what the
customer wrote, refusals repeat only the names of unknown fields, cut to a printable word.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
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

NAME_MAX = 40
"""How much of an unknown field's name is repeated."""

TOLD_AT_ONCE = 3
"""How many of them stand in the sentence."""

T = TypeVar("T")


def read_parameters(shape: type[T], parameters: Mapping[str, object]) -> T | TaskObjection:
    """The work that the parameters describe, every field within its bounds."""
    read, misfits = read_wholly(shape, dict(parameters))
    strange = [
        FieldError(_below(_joined(path, name)), unknown_field(path or "The task", name, known))
        for path, name, known in islice(_unknown(shape, parameters, ""), ERRORS_MAX)
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


def with_known_names(shape: Any, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """The parameters as they were probably meant: misspelt names corrected, and other unknown ones left out."""
    known = _hints(shape)
    meant = {name: value for name, value in parameters.items() if name in known}
    for name in parameters.keys() - known.keys():
        for near in get_close_matches(str(name)[:NAME_MAX], known, 1):
            meant.setdefault(near, parameters[name])
    return meant


def unknown_field(owner: str, name: str, known: Collection[str]) -> str:
    """What to tell of a field that is not known: its name, and what it may have been meant to be."""
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"it may have {', '.join(known)}."
    return f"{owner} has a field that is not known, {name!r}; {hint}"


def _below(path: str) -> str:
    return f"{PARAMETERS}.{path}" if path and path != WHOLE else PARAMETERS


def _joined(path: str, name: str) -> str:
    """The path of an unknown field; where its name cannot be shown, of what it is in."""
    if not name or not name.isprintable():
        return path
    return f"{path}.{name}" if path else name


def _unknown(shape: Any, value: Any, path: str) -> Iterator[tuple[str, str, Collection[str]]]:
    """The path of every object with unknown fields, each of these, and the fields that it may have."""
    shape = _inner(shape)
    if isinstance(value, list) and get_origin(shape) is tuple:
        for index, item in enumerate(value):
            yield from _unknown(get_args(shape)[0], item, f"{path}[{index}]")
    elif isinstance(value, Mapping) and is_dataclass(shape):
        hints = _hints(cast(Any, shape))
        for name in sorted(map(str, value.keys() - hints.keys()))[:ERRORS_MAX]:
            yield path, name[:NAME_MAX], list(hints)
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
