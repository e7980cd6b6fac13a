"""Money of a run: holds of jobs, earnings of attempts, the pool's share. The sum over all purses is zero.

Production decides what is owed to whom. Customers pay in what is held when a job is confirmed, and get back what is
left; who they are does not matter here.
"""

from collections import Counter
from uuid import UUID

from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.settlement.obligations import Obligation
from tidemill.sim.days.watch import BrokenRule


class DayBooks:
    def __init__(self) -> None:
        self.outside_uc = 0
        self.held_uc: dict[int, int] = {}
        self.earned_uc: Counter[UUID] = Counter()
        self.pool_uc = self.fund_uc = self.burnt_uc = 0
        self.spent_uc = 0

    def hold(self, job: int, amount_uc: int) -> None:
        self.outside_uc -= amount_uc
        self.held_uc[job] = amount_uc

    def pay(self, owed: Obligation) -> None:
        """An obligation is paid, out of the hold that it names or out of the fund."""
        if owed.hold_id is None:
            assert owed.payer.kind is AccountKind.BONUS_FUND, "nothing else is owed without a hold"
            self.fund_uc -= owed.amount_uc
        else:
            self._take(owed.hold_id.int, owed.amount_uc)
            self.spent_uc += owed.amount_uc
        payee = owed.payee
        match payee.kind:
            case AccountKind.PROVIDER_LOCKED:
                assert payee.owner_id is not None
                self.earned_uc[payee.owner_id] += owed.amount_uc
            case AccountKind.COMMISSION | AccountKind.AUDIT_BUDGET:
                self.pool_uc += owed.amount_uc
            case AccountKind.BONUS_FUND:
                self.fund_uc += owed.amount_uc
            case AccountKind.BURN:
                self.burnt_uc += owed.amount_uc
            case _:
                raise BrokenRule(f"Somebody is owed money on a {payee.kind} account.")

    def release(self, job: int) -> None:
        """A job is over: the rest of its hold goes back."""
        self.outside_uc += self.held_uc.pop(job)

    def check(self) -> None:
        """Check that no money is lost or created, and nobody spends more than there is."""
        purses_uc = self.outside_uc, sum(self.held_uc.values()), sum(self.earned_uc.values()), self.pool_uc
        if sum(purses_uc) + self.fund_uc + self.burnt_uc != 0:
            raise BrokenRule(f"The books are off by {sum(purses_uc) + self.fund_uc + self.burnt_uc} micro-credits.")
        if self.fund_uc < 0:
            raise BrokenRule(f"The bonus fund has {self.fund_uc} micro-credits.")

    def _take(self, job: int, amount_uc: int) -> None:
        left_uc = self.held_uc[job] - amount_uc
        if left_uc < 0:
            raise BrokenRule(f"Job {job} costs {-left_uc} micro-credits more than was held for it.")
        self.held_uc[job] = left_uc
