"""JSON schema of parameters: made of the declarations by which they are read, so that both say the same."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tidemill.core.bounded_json import About, Most, Prose, Text, Whole, plain_value

Schema = dict[str, Any]


def object_schema(kind: type) -> Schema:
    """A dataclass: an object with exactly its fields."""
    hints = get_type_hints(kind, include_extras=True)
    needed = [field.name for field in fields(kind) if _usual(field) is MISSING]
    schema: Schema = {
        "type": "object",
        "properties": {field.name: _with_default(hints[field.name], field) for field in fields(kind)},
        "additionalProperties": False,
    }
    return {**schema, "required": needed} if needed else schema


def value_schema(kind: Any) -> Schema:
    """Any declared type. What may be None may be left out, and is described without it."""
    if get_origin(kind) in (UnionType, Union):
        return value_schema(get_args(kind)[0])
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        schema = value_schema(inner) if get_origin(inner) is not tuple else {}
        for note in notes:
            schema |= _of_note(inner, note)
        return schema
    if is_dataclass(kind):
        return object_schema(kind)  # type: ignore[arg-type]  # a type, not a value
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [str(member.value) for member in kind]}
    return {"type": _TYPES[kind]}


_TYPES: Mapping[Any, str] = {bool: "boolean", int: "integer", str: "string"}


def _of_note(inner: Any, note: object) -> Schema:
    match note:
        case Whole(low, high):
            return {"minimum": low, "maximum": high}
        case Text(most) | Prose(most):
            return {"maxLength": most}
        case Most(most):
            return {"type": "array", "items": value_schema(get_args(inner)[0]), "maxItems": most}
        case About(sentence):
            return {"description": sentence}
    raise AssertionError(note)


def _with_default(hint: Any, field: "Field[Any]") -> Schema:
    usual = _usual(field)
    schema = value_schema(hint)
    return schema if usual is MISSING or usual is None else {**schema, "default": plain_value(usual)}


def _usual(field: "Field[Any]") -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
