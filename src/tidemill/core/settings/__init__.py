"""Every number and name that an operator may change, each defined once, in one frozen object built once.

The caller brings the TOML file's content, the environment and the flags; nothing here reads them by itself. The
sections are defined in edge, process, money, trust and work.
"""

from tidemill.core.settings.builder import Built, build
from tidemill.core.settings.definition import PREFIX, Definition, Scope
from tidemill.core.settings.display import Row, reference, rows
from tidemill.core.settings.layers import CONFIG_VARIABLE, Place, Source
from tidemill.core.settings.tree import Settings, catalogue, pool_fingerprint

__all__ = [
    "CONFIG_VARIABLE",
    "PREFIX",
    "Built",
    "Definition",
    "Place",
    "Row",
    "Scope",
    "Settings",
    "Source",
    "build",
    "catalogue",
    "pool_fingerprint",
    "reference",
    "rows",
]
