"""Settings of what nodes tell about themselves, beat by beat."""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import DURATION


@dataclass(frozen=True)
class TelemetrySettings:
    """The history of nodes' beats."""

    keep_s: float = setting(DURATION, "7d", low="1d", high="30d", meaning="How long the beats of nodes are kept.")
