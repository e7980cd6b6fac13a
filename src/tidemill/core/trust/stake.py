"""How much a provider deposits for a device."""

from dataclasses import dataclass

from tidemill.core.money import CREDIT_UC
from tidemill.core.settings.kinds.quantities import ONE_PPM


@dataclass(frozen=True)
class StakeRules:
    """The least stake by the memory of each device.

    They are no settings: no running pool takes stakes yet, and the simulator tries them out.
    """

    small_memory_mib: int = 12 * 1024
    medium_memory_mib: int = 24 * 1024
    large_memory_mib: int = 48 * 1024
    small_uc: int = 25 * CREDIT_UC
    medium_uc: int = 50 * CREDIT_UC
    large_uc: int = 150 * CREDIT_UC
    largest_uc: int = 400 * CREDIT_UC
    recommended_ppm: int = 2 * ONE_PPM
    timelock_s: float = 7 * 86_400.0


def least_stake_uc(memory_mib: int, rules: StakeRules) -> int:
    """The least stake for one device, by its memory."""
    tiers = (
        (rules.small_memory_mib, rules.small_uc),
        (rules.medium_memory_mib, rules.medium_uc),
        (rules.large_memory_mib, rules.large_uc),
    )
    return next((stake_uc for most_mib, stake_uc in tiers if memory_mib <= most_mib), rules.largest_uc)


def recommended_stake_uc(least_uc: int, rules: StakeRules) -> int:
    return least_uc * rules.recommended_ppm // ONE_PPM
