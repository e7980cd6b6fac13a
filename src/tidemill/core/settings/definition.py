"""How a setting is defined: once, by a field of a frozen dataclass.

The field's default and bounds are written as an operator would write them and stored in the unit of the field's name; a
wrong definition fails when the module is imported. Everything else about a setting (its names outside, its page in the
reference, its reading and checking) follows from the field.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Required, TypedDict, TypeVar, Unpack, cast

from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue, shown

T = TypeVar("T")

PREFIX = "TIDEMILL_"

_SETTING = "setting"
_SECTION = "section"


class SettingScope(StrEnum):
    """Whether the processes of one pool may have different values."""

    PROCESS = "process"
    POOL = "pool"


# Marks a section among the fields of the tree, and gives the scope of its settings.
OF_PROCESS: Mapping[str, SettingScope] = MappingProxyType({_SECTION: SettingScope.PROCESS})
OF_POOL: Mapping[str, SettingScope] = MappingProxyType({_SECTION: SettingScope.POOL})


class SettingDetails(TypedDict, total=False):
    """What a definition may contain besides kind and default."""

    meaning: Required[str]
    unit: str  # where the kind has none of its own
    low: object
    high: object
    scope: SettingScope  # where it differs from the section's
    follows: str  # the setting whose value is taken when this one is not set
    critical: bool  # whether it moves money or trust, so that a change waits or needs two operators


@dataclass(frozen=True)
class Definition:
    """One setting. Default and bounds are in the internal unit; `default` is None where there is none."""

    name: str
    section: str
    attribute: str
    kind: SettingKind[Any]
    default: object
    low: Any
    high: Any
    unit: str
    meaning: str
    scope: SettingScope
    optional: bool
    follows: str | None
    critical: bool

    @property
    def environment_name(self) -> str:
        return PREFIX + self.name.upper().replace(".", "_")

    @property
    def secret(self) -> bool:
        return self.kind.mask is not None

    def bounds(self) -> str:
        """The bounds in words, empty where there are none."""
        low, high = (None if bound is None else shown(self.kind, bound) for bound in (self.low, self.high))
        if high is None:
            return "" if low is None else f"at least {low}"
        return f"from {low} to {high}"

    def allowed(self) -> str:
        """What may be written, as the end of "it must be …"."""
        return " ".join(part for part in (self.kind.accepts, self.bounds()) if part).rstrip(",")

    def within_bounds(self, value: Any) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def setting(kind: SettingKind[T], default: object, **details: Unpack[SettingDetails]) -> T:
    """A setting that has a value even when nobody sets it."""
    return field(default=_inside(kind, default), repr=kind.mask is None, metadata=_mark(kind, details))


def optional(kind: SettingKind[T], **details: Unpack[SettingDetails]) -> T | None:
    """A setting that may stay without a value."""
    return field(default=None, repr=kind.mask is None, metadata=_mark(kind, details))


def required(kind: SettingKind[T], **details: Unpack[SettingDetails]) -> T:
    """A setting whose default only the caller can know."""
    return cast(T, field(metadata=_mark(kind, details)))


def sections_of(root: type) -> dict[str, type]:
    """The class of each section, by its name."""
    return {member.name: _table(member) for member in _members(root) if _SECTION in member.metadata}


def definitions(root: type) -> list[Definition]:
    """Every setting of a tree of sections, in the order of its fields."""
    settings: list[Definition] = []
    for member in _members(root):
        if _SECTION in member.metadata:
            scope = member.metadata[_SECTION]
            settings += [_definition(inner, member.name, scope) for inner in _members(_table(member))]
        else:
            settings.append(_definition(member, "", SettingScope.PROCESS))
    return settings


def _members(table: type) -> tuple[Field[Any], ...]:
    assert is_dataclass(table), f"{table.__name__} holds settings and must be a dataclass"
    return fields(table)


def _table(member: Field[Any]) -> type:
    table: object = member.default_factory
    assert isinstance(table, type), f"the section {member.name} is made by its class"
    return table


def _definition(member: Field[Any], section_name: str, scope: SettingScope) -> Definition:
    kind, details = member.metadata[_SETTING]
    assert member.name.endswith(kind.suffix), f"{member.name} must carry its unit, {kind.suffix}"
    outside = member.name.removesuffix(kind.suffix)
    return Definition(
        name=f"{section_name}.{outside}" if section_name else outside,
        section=section_name,
        attribute=member.name,
        kind=kind,
        default=None if member.default is MISSING else member.default,
        low=_bound(kind, details.get("low"), kind.low),
        high=_bound(kind, details.get("high"), kind.high),
        unit=details.get("unit", kind.unit),
        meaning=details["meaning"],
        scope=details.get("scope", scope),
        optional=member.default is None,
        follows=details.get("follows"),
        critical=details.get("critical", False),
    )


def _mark(kind: SettingKind[T], details: SettingDetails) -> dict[str, object]:
    return {_SETTING: (kind, details)}


def _inside(kind: SettingKind[T], written: object) -> T:
    value = kind.read(written)
    assert not isinstance(value, UnreadableValue), f"{written!r} is no {kind.name}"
    return value


def _bound(kind: SettingKind[T], written: object, otherwise: T | None) -> T | None:
    return otherwise if written is None else _inside(kind, written)
