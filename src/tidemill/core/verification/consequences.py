"""What a closed case moves: transfers between the owner's accounts, the pool's and the customers'.

Nothing is printed and nothing vanishes: every amount leaves one account and enters another, and none leaves an account
that does not have it. What a charge cannot take from unsettled rewards is owed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.money import credits_of
from tidemill.core.settings.money import BonusFundSettings
from tidemill.core.settings.quantities import ONE_PPM
from tidemill.core.settings.trust import FindingsSettings
from tidemill.core.verification.exposure import Holdings
from tidemill.core.verification.findings import Case, Charge, Severity, WrongResult, slashed_uc


@dataclass(frozen=True)
class Movement:
    """One transfer to post. Owned accounts are those of the owner, or of the customers who paid."""

    debit: AccountKind
    credit: AccountKind
    amount_uc: int
    because: str


@dataclass(frozen=True)
class Consequences:
    """What is moved, what is owed besides, and the explanation."""

    movements: tuple[Movement, ...]
    owed_uc: int
    because: str


def consequences(
    case: Case,
    wrong: Mapping[WrongResult, Charge],
    holdings: Holdings,
    findings: FindingsSettings,
    fund: BonusFundSettings,
) -> Consequences:
    """What a closed case costs its owner, for the result that was found and every other wrong one, with its charge.

    The unsettled rewards include those of the wrong results.
    """
    assert case.closed, "a case that is open has no consequences yet"
    assert case.found in wrong, "what was found is among the wrong results"
    if case.severity is Severity.ISOLATED:
        return _isolated(case, wrong, holdings)
    return _severe(case, holdings, findings, fund)


def on_leaving(holdings: Holdings) -> Consequences:
    """What the stake stands for when its owner asks for it back: what is still owed, as far as it reaches."""
    taken_uc = min(holdings.stake_uc, holdings.owed_uc)
    movement = Movement(AccountKind.STAKE_ASSIGNED, AccountKind.AUDIT_BUDGET, taken_uc, "still owed")
    left_uc = holdings.owed_uc - taken_uc
    return Consequences(_real(movement), left_uc, f"{credits_of(taken_uc)} was still owed when the stake left.")


def _isolated(case: Case, wrong: Mapping[WrongResult, Charge], holdings: Holdings) -> Consequences:
    lost_uc = min(sum(one.reward_uc for one in wrong), holdings.unsettled_uc)
    charged_uc = sum(charge.amount_uc for charge in wrong.values())
    taken_uc = min(charged_uc, holdings.unsettled_uc - lost_uc)
    movements = _real(
        Movement(AccountKind.PROVIDER_LOCKED, AccountKind.CUSTOMER, lost_uc, "the reward of a wrong result"),
        Movement(AccountKind.PROVIDER_LOCKED, AccountKind.AUDIT_BUDGET, taken_uc, "what a wrong result stands for"),
    )
    owed_uc = charged_uc - taken_uc
    told = " ".join(charge.because for charge in wrong.values())
    because = f"{case.because} {told} Of that, {credits_of(owed_uc)} is owed; the stake is not touched."
    return Consequences(movements, owed_uc, because)


def _severe(case: Case, holdings: Holdings, findings: FindingsSettings, fund: BonusFundSettings) -> Consequences:
    stake_uc = slashed_uc(holdings.stake_uc, findings)
    movements = (
        Movement(AccountKind.PROVIDER_LOCKED, AccountKind.CUSTOMER, holdings.unsettled_uc, "void"),
        *_divided(AccountKind.STAKE_ASSIGNED, stake_uc, fund, "slashed"),
        *_divided(AccountKind.PROVIDER_LOCKED, holdings.held_back_uc, fund, "held back, and void"),
    )
    because = (
        f"{case.because} Unsettled rewards of {credits_of(holdings.unsettled_uc)} and "
        f"{credits_of(holdings.held_back_uc)} held back are void, and {credits_of(stake_uc)} of the stake is gone."
    )
    return Consequences(_real(*movements), 0, because)


def _divided(debit: AccountKind, amount_uc: int, fund: BonusFundSettings, because: str) -> tuple[Movement, Movement]:
    """A slash feeds the bonus fund; the rest pays for checks."""
    to_fund_uc = amount_uc * fund.slashes_ppm // ONE_PPM
    return (
        Movement(debit, AccountKind.BONUS_FUND, to_fund_uc, because),
        Movement(debit, AccountKind.AUDIT_BUDGET, amount_uc - to_fund_uc, because),
    )


def _real(*movements: Movement) -> tuple[Movement, ...]:
    return tuple(movement for movement in movements if movement.amount_uc)
