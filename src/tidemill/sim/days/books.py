"""Money of a run: holds of jobs, earnings of attempts, the pool's share. The sum over all purses is zero.

Production's reward plan decides what an attempt pays and where a commission goes. Customers pay in what is held when a
job is confirmed, and get back what is left; who they are does not matter here.
"""

from uuid import UUID

from tidemill.core.settlement.rewards import AttemptPay, PaidAttempt, RewardPlan, split, sums
from tidemill.sim.days.watch import BrokenRule


class DayBooks:
    def __init__(self, plan: RewardPlan) -> None:
        self._plan = plan
        self.outside_uc = 0
        self.held_uc: dict[int, int] = {}
        self.earned_uc: dict[UUID, int] = {}
        self.pool_uc = self.fund_uc = self.burnt_uc = 0
        self.spent_uc = 0
        self._paid: list[PaidAttempt] = []

    def hold(self, job: int, amount_uc: int) -> None:
        self.outside_uc -= amount_uc
        self.held_uc[job] = amount_uc

    def pay(self, job_id: UUID, owner_id: UUID, due: AttemptPay) -> None:
        """Posted with others, at the latest when its job is over."""
        self.spent_uc += due.cost_uc
        self._paid.append(PaidAttempt(job_id, owner_id, due))

    def give_back(self, job: int, amount_uc: int) -> None:
        """Give back a part of a hold that is no longer needed."""
        self._take(job, amount_uc)
        self.outside_uc += amount_uc

    def release(self, job: int) -> None:
        """A job is over: the rest of its hold goes back."""
        self.settle()
        self.outside_uc += self.held_uc.pop(job)

    def settle(self) -> None:
        """Post what attempts pay."""
        if not self._paid:
            return
        posted = sums(self._paid, self.fund_uc)
        self._paid.clear()
        for (job_id, owner_id), reward_uc in posted.rewards_uc.items():
            self._take(job_id.int, reward_uc)
            self._earn(owner_id, reward_uc)
        for job_id, commission_uc in posted.commissions_uc.items():
            self._take(job_id.int, commission_uc)
            parts = split(self._plan, commission_uc)
            self.pool_uc += parts.pool_uc
            self.fund_uc += parts.fund_uc
            self.burnt_uc += parts.burn_uc
        for owner_id, bonus_uc in posted.bonuses_uc.items():
            self.fund_uc -= bonus_uc
            self._earn(owner_id, bonus_uc)

    def check(self) -> None:
        """Check that no money is lost or created, and nobody spends more than there is."""
        self.settle()
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

    def _earn(self, owner_id: UUID, amount_uc: int) -> None:
        self.earned_uc[owner_id] = self.earned_uc.get(owner_id, 0) + amount_uc
