"""A kind of setting: how its values are read, shown and bounded.

A kind reads a value of a TOML file or a text of the environment, and shows a value as a text that reads back to it.
An unreadable value is refused with a reason; a reason never repeats a value that may be a secret.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class UnreadableValue:
    """A value of the wrong type or form. Without a reason, the accepted form says enough."""

    reason: str = ""


@dataclass(frozen=True)
class SettingKind(Generic[T]):
    """One way of writing values."""

    name: str
    accepts: str  # ends the sentence "it must be …"
    read: Callable[[object], T | UnreadableValue]
    show: Callable[[T], str]
    unit: str = ""  # the unit outside, in files and on pages
    suffix: str = ""  # the unit inside, which ends the field's name but is not part of the setting's name
    spoken: bool = True  # whether a TOML file may also write it as a text
    low: T | None = None
    high: T | None = None
    mask: Callable[[T], str] | None = None  # set where a value may contain a secret: shows it without


def read_from_file(kind: SettingKind[T], raw: object) -> T | UnreadableValue:
    """TOML has its own numbers and booleans: a text instead of one is a mistake, and we do not guess."""
    if isinstance(raw, str) and not kind.spoken:
        return UnreadableValue("that is a text in quotation marks")
    return kind.read(raw)


def shown(kind: SettingKind[T], value: T | None) -> str:
    """A value as people may see it: secrets masked."""
    if value is None:
        return "not set"
    return kind.mask(value) if kind.mask else kind.show(value) or "none"
