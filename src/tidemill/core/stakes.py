"""How much a provider deposits for a device."""

from tidemill.core.settings.money import StakeSettings
from tidemill.core.settings.quantities import ONE_PPM


def least_stake_uc(memory_mib: int, rules: StakeSettings) -> int:
    """The least stake for one device, by its memory."""
    tiers = (
        (rules.small_memory_mib, rules.small_uc),
        (rules.medium_memory_mib, rules.medium_uc),
        (rules.large_memory_mib, rules.large_uc),
    )
    return next((stake_uc for most_mib, stake_uc in tiers if memory_mib <= most_mib), rules.largest_uc)


def recommended_stake_uc(least_uc: int, rules: StakeSettings) -> int:
    return least_uc * rules.recommended_ppm // ONE_PPM
