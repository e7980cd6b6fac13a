"""Settings of the audit trail, and of changes to settings that move money or trust."""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import DURATION


@dataclass(frozen=True)
class TrailSettings:
    """The audit trail, which tells every act that security depends on."""

    publish_every_s: float = setting(
        DURATION, "1h", low="1s", high="7d", meaning="How often the head of the trail is published, if it has moved."
    )
    critical_delay_s: float = setting(
        DURATION,
        "24h",
        high="90d",
        critical=True,
        meaning="How long the change of a critical setting waits, unless two operators approve it; and how long the "
        "word of a new operator does not count where two have to agree.",
    )
