"""Settings of the hardware challenge: how often, how much of a machine, and what counts as having shown a claim."""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import DURATION, SHARE


@dataclass(frozen=True)
class ChallengeSettings:
    """The hardware challenge: all nodes of an owner at once."""

    every_s: float = setting(
        DURATION, "1d", low="1m", high="366d", meaning="How long after a challenge the next comes, on average."
    )
    rest_s: float = setting(
        DURATION,
        "10m",
        low="0s",
        high="24h",
        meaning="How long an owner's nodes are left alone between two challenges.",
    )
    retry_s: float = setting(
        DURATION, "1h", low="1s", high="30d", meaning="How long after a failed challenge a node is challenged again."
    )
    commit_s: float = setting(
        DURATION, "10m", low="1s", high="24h", meaning="How long nodes may take to fill their memory."
    )
    open_s: float = setting(
        DURATION,
        "20s",
        low="1s",
        high="10m",
        meaning="How long nodes may take to show what is drawn; shorter than filling the memory anew takes.",
    )
    memory_share: float = setting(
        SHARE, "80%", low="1%", meaning="The share of a GPU's memory that is filled; the rest may be in use."
    )
    machine_memory_share: float = setting(
        SHARE,
        "12.5%",
        low="0.001%",
        meaning="The share of the memory that a machine claims, GPUs aside, that is filled to show that it is there.",
    )
    speed_s: float = setting(
        DURATION,
        "1.5s",
        low="1ms",
        high="1m",
        meaning="How long the multiplication takes a device as fast as it claims, and a machine's cores, all at once.",
    )
    core_share: float = setting(
        SHARE,
        "50%",
        low="0.01%",
        meaning="The share of a core's reference speed that all cores at work must reach for each core that counts.",
    )
    catalogue_share: float = setting(
        SHARE, "20%", meaning="A GPU must reach this share of the speed that its model has in the catalogue."
    )
    earlier_share: float = setting(
        SHARE, "25%", meaning="A device must reach this share of the speed that was measured before."
    )
