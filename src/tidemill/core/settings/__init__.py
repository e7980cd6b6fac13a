"""Every number and name that an operator may change, each defined once, in one frozen object built once.

The caller brings the TOML file's content, the environment and the flags; nothing here reads them by itself. The
sections are defined in edge, process, money, trust and work.
"""

from tidemill.core.settings.builder import SourcedSettings, build
from tidemill.core.settings.definition import PREFIX, Definition, SettingScope
from tidemill.core.settings.display import SettingRow, reference, rows
from tidemill.core.settings.layers import CONFIG_VARIABLE, SettingSource, SourceKind
from tidemill.core.settings.tree import Settings, catalogue, pool_fingerprint

__all__ = [
    "CONFIG_VARIABLE",
    "PREFIX",
    "Definition",
    "SettingRow",
    "SettingScope",
    "SettingSource",
    "Settings",
    "SourceKind",
    "SourcedSettings",
    "build",
    "catalogue",
    "pool_fingerprint",
    "reference",
    "rows",
]
