"""Building the settings of a process, once, from all sources together.

Either everything is valid, or nothing is built and one fault lists every problem.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tidemill.core.faults import SettingsFault
from tidemill.core.settings.checks import broken
from tidemill.core.settings.layers import (
    DEFAULT,
    RawSetting,
    SettingSource,
    SettingValue,
    from_command_line,
    from_environment,
    from_file,
    read,
)
from tidemill.core.settings.tree import Settings, assemble, catalogue

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True)
class SourcedSettings:
    """The settings, and where each came from."""

    settings: Settings
    sources: Mapping[str, SettingSource]


def build(  # each argument is one source of values
    *,
    toml: Mapping[str, object],
    toml_name: str,
    environment: Mapping[str, str],
    home: Path,
    overrides: Mapping[str, object] = _NOTHING,
    reserved: Collection[str] = (),
) -> SourcedSettings:
    """Read every source, check everything, and build; `reserved` are variables of ours that are no settings."""
    values, problems = read(
        [
            RawSetting("home", home, DEFAULT),
            *from_file(toml, toml_name),
            *from_environment(environment, reserved),
            *from_command_line(overrides),
        ]
    )
    _follow(values)
    # An unreadable home is replaced by a placeholder: checks need a complete object, which is then not returned.
    settings = assemble({"home": home} | {name: value.value for name, value in values.items()})
    sources = {d.name: values[d.name].source if d.name in values else DEFAULT for d in catalogue()}
    sentences = [problem.sentence for problem in problems]
    sentences += broken(settings, sources, {problem.name for problem in problems})
    if sentences:
        raise SettingsFault("\n".join(sentences))
    return SourcedSettings(settings, MappingProxyType(sources))


def _follow(values: dict[str, SettingValue]) -> None:
    """A setting that follows another takes its value, unless it has one of its own."""
    for definition in catalogue():
        if definition.follows in values and definition.name not in values:
            followed = values[definition.follows]
            values[definition.name] = SettingValue(definition, followed.value, followed.source)
