"""Showing settings: the rows of `tidemill config`, and the reference page. Secrets are masked in both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tidemill.core.settings.builder import SourcedSettings
from tidemill.core.settings.definition import PREFIX, Definition
from tidemill.core.settings.kinds.kind import shown
from tidemill.core.settings.layers import CONFIG_VARIABLE, SettingSource
from tidemill.core.settings.tree import Settings, catalogue, sections, value_of

INTRODUCTION = f"""\
<!-- Generated from the definitions in src/tidemill/core/settings; do not edit. -->
# Settings

A setting takes its value from the command line, else from the environment, else from the TOML file, else its default.
`{CONFIG_VARIABLE}` names the TOML file. `tidemill config` shows every value and where it came from. A name that is no
setting and a value that is not allowed are refused: nothing starts, and every problem is listed.

`link.heartbeat_s` is written as

- `heartbeat_s = 30` under `[link]` in the TOML file;
- `{PREFIX}LINK_HEARTBEAT_S=30` in the environment.

| kind | how it is written |
|---|---|
| duration | seconds, or a text: `30`, `"500ms"`, `"30s"`, `"5m"`, `"24h"`, `"7d"` |
| share, exact share | `0.1` or `"10%"`; exact ones have up to six decimal places, since money depends on them |
| exact factor | `1.2` or `"120%"`, up to six decimal places |
| credits | `25` or `"0.000001"`, up to six decimal places |
| reputation | as it is shown, `0` to `100`, one decimal place |
| size, memory | bytes or mebibytes, or a text: `"512MiB"`, `"24GiB"`, `"10GB"` |
| yes or no | `true` or `false` |
| networks | `["10.0.0.0/8", "192.0.2.1"]`; in the environment `10.0.0.0/8,192.0.2.1` |
| path | a full path |

An empty text leaves a setting that has no default without a value. Settings of scope *pool* must be equal in all
processes of a pool; those of scope *process* may differ. A change of a *critical* one waits for a day or for a second
operator: [how to change it](../how-to/verify-the-audit-trail.md#change-a-critical-setting).
"""

_NO_DEFAULT = {"home": "chosen for the user"}


@dataclass(frozen=True)
class SettingRow:
    """One line of `tidemill config`."""

    name: str
    value: str
    source: SettingSource
    unit: str
    meaning: str


def rows(built: SourcedSettings) -> Sequence[SettingRow]:
    """Every setting as it is in force."""
    return tuple(
        SettingRow(d.name, shown(d.kind, value_of(built.settings, d)), built.sources[d.name], d.unit, d.meaning)
        for d in catalogue()
    )


def reference() -> str:
    """The reference page, in Markdown."""
    return "\n".join([INTRODUCTION, *_tables()])


def _tables() -> Iterator[str]:
    for name, members in groupby(catalogue(), key=lambda definition: definition.section):
        table = sections().get(name, Settings)
        heading = f"## [{name}]" if name else "## Top level"
        yield f"{heading}\n{(table.__doc__ or '').splitlines()[0]}\n"
        yield "| setting | kind | unit | default | bounds | scope | meaning |\n|---|---|---|---|---|---|---|"
        yield from map(_line, members)
        yield ""


def _line(definition: Definition) -> str:
    default = _NO_DEFAULT.get(definition.name) or _code(shown(definition.kind, definition.default))
    cells = (
        f"`{definition.name}`<br>`{definition.environment_name}`",
        _kind(definition),
        definition.unit,
        default,
        definition.bounds(),
        f"{definition.scope}, critical" if definition.critical else definition.scope,
        definition.meaning,
    )
    return f"| {' | '.join(cells)} |"


def _kind(definition: Definition) -> str:
    return definition.kind.accepts if definition.kind.name == "choice" else definition.kind.name


def _code(text: str) -> str:
    return text if text in {"none", "not set"} else f"`{text}`"
