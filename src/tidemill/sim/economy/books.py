"""The simulated pool's books: whole micro-credits, one debit and one credit for each movement, a sum of zero.

Accounts of owners are columns with one row an owner; the pool's own are single numbers. Accounts that the ledger calls
floored cannot go below zero here either.
"""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.int64]


class Purse(StrEnum):
    """The accounts. `CROWD` is every customer without a strategy."""

    LOCKED = "provider_locked"
    AVAILABLE = "provider_available"
    STAKE = "stake_assigned"
    UNLOCKING = "stake_unlocking"
    CUSTOMER = "customer"
    CROWD = "crowd"
    COMMISSION = "commission"
    BONUS_FUND = "bonus_fund"
    AUDIT_BUDGET = "audit_budget"
    EXTERNAL = "external"


OWNED = (Purse.LOCKED, Purse.AVAILABLE, Purse.STAKE, Purse.UNLOCKING, Purse.CUSTOMER)


class EconomyBooks:
    """Balances, and the only way to change them."""

    def __init__(self, owners: int) -> None:
        self.owned = {purse: np.zeros(owners, dtype=np.int64) for purse in OWNED}
        self.pool = dict.fromkeys((purse for purse in Purse if purse not in OWNED), 0)
        self.paid_in = np.zeros(owners, dtype=np.int64)
        """What each owner brought from outside, less what they took out."""

    def __getitem__(self, purse: Purse) -> Amounts:
        return self.owned[purse]

    def grow(self, more: int) -> None:
        """Accounts for so many more owners, with nothing in them."""
        self.owned = {purse: np.pad(amounts, (0, more)) for purse, amounts in self.owned.items()}
        self.paid_in = np.pad(self.paid_in, (0, more))

    def move(self, debit: Purse, credit: Purse, amounts_uc: Amounts) -> None:
        """Move one amount an owner, none negative, from one account to another."""
        assert amounts_uc.dtype == np.int64, "money is counted in whole micro-credits"
        assert not (amounts_uc < 0).any(), "money moves forwards"
        self._post(debit, -amounts_uc)
        self._post(credit, amounts_uc)
        if Purse.EXTERNAL in (debit, credit) and (debit in OWNED or credit in OWNED):
            self.paid_in += amounts_uc if debit is Purse.EXTERNAL else -amounts_uc

    def move_one(self, debit: Purse, credit: Purse, amount_uc: int) -> None:
        """Move an amount between two of the pool's own accounts."""
        assert amount_uc >= 0, "money moves forwards"
        self.pool[debit] -= amount_uc
        self.pool[credit] += amount_uc

    def worth(self) -> Amounts:
        """What each owner has in the pool beyond what they paid in."""
        worth: Amounts = sum((self.owned[purse] for purse in OWNED), start=-self.paid_in)
        return worth

    def check(self) -> None:
        """Check what always holds."""
        total = sum(int(column.sum()) for column in self.owned.values()) + sum(self.pool.values())
        assert total == 0, f"the books are off by {total} micro-credits"
        for purse in OWNED:
            assert not (self.owned[purse] < 0).any(), f"{purse} went below zero"
        for purse in (Purse.BONUS_FUND, Purse.AUDIT_BUDGET):
            assert self.pool[purse] >= 0, f"{purse} went below zero"

    def _post(self, purse: Purse, amounts_uc: Amounts) -> None:
        if purse in self.owned:
            self.owned[purse] += amounts_uc
        else:
            self.pool[purse] += int(amounts_uc.sum())
