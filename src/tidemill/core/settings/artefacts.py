"""Settings of artefacts: where they are kept, how much of them, and for how long."""

from dataclasses import dataclass
from pathlib import Path

from tidemill.core.settings.definition import Scope, optional, setting
from tidemill.core.settings.quantities import DURATION, INTEGER, SIZE
from tidemill.core.settings.texts import PATH


@dataclass(frozen=True)
class ArtefactsSettings:
    """Inputs, models and results."""

    place: Path | None = optional(
        PATH,
        scope=Scope.PROCESS,
        meaning="The directory of the artefacts; not set uses `artefacts` in the home.",
    )
    keep_free_bytes: int = setting(
        SIZE,
        "1GiB",
        scope=Scope.PROCESS,
        meaning="The space that uploads leave free on the disk: the pool's database may need it.",
    )
    threads: int = setting(
        INTEGER,
        4,
        unit="threads",
        low=1,
        high=64,
        scope=Scope.PROCESS,
        meaning="How many threads read, write and hash artefacts.",
    )
    size_max_bytes: int = setting(SIZE, "50GiB", low="1MiB", meaning="The largest artefact.")
    quota_bytes: int = setting(SIZE, "100GiB", meaning="What one account may keep, with its uploads under way.")
    upload_keep_s: float = setting(
        DURATION, "24h", low="1m", high="30d", meaning="How long an upload waits for its next bytes before it is gone."
    )
    unreferenced_keep_s: float = setting(
        DURATION, "24h", low="1h", high="366d", meaning="How long bytes are kept that no artefact refers to any more."
    )
