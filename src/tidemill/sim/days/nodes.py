"""The nodes of a run: which are present, what attempts have of each, and how much of the pool is busy.

Production's pool places tasks. A node that comes back is put with what is left of it, and what was placed on it before
is given back as production does it. Columns are indexed by a member's number.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import AttemptState
from tidemill.core.nodes.rules import windows
from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.rule import Reservation
from tidemill.core.placement.seller import left_of
from tidemill.core.placement.turns import DevicesAtWork
from tidemill.core.settlement.pay import PayTerms
from tidemill.sim.days.watch import RuleWatch
from tidemill.sim.days.worlds.task_types import TaskTypeFit
from tidemill.sim.days.worlds.world import World, capacity_milli

NEVER = -1


class SimulatedAttempt:
    """One try of a task on a node, as long as something may still come of it."""

    __slots__ = (
        "deadline_at", "delivered_at", "expected_us", "id", "job", "node", "number", "offered_at", "placed",
        "started_at", "state", "task", "terms", "tries",
    )  # fmt: skip

    def __init__(self, number: int, task: int, job: int, node: int, placed: Reservation[PoolNode], now: int) -> None:
        self.number, self.task, self.job, self.node, self.placed = number, task, job, node, placed
        self.id = UUID(int=number)
        self.state = AttemptState.OFFERED
        self.offered_at = self.started_at = self.delivered_at = self.deadline_at = now
        self.expected_us = self.tries = 0
        self.terms = PayTerms(0, 0)


class SimulatedNodes:
    """`at_work` are the attempts on each node; `died_at` is when a node last left for longer than is waited for."""

    def __init__(
        self, world: World, fields: Sequence[TaskTypeFit], policies: Mapping[str, Policy], watch: RuleWatch
    ) -> None:
        count = len(world.members)
        self.world, self._fields, self._watch = world, fields, watch
        self.sellers = [member.seller for member in world.members]
        candidates = [seller.candidate for seller in self.sellers]
        median_prices = MedianPrices.of(member.seller.candidate for member in world.present)
        self.pool = CandidatePool(policies, median_prices, newcomers_share=0.0)
        self.numbers = {candidate.node_id.int: number for number, candidate in enumerate(candidates)}
        self.has_devices = any(candidate.devices for candidate in candidates)
        self.capacity_milli = [
            capacity_milli(candidate) if candidate.devices or not self.has_devices else 0 for candidate in candidates
        ]
        self.there = bytearray(count)
        self.came_at, self.there_us, self.busy_us = [0] * count, [0] * count, [0] * count
        self.died_at, self.back_at = [NEVER] * count, [NEVER] * count
        self.at_work: list[dict[int, SimulatedAttempt]] = [{} for _ in range(count)]
        self._taken_milli, self._taken_cpu = array("q", [0]) * count, [0] * count
        self._whole = array("q", [len(candidate.devices) for candidate in candidates])
        self._capacities = np.array(self.capacity_milli, np.int64)
        self._cpu_total = [candidate.cpu_milli for candidate in candidates]
        self._task_types = _task_types_of(fields, count)
        self.customers = DevicesAtWork()
        """What each customer has of all nodes: it counts for the turns."""
        self.busy_milli = self.present_milli = self.present = 0
        self.hourly_uc = self.running_milli = 0

    def come(self, number: int, now: int, begins: Instant) -> Sequence[int]:
        """A node comes. Returns the task types that it could carry out."""
        self.there[number], self.came_at[number] = True, now
        self.present += 1
        self.present_milli += self.capacity_milli[number]
        self.busy_milli += self._busy(number)
        self._put(number, now, begins)
        return self._task_types[number]

    def go(self, number: int, now: int) -> None:
        self.there[number] = False
        self.there_us[number] += now - self.came_at[number]
        self.present -= 1
        self.present_milli -= self.capacity_milli[number]
        self.busy_milli -= self._busy(number)
        self.pool.remove(self.sellers[number].node_id)

    def take(self, attempt: SimulatedAttempt) -> None:
        """An attempt takes what the pool gave it."""
        number, demand = attempt.node, attempt.placed.demand
        self.at_work[number][attempt.number] = attempt
        self._taken_milli[number] += demand.asked_milli
        self._taken_cpu[number] += demand.cpu_milli
        self.busy_milli += self._part(number, demand)
        self.customers.begin(demand)
        self._work(attempt, 1)
        self._look(number, attempt.placed.node)

    def release(self, attempt: SimulatedAttempt, now: int, begins: Instant) -> PoolNode | None:
        """An attempt leaves its node. Returns the node, if it is present."""
        number, demand = attempt.node, attempt.placed.demand
        del self.at_work[number][attempt.number]
        part = self._part(number, demand)
        self._taken_milli[number] -= demand.asked_milli
        self._taken_cpu[number] -= demand.cpu_milli
        self.busy_us[number] += part * (now - attempt.offered_at)
        self.customers.end(demand)
        self._work(attempt, -1)
        if not self.there[number]:
            return None
        self.busy_milli -= part
        if not self.pool.release(attempt.placed):
            self._put(number, now, begins)
            return None
        self._look(number, attempt.placed.node)
        return attempt.placed.node

    def finish(self, now: int) -> None:
        """The time is over: count what is still present and still busy."""
        for number, is_present in enumerate(self.there):
            self.there_us[number] += now - self.came_at[number] if is_present else 0
            for attempt in self.at_work[number].values():
                self.busy_us[number] += self._part(number, attempt.placed.demand) * (now - attempt.offered_at)

    def fragmentation(self) -> float:
        """The share of free devices that the ordered tasks cannot use, though the machines would be large enough.

        The mean over all task types, weighted by how much they demand.
        """
        present, whole = np.frombuffer(self.there, np.bool_), np.frombuffer(self._whole, np.int64)
        free = np.where(present, self._capacities - np.frombuffer(self._taken_milli, np.int64), 0)
        lost = could = 0.0
        for field in self._fields:
            demand = field.task_type.demand
            if demand.devices:
                weight = field.task_type.weight * field.task_type.tasks_mean * field.task_type.work * demand.asked_milli
                enough = whole >= demand.devices if demand.milli == WHOLE_MILLI else free >= demand.milli
                could += weight * float(free @ field.able)
                lost += weight * float(free @ (field.able & ~enough))
        return lost / could if could else 0.0

    def _put(self, number: int, now: int, begins: Instant) -> None:
        member, at_work = self.world.members[number], self.at_work[number]
        seller = member.seller
        reserved = [(attempt.placed.demand, attempt.placed.devices) for attempt in at_work.values()]
        candidate = left_of(seller, reserved) if reserved else seller.candidate
        if member.windows:
            at = Instant(begins + now)
            candidate = _until(candidate, windows.closes_at(member.windows, at, member.utc_offset_s), begins)
        self._whole[number] = sum(device.free_milli == WHOLE_MILLI for device in candidate.devices)
        self.pool.put(candidate)

    def _work(self, attempt: SimulatedAttempt, sign: int) -> None:
        self.hourly_uc += sign * attempt.terms.hourly_uc
        self.running_milli += sign * max(WHOLE_MILLI, attempt.placed.demand.asked_milli)

    def _look(self, number: int, node: PoolNode) -> None:
        self._whole[number] = node.whole
        self._watch.node(node, self._taken_milli[number], self._taken_cpu[number], self._cpu_total[number])

    def _busy(self, number: int) -> int:
        if not self.capacity_milli[number]:
            return 0
        return self._taken_milli[number] if self.has_devices else self._taken_cpu[number]

    def _part(self, number: int, demand: Demand) -> int:
        if not self.capacity_milli[number]:
            return 0
        return demand.asked_milli if self.has_devices else demand.cpu_milli


def _task_types_of(fields: Sequence[TaskTypeFit], count: int) -> list[tuple[int, ...]]:
    """The task types that each member could carry out; members that are alike share one list."""
    rows = np.array([field.able for field in fields]).T if fields else np.zeros((count, 0), np.bool_)
    shared: dict[bytes, tuple[int, ...]] = {}
    return [shared.setdefault(row.tobytes(), tuple(np.flatnonzero(row).tolist())) for row in rows]


def _until(candidate: Candidate, closes: Instant | None, begins: Instant) -> Candidate:
    return replace(candidate, available_until=None if closes is None else Instant(closes - begins))
