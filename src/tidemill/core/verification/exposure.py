"""What an owner has to lose, and how much work that may stand for.

A severe finding takes a share of the stake, everything held back, and the unsettled rewards. The first two are there
whatever the owner does next; so they bound the third: unsettled rewards never exceed them, and a burst of attempts
cannot be worth more than the deposit behind it. The share of the stake that no finding takes stands for what is owed;
only what is owed beyond that lowers the bound, so that one charge never keeps an owner from working it off.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tidemill.core.money import credits_of
from tidemill.core.refusals import Refusal
from tidemill.core.settings.quantities import ONE_PPM
from tidemill.core.settings.trust import ExposureSettings, FindingsSettings

Uc = TypeVar("Uc", int, NDArray[np.int64])


class ExposureRefusal(Refusal):
    EXPOSURE_REACHED = "The owner's unsettled rewards are as high as the stake allows: add stake, or wait for verdicts."


@dataclass(frozen=True)
class Holdings:
    """An owner's money in the pool. `unsettled_uc` waits for verdicts or for the window; `owed_uc` is charged."""

    stake_uc: int = 0
    held_back_uc: int = 0
    unsettled_uc: int = 0
    owed_uc: int = 0


@dataclass(frozen=True)
class Room:
    """What may still be taken on, and why no more."""

    left_uc: int
    because: str


def deposit_at_risk_uc(stake_uc: Uc, held_back_uc: Uc, findings: FindingsSettings) -> Uc:
    """What a severe finding takes besides unsettled rewards. Amounts, or arrays of them."""
    return stake_uc * findings.severe_stake_ppm // ONE_PPM + held_back_uc


def at_risk_uc(holdings: Holdings, findings: FindingsSettings) -> int:
    """What a severe finding would take now."""
    return deposit_at_risk_uc(holdings.stake_uc, holdings.held_back_uc, findings) + holdings.unsettled_uc


def exposure_limits_uc(
    stakes_uc: NDArray[np.int64],
    held_back_uc: NDArray[np.int64],
    owed_uc: NDArray[np.int64],
    exposure: ExposureSettings,
    findings: FindingsSettings,
) -> NDArray[np.int64]:
    """The most that may be unsettled at once, one element an owner."""
    deposits = deposit_at_risk_uc(stakes_uc, held_back_uc, findings)
    untouched = stakes_uc + held_back_uc - deposits
    limits: NDArray[np.int64] = deposits * exposure.limit_ppm // ONE_PPM - np.maximum(0, owed_uc - untouched)
    return np.maximum(0, limits)


def room(holdings: Holdings, exposure: ExposureSettings, findings: FindingsSettings) -> Room:
    """How much more an owner may take on."""
    deposit_uc = deposit_at_risk_uc(holdings.stake_uc, holdings.held_back_uc, findings)
    stakes, held, owed = (np.array([uc]) for uc in (holdings.stake_uc, holdings.held_back_uc, holdings.owed_uc))
    limit_uc = int(exposure_limits_uc(stakes, held, owed, exposure, findings)[0])
    left_uc = max(0, limit_uc - holdings.unsettled_uc)
    because = (
        f"Unsettled rewards may come to {credits_of(limit_uc)}, since a severe finding would take "
        f"{credits_of(deposit_uc)} besides them and {credits_of(holdings.owed_uc)} is owed; "
        f"{credits_of(holdings.unsettled_uc)} is unsettled, so {credits_of(left_uc)} is left."
    )
    return Room(left_uc, because)


def take_on(
    reward_uc: int, holdings: Holdings, exposure: ExposureSettings, findings: FindingsSettings
) -> Room | ExposureRefusal:
    """Whether an attempt with this reward may be offered to the owner."""
    found = room(holdings, exposure, findings)
    return found if reward_uc <= found.left_uc else ExposureRefusal.EXPOSURE_REACHED
