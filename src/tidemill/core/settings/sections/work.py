"""Settings of work: scheduling, policies, jobs, the link to agents, nodes, containers.

A policy's weights sum to 1, so that scores of different pools can be compared.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.settings.definition import SettingScope, setting
from tidemill.core.settings.kinds.quantities import DURATION, INTEGER, MEMORY, NUMBER, SHARE
from tidemill.core.settings.kinds.texts import POOL_URLS, VERSION, choice


class PolicyChoice(StrEnum):
    """How candidates for a task are ranked."""

    VALUE = "value"
    TRUSTED = "trusted"
    FAST = "fast"
    PACKED = "packed"


@dataclass(frozen=True)
class SchedulingSettings:
    """Placing tasks on nodes."""

    policy: PolicyChoice = setting(choice(PolicyChoice), "value", meaning="The policy of jobs that choose none.")


@dataclass(frozen=True)
class ValuePolicySettings:
    """The score of the value policy; its four weights sum to 1."""

    reputation_weight: float = setting(SHARE, 0.4, meaning="The weight of reputation.")
    success_weight: float = setting(SHARE, 0.3, meaning="The weight of the success rate.")
    price_weight: float = setting(SHARE, 0.2, meaning="The weight of the median price over the node's price.")
    nvlink_weight: float = setting(SHARE, 0.1, meaning="The weight of the NVLink factor over the highest one.")
    price_ratio_low: float = setting(
        NUMBER, 0.5, unit="ratio", low=0.001, meaning="The median price over the node's price counts at least this."
    )
    price_ratio_high: float = setting(
        NUMBER, 2, unit="ratio", high=1000, meaning="The median price over the node's price counts at most this."
    )


@dataclass(frozen=True)
class FastPolicySettings:
    """The score of the fast policy; its four weights sum to 1."""

    latency_weight: float = setting(SHARE, 0.4, meaning="The weight of low latency.")
    load_weight: float = setting(SHARE, 0.3, meaning="The weight of low load.")
    capability_weight: float = setting(SHARE, 0.2, meaning="The weight of the device's capability.")
    cost_weight: float = setting(SHARE, 0.1, meaning="The weight of low cost.")


@dataclass(frozen=True)
class JobsSettings:
    """Attempts, deadlines and sizes."""

    attempts_max: int = setting(
        INTEGER,
        3,
        unit="attempts",
        low=1,
        high=100,
        meaning="How many failures of a customer's own program nodes may tell of before it is given up.",
    )
    output_max_mib: int = setting(
        MEMORY, "2MiB", low="1MiB", high="1GiB", meaning="How much of what an attempt prints the pool keeps."
    )
    deadline_factor: float = setting(
        NUMBER, 2, unit="factor", low=1, high=100, meaning="The deadline of an attempt, as a multiple of the estimate."
    )
    explanations_max: int = setting(
        INTEGER,
        20_000,
        unit="explanations",
        low=100,
        high=1_000_000,
        meaning="How many explanations of placements are kept; the oldest are forgotten.",
    )
    light_devices_max: int = setting(INTEGER, 1, unit="devices", low=1, meaning="The most devices of a light job.")
    medium_devices_max: int = setting(INTEGER, 7, unit="devices", low=1, meaning="The most devices of a medium job.")
    heavy_devices_max: int = setting(INTEGER, 16, unit="devices", low=1, meaning="The most devices of a heavy job.")


@dataclass(frozen=True)
class LinkSettings:
    """The connection that an agent opens."""

    heartbeat_s: float = setting(DURATION, "30s", low="1s", high="1h", meaning="How often an agent reports.")
    offline_after_s: float = setting(
        DURATION, "300s", low="2s", high="24h", meaning="A node is offline after being silent for so long."
    )
    slow_s: float = setting(DURATION, "10s", low="10ms", high="1h", meaning="A link slower than this alerts.")
    urls: tuple[str, ...] = setting(
        POOL_URLS, (), meaning="Where agents find the pool, besides the address that each of them joined at."
    )
    connections_max: int = setting(
        INTEGER,
        20_000,
        unit="links",
        low=1,
        high=1_000_000,
        scope=SettingScope.PROCESS,
        meaning="The most links that one process holds.",
    )


@dataclass(frozen=True)
class NodesSettings:
    """What a node may endure, and which agents get work."""

    agent_oldest: str = setting(
        VERSION, "0.1", meaning="The oldest version of the agent that gets work; older ones are told to be upgraded."
    )
    pause_above_c: float = setting(
        NUMBER, 85, unit="°C", low=30, high=120, meaning="A node with a hotter device is paused."
    )
    resume_at_c: float = setting(
        NUMBER, 80, unit="°C", low=20, high=120, meaning="A node that was paused for heat goes on at this temperature."
    )
    disk_low_mib: int = setting(MEMORY, "10GiB", high="10TiB", meaning="A node with less free disk alerts.")


@dataclass(frozen=True)
class ContainersSettings:
    """Sandboxes of a Docker-compatible engine."""

    shared_memory_mib: int = setting(
        MEMORY,
        "8GiB",
        low="64MiB",
        high="1TiB",
        meaning="The shared memory of a container whose order asks for none; what it uses counts as its memory.",
    )
