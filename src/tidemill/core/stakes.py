"""How much a provider deposits for a device, and what becomes of the deposit of a node that stays away."""

from collections.abc import Iterable

from tidemill.core.clock import DAY, SECOND
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


def owners_least_stake_uc(memories_mib: Iterable[int], rules: StakeSettings) -> int:
    """The least stake of an owner with these devices."""
    return sum(least_stake_uc(memory_mib, rules) for memory_mib in memories_mib)


def recommended_stake_uc(least_uc: int, rules: StakeSettings) -> int:
    return least_uc * rules.recommended_ppm // ONE_PPM


def decayed_stake_uc(stake_uc: int, offline_us: int, rules: StakeSettings) -> int:
    """What is left of a stake whose node was offline for so long, of the time in which we could have heard it.

    A share of what is left goes for every whole day beyond the days of grace, so that it does not matter how often the
    rule is applied in between.
    """
    days = max(0, (offline_us - round(rules.decay_after_s * SECOND)) // DAY)
    for _ in range(days):
        if not stake_uc:
            break
        stake_uc -= -(-stake_uc * rules.decay_ppm // ONE_PPM)
    return stake_uc
