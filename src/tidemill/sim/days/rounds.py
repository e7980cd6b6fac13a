"""Rounds of placing: the next task goes to the best node, as production's pool finds it, and is assigned there.

A round comes when a task waits for which there might be a node, soon where few wait and later where many do. A failed
task is not assigned again where it failed, and for a while not where it was declined or lost.
"""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.rule import Reservation
from tidemill.core.placement.task_demand import SLACK_MS
from tidemill.sim.days.agenda import Agenda
from tidemill.sim.days.lives import Lives, SimulatedJob
from tidemill.sim.days.nodes import NEVER, SimulatedAttempt, SimulatedNodes
from tidemill.sim.days.queue import QueueLine, SimulatedQueue
from tidemill.sim.days.scenario import DayScenario

_MS = SECOND // 1000
_NOBODY: frozenset[UUID] = frozenset()


class PlacementRounds:
    """`offered` is called with every attempt that is made."""

    def __init__(
        self,
        scenario: DayScenario,
        agenda: Agenda,
        nodes: SimulatedNodes,
        queue: SimulatedQueue,
        lives: Lives,
        offered: Callable[[SimulatedAttempt], None],
    ) -> None:
        self._times, self._factor = scenario.times, scenario.rules.deadline_factor
        self._agenda, self._nodes, self._queue, self._lives, self._offered = agenda, nodes, queue, lives, offered
        self._barred: dict[int, frozenset[UUID]] = {}
        self._attempts = 0
        self._round_at, self._last_at = NEVER, 0
        lives.freed, lives.again, lives.fewer = self._freed, self._again, queue.lose

    def wait(self, job: SimulatedJob) -> None:
        """The tasks of a new job wait."""
        if self._queue.join(QueueLine(job.number, job.task_type, job.demand, job.tasks, is_plain=True)):
            self.call()

    def call(self) -> None:
        """Call a round soon, unless one is due already."""
        if self._round_at == NEVER:
            times = self._times
            pause_us = min(times.round_us + times.round_per_task_us * self._queue.count, times.round_max_us)
            self._round_at = max(self._agenda.now, self._last_at + pause_us)
            self._agenda.at(self._round_at, self._round, None)

    def _round(self, _: None) -> None:
        self._round_at, self._last_at = NEVER, self._agenda.now
        queue, pool, now = self._queue, self._nodes.pool, Instant(self._agenda.now)
        closed: set[int] = set()
        nowhere: set[QueueLine] = set()
        for line in queue.turns(self._nodes.customers.devices, now):
            if line.task_type in closed or line in nowhere:
                continue
            task = self._next_of(line)
            if task is None:
                continue
            placed = pool.place(line.demand, now)
            if placed is not None:
                self._assign(task, line, placed)
                continue
            line.tasks.appendleft(task)
            nowhere.add(line)
            if line.is_plain or not self._has_room(line.task_type):
                closed.add(line.task_type)
                queue.close(line.task_type)
        queue.rest(nowhere)
        if queue.has_open:
            self.call()

    def _has_room(self, task_type: int) -> bool:
        """Whether there is room for the task type, though not for a task that is barred there."""
        placed = self._nodes.pool.place(self._queue.demands[task_type], Instant(self._agenda.now))
        if placed is not None:
            self._nodes.pool.release(placed)
        return placed is not None

    def _next_of(self, line: QueueLine) -> int | None:
        """The next task of a line that still waits."""
        while line.tasks:
            task = line.tasks.popleft()
            if self._lives.is_waiting(task):
                return task
        return None

    def _assign(self, task: int, line: QueueLine, placed: Reservation[PoolNode]) -> None:
        self._attempts += 1
        node = self._nodes.numbers[placed.node_id.int]
        attempt = SimulatedAttempt(self._attempts, task, line.job, node, placed, self._agenda.now)
        self._set_terms(attempt, self._lives.jobs[line.job])
        self._lives.assign(attempt)
        self._offered(attempt)

    def _set_terms(self, attempt: SimulatedAttempt, job: SimulatedJob) -> None:
        """Its price, the time that is paid for, how long it should take, and when it is late."""
        seller = self._nodes.sellers[attempt.node]
        terms, speed = seller.terms(job.needs), seller.speed(job.needs)
        attempt.terms, attempt.expected_us = terms, int(job.needs.operations / max(1.0, speed) * SECOND)
        attempt.deadline_at = self._agenda.now + (int(terms.quoted_ms * self._factor) + SLACK_MS) * _MS

    def _freed(self, node: PoolNode) -> None:
        if self._queue.heard(node, Instant(self._agenda.now)):
            self.call()

    def _again(self, attempt: SimulatedAttempt, lasting: bool) -> None:
        task, job = attempt.task, self._lives.jobs[attempt.job]
        node_id = attempt.placed.node_id
        barred = self._barred.get(task, _NOBODY) | {node_id}
        if lasting:
            self._barred[task] = barred
        line = QueueLine(
            attempt.job, job.task_type, replace(job.demand, excluded_nodes=barred), (task,), is_plain=False
        )
        if self._queue.join(line):
            self.call()
        if not lasting:
            self._agenda.at(self._agenda.now + self._times.again_us, self._forgive, line)

    def _forgive(self, line: QueueLine) -> None:
        """A node that declined may be tried again."""
        if line.tasks:
            line.demand = replace(line.demand, excluded_nodes=self._barred.get(line.tasks[0], _NOBODY))
            self._queue.reopen(line.task_type)
            self.call()
