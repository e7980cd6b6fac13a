"""Settings of the agent on a provider's machine."""

from dataclasses import dataclass
from pathlib import Path

from tidemill.core.settings.definition import optional, setting
from tidemill.core.settings.kinds.quantities import SIZE
from tidemill.core.settings.kinds.texts import PATH


@dataclass(frozen=True)
class AgentSettings:
    """The agent, and what it keeps on its machine."""

    home: Path | None = optional(
        PATH, meaning="The directory of the agent; not set uses /var/lib/tidemill-agent for root, else the user's own."
    )
    ca_file: Path | None = optional(
        PATH, meaning="Certificates of the authority that signed the pool's; not set trusts those of the system."
    )
    spool_bytes: int = setting(
        SIZE,
        "256MiB",
        low="1MiB",
        meaning="What may wait for the pool; above it, old log lines, progress and telemetry are dropped.",
    )
    cache_bytes: int = setting(
        SIZE,
        "50GiB",
        low="1MiB",
        meaning="What inputs and models may take on the disk; the least recently used go first, and 1 GiB stays free.",
    )
