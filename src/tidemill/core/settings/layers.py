"""Where values come from: defaults, then a TOML file, then the environment, then the command line; the last one wins.

Every value is read, even one that a later source overrides, and every problem is a sentence that names the setting, the
source, the mistake and the allowed values. No sentence contains a secret's value.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from tidemill.core.settings.definition import PREFIX, Definition
from tidemill.core.settings.kinds.kind import UnreadableValue, read_from_file
from tidemill.core.settings.tree import by_name, catalogue, sections

CONFIG_VARIABLE = "TIDEMILL_CONFIG"  # where the TOML file is; the caller reads it, so it is no setting
QUOTED_MOST = 60


class SourceKind(StrEnum):
    """The kinds of sources of values, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"


@dataclass(frozen=True)
class SettingSource:
    """Where one value came from: the kind of source, and the file's or the variable's name."""

    kind: SourceKind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


DEFAULT = SettingSource(SourceKind.DEFAULT)
COMMAND_LINE = SettingSource(SourceKind.COMMAND_LINE)


@dataclass(frozen=True)
class RawSetting:
    """A value as somebody wrote it, under the name they used."""

    name: str
    raw: object
    source: SettingSource


@dataclass(frozen=True)
class SettingValue:
    """A value that was read and lies within its bounds."""

    definition: Definition
    value: object
    source: SettingSource


@dataclass(frozen=True)
class SettingProblem:
    """What is wrong with one value, in a sentence, and which setting is therefore in doubt."""

    name: str
    sentence: str


def from_file(toml: Mapping[str, object], file_name: str) -> Iterator[RawSetting]:
    """The settings of a TOML file, those of a table under dotted names."""
    source = SettingSource(SourceKind.FILE, file_name)
    for key, raw in toml.items():
        if isinstance(raw, Mapping) and (raw or key in sections()):
            yield from (RawSetting(f"{key}.{inner}", value, source) for inner, value in raw.items())
        else:
            yield RawSetting(key, raw, source)


def from_environment(environment: Mapping[str, str], reserved: Collection[str]) -> Iterator[RawSetting]:
    """The settings among the environment's variables; those of other programs are ignored."""
    ours = {definition.environment_name: definition.name for definition in catalogue()}
    for variable, raw in environment.items():
        if variable.startswith(PREFIX) and variable != CONFIG_VARIABLE and variable not in reserved:
            yield RawSetting(ours.get(variable, variable), raw, SettingSource(SourceKind.ENVIRONMENT, variable))


def from_command_line(overrides: Mapping[str, object]) -> Iterator[RawSetting]:
    """The flags that are set; an unset flag is None."""
    return (RawSetting(name, raw, COMMAND_LINE) for name, raw in overrides.items() if raw is not None)


def read(raw_settings: Iterable[RawSetting]) -> tuple[dict[str, SettingValue], list[SettingProblem]]:
    """The valid values, where later sources win, and all problems."""
    values: dict[str, SettingValue] = {}
    problems: list[SettingProblem] = []
    for setting in raw_settings:
        outcome = _read_one(setting)
        if isinstance(outcome, SettingProblem):
            problems.append(outcome)
        else:
            values[setting.name] = outcome
    return values, problems


def _read_one(setting: RawSetting) -> SettingValue | SettingProblem:
    definition = by_name().get(setting.name)
    if definition is None:
        return SettingProblem(setting.name, _unknown(setting))
    if definition.optional and setting.raw == "":
        return SettingValue(definition, None, setting.source)
    kind = definition.kind
    value = read_from_file(kind, setting.raw) if setting.source.kind is SourceKind.FILE else kind.read(setting.raw)
    if isinstance(value, UnreadableValue):
        return SettingProblem(setting.name, _refused(definition, setting, value.reason))
    if not definition.within_bounds(value):
        return SettingProblem(setting.name, _refused(definition, setting, "that is out of bounds"))
    return SettingValue(definition, value, setting.source)


def _refused(definition: Definition, setting: RawSetting, reason: str) -> str:
    written = "cannot be used" if definition.secret else f"is {_quoted(setting.raw)}"
    why = f"{reason}; " if reason else ""
    return f"{definition.name} ({setting.source}) {written}: {why}it must be {definition.allowed()}."


def _quoted(raw: object) -> str:
    text = f'"{raw}"' if isinstance(raw, str) else "a table" if isinstance(raw, Mapping) else str(raw)
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return text if len(text) <= QUOTED_MOST else text[:QUOTED_MOST] + "…"


def _unknown(setting: RawSetting) -> str:
    if setting.name in sections():
        return f"{setting.name} ({setting.source}) is a section: write [{setting.name}] and its settings below it."
    # The common prefix of all variables must not make them look alike.
    prefix = PREFIX if setting.source.kind is SourceKind.ENVIRONMENT else ""
    names = [(d.environment_name if prefix else d.name).removeprefix(prefix) for d in catalogue()]
    nearest = get_close_matches(setting.name.removeprefix(prefix), names, n=1)
    advice = f"did you mean {prefix}{nearest[0]}?" if nearest else "`tidemill config` lists all there are."
    source = setting.source.kind if prefix else setting.source
    return f"{_quoted(setting.name)} ({source}) is no setting: {advice}"
