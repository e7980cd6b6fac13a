"""One run: what the world does to a pool and when, in virtual time.

Customers order and call off; nodes go and come back, decline, begin, crash, straggle and deliver. Production decides
what follows: `lives` asks the life cycles, and `rounds` the pool of candidates.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp
from statistics import NormalDist
from uuid import UUID

from tidemill.core.clock import HOUR, Instant
from tidemill.core.jobs.attempt import AT_WORK, AttemptState, Happening
from tidemill.core.jobs.job import JobHappening
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.supply import work_ms
from tidemill.core.settlement.pay import PayTerms, cost_max_uc
from tidemill.sim.days import chance
from tidemill.sim.days.agenda import Agenda, Happens
from tidemill.sim.days.lives import Lives, SimulatedJob
from tidemill.sim.days.nodes import NEVER, SimulatedAttempt, SimulatedNodes
from tidemill.sim.days.queue import SimulatedQueue
from tidemill.sim.days.rounds import PlacementRounds
from tidemill.sim.days.scenario import DayScenario
from tidemill.sim.days.tally import DayTally
from tidemill.sim.days.watch import RuleWatch
from tidemill.sim.days.worlds.orders import OrderTable
from tidemill.sim.days.worlds.presence import Turn
from tidemill.sim.days.worlds.task_types import TaskTypeFit
from tidemill.sim.days.worlds.world import World

SAMPLES_AN_HOUR = 6

_CUSTOMERS = 1 << 65
"""Ids of customers begin here; those of nodes and providers lie below or are random."""

_NORMAL = NormalDist()
_BROKEN = "broken"


class Day:
    """A run under way."""

    def __init__(
        self,
        world: World,
        fields: Sequence[TaskTypeFit],
        orders: OrderTable,
        policies: Mapping[str, Policy],
        scenario: DayScenario,
    ) -> None:
        self.scenario, self.orders, self.fields = scenario, orders, fields
        self._seed, self._chances, self._times = scenario.seed, scenario.chances, scenario.times
        self.agenda, self.tally = Agenda(), DayTally(orders)
        self.watch = RuleWatch(orders.numbered_to, scenario.rules.patience)
        self.nodes = SimulatedNodes(world, fields, policies, self.watch)
        self.queue = SimulatedQueue([field.task_type.demand for field in fields])
        self.lives = Lives(scenario, self.agenda, self.nodes, self.watch, self.tally)
        self.rounds = PlacementRounds(scenario, self.agenda, self.nodes, self.queue, self.lives, self._offered)
        self._turns: Sequence[Turn] = ()
        self._back: Sequence[int] = ()
        self._progress: Callable[[float], None] = lambda _: None

    def run(
        self, present: Sequence[bool], turns: Sequence[Turn], progress: Callable[[float], None] = lambda _: None
    ) -> DayTally:
        """From the first moment to the last. `progress` receives the share of the time that has passed."""
        self._turns, self._back, self._progress = turns, _returns(turns), progress
        for number, is_there in enumerate(present):
            if is_there:
                self.nodes.come(number, 0, self.scenario.begins)
        if turns:
            self.agenda.at(turns[0][0], self._turn, 0)
        if self.orders.at:
            self.agenda.at(self.orders.at[0], self._arrive, 0)
        self.agenda.at(0, self._sample, 0)
        self.agenda.run(int(self.scenario.hours * HOUR))
        self.nodes.finish(self.agenda.now)
        self.lives.books.check()
        self.tally.finish(self.agenda, self.nodes, self.lives.books, open_tasks=len(self.lives.tasks))
        return self.tally

    def _sample(self, number: int) -> None:
        self.lives.books.check()
        self.tally.sample(self.nodes, self.queue.count)
        self._progress(min(1.0, self.agenda.now / (self.scenario.hours * HOUR)))
        self.agenda.at((number + 1) * HOUR // SAMPLES_AN_HOUR, self._sample, number + 1)

    def _turn(self, index: int) -> None:
        """A node comes or goes."""
        _, number, comes = self._turns[index]
        if comes:
            if self.queue.came(self.nodes.come(number, self.agenda.now, self.scenario.begins)):
                self.rounds.call()
        else:
            self._go(number, self._back[index])
        if index + 1 < len(self._turns):
            self.agenda.at(self._turns[index + 1][0], self._turn, index + 1)

    def _go(self, number: int, back_at: int) -> None:
        """A short absence only breaks the link: work continues. A longer one loses the work."""
        nodes, now, silence_us = self.nodes, self.agenda.now, self.scenario.rules.offline_after_us
        nodes.go(number, now)
        nodes.back_at[number] = back_at
        if back_at == NEVER or back_at - now > silence_us:
            nodes.died_at[number] = now
            if nodes.at_work[number]:
                self.agenda.at(now + silence_us, self._lose, number)

    def _lose(self, number: int) -> None:
        died_at = self.nodes.died_at[number]
        for attempt in list(self.nodes.at_work[number].values()):
            if attempt.offered_at <= died_at:
                self.lives.happen(attempt, Happening.NODE_LOST)

    def _is_reached(self, attempt: SimulatedAttempt, again: Happens) -> bool:
        """Whether the node can be heard now; if it is back soon, try again then."""
        nodes, number = self.nodes, attempt.node
        if nodes.died_at[number] >= attempt.offered_at:
            return False
        if not nodes.there[number]:
            self.agenda.at(nodes.back_at[number], again, attempt)
            return False
        return True

    def _arrive(self, index: int) -> None:
        """A customer orders and confirms."""
        orders, now = self.orders, self.agenda.now
        job = self._job(index)
        self.lives.confirm(job)
        self.rounds.wait(job)
        self.agenda.at(now + orders.deadline_us[index], self.lives.close, (index, JobHappening.TIME_UP))
        if orders.called_off_us[index] >= 0:
            self.agenda.at(now + orders.called_off_us[index], self.lives.close, (index, JobHappening.CALLED_OFF))
        if index + 1 < len(orders.at):
            self.agenda.at(orders.at[index + 1], self._arrive, index + 1)

    def _job(self, index: int) -> SimulatedJob:
        """The job as ordered; each task may cost what it would on the slowest and most expensive node for it."""
        orders = self.orders
        task_type, first = orders.task_type[index], orders.first[index]
        field = self.fields[task_type]
        demand = replace(
            field.task_type.demand,
            customer_id=UUID(int=_CUSTOMERS + orders.customer[index]),
            submitted_at=Instant(self.agenda.now),
            priority=orders.priority[index],
        )
        needs = field.needs(orders.length_s[index] * field.speed_mean * max(1, demand.devices))
        terms = PayTerms(field.share_max_uc, 0, work_ms(needs, field.reference_least))
        cost_uc = cost_max_uc(self.scenario.rules.plan, terms)
        return SimulatedJob(index, task_type, range(first, first + orders.tasks[index]), demand, needs, cost_uc)

    def _offered(self, attempt: SimulatedAttempt) -> None:
        self.tally.offered(attempt.task, self.agenda.now)
        self.agenda.at(self.agenda.now + self._times.assignment_us, self._answer, attempt)

    def _draw(self, attempt: SimulatedAttempt, purpose: int) -> float:
        return chance.draw(self._seed, attempt.task, attempt.tries, purpose)

    def _answer(self, attempt: SimulatedAttempt) -> None:
        """The node accepts the assignment and begins, or declines it."""
        if attempt.state is not AttemptState.OFFERED or not self._is_reached(attempt, self._answer):
            return
        if self._draw(attempt, chance.DECLINES) < self._chances.declined:
            self.lives.happen(attempt, Happening.DECLINED)
            return
        self.lives.happen(attempt, Happening.STARTED)  # the accepted state before it is too short to show
        attempt.started_at = self.agenda.now
        self._foresee(attempt)

    def _foresee(self, attempt: SimulatedAttempt) -> None:
        """What will become of an attempt if nothing intervenes."""
        ends_at = self.agenda.now + int(attempt.expected_us * self._pace(attempt)) + 1
        happens = self._deliver
        if self._is_broken(attempt.task) or self._draw(attempt, chance.CRASHES) < self._chances.crashed:
            happens = self._crash
            ends_at -= int((ends_at - self.agenda.now) * self._draw(attempt, chance.CRASHES_WHEN))
        self.agenda.at(ends_at, happens, attempt)
        if ends_at > attempt.deadline_at:
            self.agenda.at(attempt.deadline_at, self._time_up, attempt)

    def _is_broken(self, task: int) -> bool:
        """Whether a task fails wherever it runs."""
        return chance.draw(self._seed, task, 0, chance.IS_BROKEN) < self._chances.broken

    def _pace(self, attempt: SimulatedAttempt) -> float:
        """How much longer it takes than expected."""
        pace = exp(self._chances.pace_sigma * _NORMAL.inv_cdf(max(1e-9, self._draw(attempt, chance.PACE))))
        if self._draw(attempt, chance.STRAGGLES) < self._chances.straggling:
            pace *= 3.0 / max(0.05, self._draw(attempt, chance.STRAGGLES_BY))
        return pace

    def _crash(self, attempt: SimulatedAttempt) -> None:
        if attempt.state in AT_WORK and self._is_reached(attempt, self._crash):
            self.lives.happen(attempt, Happening.CRASHED)

    def _time_up(self, attempt: SimulatedAttempt) -> None:
        if attempt.state in AT_WORK:
            self.lives.happen(attempt, Happening.TIME_UP)

    def _deliver(self, attempt: SimulatedAttempt) -> None:
        """Deliver a result; a late one may still be wanted."""
        if attempt.number not in self.lives.attempts or not self._is_reached(attempt, self._deliver):
            return
        attempt.delivered_at = self.agenda.now
        if self.lives.happen(attempt, Happening.DELIVERED):
            self.agenda.at(self.agenda.now + self._times.verdict_us, self._judge, attempt)

    def _judge(self, attempt: SimulatedAttempt) -> None:
        wrong = self._draw(attempt, chance.IS_WRONG) < self._chances.wrong
        self.lives.happen(attempt, Happening.FAILED if wrong else Happening.PASSED)


def _returns(turns: Sequence[Turn]) -> list[int]:
    """For each turn, when the same member has its next."""
    following: dict[int, int] = {}
    returns = [NEVER] * len(turns)
    for index in range(len(turns) - 1, -1, -1):
        at, number, _ = turns[index]
        returns[index] = following.get(number, NEVER)
        following[number] = at
    return returns
