"""Where values come from: defaults, then a TOML file, then the environment, then the command line; the last one wins.

Every value is read, also one that a later place overrides, and every problem is a sentence that names the setting,
the place, what is wrong and what is allowed. A secret's value is in no sentence.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from tidemill.core.settings.definition import PREFIX, Definition
from tidemill.core.settings.kinds.kind import Unreadable, read_from_file
from tidemill.core.settings.tree import by_name, catalogue, sections

CONFIG_VARIABLE = "TIDEMILL_CONFIG"  # where the TOML file is; the caller reads it, so it is no setting
QUOTED_MOST = 60


class Place(StrEnum):
    """The kinds of places a value may come from, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Source:
    """Where one value came from: the place, and the file's or the variable's name."""

    place: Place
    name: str = ""

    def __str__(self) -> str:
        return f"{self.place} {self.name}".rstrip()


DEFAULT = Source(Place.DEFAULT)
COMMAND_LINE = Source(Place.COMMAND_LINE)


@dataclass(frozen=True)
class Given:
    """A value as somebody wrote it, under the name they used."""

    name: str
    raw: object
    source: Source


@dataclass(frozen=True)
class Value:
    """A value that was read and lies within its bounds."""

    definition: Definition
    value: object
    source: Source


@dataclass(frozen=True)
class Problem:
    """What is wrong with one value, in a sentence, and which setting it leaves in doubt."""

    name: str
    sentence: str


def from_file(toml: Mapping[str, object], file_name: str) -> Iterator[Given]:
    """The settings of a TOML file, with those of a table under dotted names."""
    source = Source(Place.FILE, file_name)
    for key, raw in toml.items():
        if isinstance(raw, Mapping) and (raw or key in sections()):
            yield from (Given(f"{key}.{inner}", value, source) for inner, value in raw.items())
        else:
            yield Given(key, raw, source)


def from_environment(environment: Mapping[str, str], reserved: Collection[str]) -> Iterator[Given]:
    """The settings among the environment's variables; other programs' variables are none of our business."""
    ours = {definition.environment_name: definition.name for definition in catalogue()}
    for variable, raw in environment.items():
        if variable.startswith(PREFIX) and variable != CONFIG_VARIABLE and variable not in reserved:
            yield Given(ours.get(variable, variable), raw, Source(Place.ENVIRONMENT, variable))


def from_command_line(overrides: Mapping[str, object]) -> Iterator[Given]:
    """The flags that were given; a flag that was not is None."""
    return (Given(name, raw, COMMAND_LINE) for name, raw in overrides.items() if raw is not None)


def read(given: Iterable[Given]) -> tuple[dict[str, Value], list[Problem]]:
    """The values that hold, later places first, and everything that is wrong."""
    values: dict[str, Value] = {}
    problems: list[Problem] = []
    for one in given:
        outcome = _read_one(one)
        if isinstance(outcome, Problem):
            problems.append(outcome)
        else:
            values[one.name] = outcome
    return values, problems


def _read_one(given: Given) -> Value | Problem:
    definition = by_name().get(given.name)
    if definition is None:
        return Problem(given.name, _unknown(given))
    if definition.optional and given.raw == "":
        return Value(definition, None, given.source)
    kind = definition.kind
    value = read_from_file(kind, given.raw) if given.source.place is Place.FILE else kind.read(given.raw)
    if isinstance(value, Unreadable):
        return Problem(given.name, _refused(definition, given, value.reason))
    if not definition.within_bounds(value):
        return Problem(given.name, _refused(definition, given, "that is out of bounds"))
    return Value(definition, value, given.source)


def _refused(definition: Definition, given: Given, reason: str) -> str:
    written = "cannot be used" if definition.secret else f"is {_quoted(given.raw)}"
    why = f"{reason}; " if reason else ""
    return f"{definition.name} ({given.source}) {written}: {why}it must be {definition.allowed()}."


def _quoted(raw: object) -> str:
    text = f'"{raw}"' if isinstance(raw, str) else "a table" if isinstance(raw, Mapping) else str(raw)
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= QUOTED_MOST else text[:QUOTED_MOST] + "…"


def _unknown(given: Given) -> str:
    if given.name in sections():
        return f"{given.name} ({given.source}) is a section: write [{given.name}] and its settings below it."
    # What all variables have in common must not make them look alike.
    prefix = PREFIX if given.source.place is Place.ENVIRONMENT else ""
    known = [(d.environment_name if prefix else d.name).removeprefix(prefix) for d in catalogue()]
    nearest = get_close_matches(given.name.removeprefix(prefix), known, n=1)
    advice = f"did you mean {prefix}{nearest[0]}?" if nearest else "`tidemill config` lists all there are."
    where = given.source.place if prefix else given.source
    return f"{_quoted(given.name)} ({where}) is no setting: {advice}"
