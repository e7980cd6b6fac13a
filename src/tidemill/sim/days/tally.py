"""The results of a run: samples over its time, and at its end the outcome for customers, providers and the pool.

The same run gives the same numbers; the time and memory that the simulation took are reported beside them.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import HOUR, SECOND
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.task import TaskState
from tidemill.core.placement.demand import WHOLE_MILLI
from tidemill.sim.days.agenda import Agenda
from tidemill.sim.days.books import DayBooks
from tidemill.sim.days.nodes import SimulatedAttempt, SimulatedNodes
from tidemill.sim.days.worlds.orders import OrderTable

Floats = NDArray[np.float64]

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_NOT_YET = -1


@dataclass
class Samples:
    """One number for each sampled moment."""

    busy_pct: list[float] = field(default_factory=list)
    nodes: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)
    fragmentation_pct: list[float] = field(default_factory=list)
    price: list[float] = field(default_factory=list)
    """Of a device-hour at which work is under way, in credits."""


@dataclass
class RunResults:
    """What is known when a run is over. Curves go from the least to the most."""

    waits_s: Floats
    waits_by_hour: dict[str, list[float]]
    customers: list[float]
    """Of each customer's tasks, the mean share of time that was work and not waiting, in per cent."""

    providers: list[float]
    """Of each provider's devices, the share of the time they were there in which they were busy, in per cent."""

    figures: dict[str, Any]


class DayTally:
    def __init__(self, orders: OrderTable) -> None:
        self.orders = orders
        self.samples = Samples()
        self.happened: Counter[Happening] = Counter()
        self.tasks: Counter[TaskState] = Counter()
        self.jobs: Counter[JobState] = Counter()
        self._offered_at = array("q", [_NOT_YET]) * orders.numbered_to
        self._worked_us = array("q", [0]) * orders.numbered_to
        self._worked_milli_us = 0
        self.shown: RunResults | None = None

    def sample(self, nodes: SimulatedNodes, waiting: int) -> None:
        samples = self.samples
        samples.busy_pct.append(100 * nodes.busy_milli / max(1, nodes.present_milli))
        samples.nodes.append(float(nodes.present))
        samples.waiting.append(float(waiting))
        samples.fragmentation_pct.append(100 * nodes.fragmentation())
        samples.price.append(nodes.hourly_uc / 1e6 / max(1.0, nodes.running_milli / WHOLE_MILLI))

    def offered(self, task: int, now: int) -> None:
        """Only the first assignment ends the wait."""
        if self._offered_at[task] == _NOT_YET:
            self._offered_at[task] = now

    def worked(self, attempt: SimulatedAttempt) -> None:
        """An attempt was paid."""
        took_us = attempt.delivered_at - attempt.started_at
        self._worked_us[attempt.task] = took_us
        self._worked_milli_us += took_us * max(WHOLE_MILLI, attempt.placed.demand.asked_milli)

    def finish(self, agenda: Agenda, nodes: SimulatedNodes, books: DayBooks, open_tasks: int) -> None:
        """The time is over. Tasks that still wait have waited at least until now."""
        submitted, customers, numbers = self._columns()
        arrived = submitted <= agenda.now
        submitted, customers, numbers = submitted[arrived], customers[arrived], numbers[arrived]
        offered = np.frombuffer(self._offered_at, np.int64)[numbers]
        waits_s = np.where(offered == _NOT_YET, agenda.now - submitted, offered - submitted) / SECOND
        worked_s = np.frombuffer(self._worked_us, np.int64)[numbers] / SECOND
        shares = _shares_of_customers(customers, waits_s, worked_s)
        providers = _busy_of_providers(nodes)
        self.shown = RunResults(
            waits_s,
            _by_hour(submitted, waits_s, agenda.now),
            np.sort(shares).tolist(),
            np.sort(providers).tolist(),
            self._figures(agenda, nodes, books, open_tasks, waits_s, shares, providers),
        )

    def _figures(  # noqa: PLR0917  # noqa: PLR0917  # everything that was counted
        self,
        agenda: Agenda,
        nodes: SimulatedNodes,
        books: DayBooks,
        open_tasks: int,
        waits_s: Floats,
        shares: Floats,
        providers: Floats,
    ) -> dict[str, Any]:
        samples = self.samples
        worked_hours = self._worked_milli_us / WHOLE_MILLI / HOUR
        return {
            "nodes": len(nodes.world.present),
            "providers": len(nodes.world.owners),
            "nodes_there_mean": _mean(samples.nodes),
            "jobs": len(self.orders.at),
            "tasks": self.orders.tasks_total,
            "events": agenda.events,
            "busy_pct": _mean(samples.busy_pct),
            "wait_s": {"mean": _rounded(waits_s.mean() if len(waits_s) else 0.0), **_quantiles(waits_s)},
            "waiting_most": max(samples.waiting, default=0.0),
            "fragmentation_pct": _mean(samples.fragmentation_pct),
            "fairness": {"customers": _rounded(jain(shares)), "providers": _rounded(jain(providers))},
            "tasks_by_end": {
                **{state.value: self.tasks[state] for state in sorted(self.tasks)},
                "open": open_tasks,
            },
            "jobs_by_end": {state.value: self.jobs[state] for state in sorted(self.jobs)},
            "attempts": {happening.value: self.happened[happening] for happening in sorted(self.happened)},
            "spent": _rounded(books.spent_uc / 1e6),
            "earned_by_providers": _rounded(sum(books.earned_uc.values()) / 1e6),
            "kept_by_pool": _rounded((books.pool_uc + books.fund_uc) / 1e6),
            "cost_per_device_hour": _rounded(books.spent_uc / 1e6 / worked_hours if worked_hours else 0.0),
        }

    def _columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of each task: when it was ordered, by whom, and its number."""
        orders = self.orders
        sizes = np.array(orders.tasks, np.int64)
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return (
            np.repeat(np.array(orders.at, np.int64), sizes),
            np.repeat(np.array(orders.customer, np.int64), sizes),
            np.repeat(np.array(orders.first, np.int64), sizes) + within,
        )


def jain(values: Floats) -> float:
    """How even a division is: 1 when all have the same, 1 over their number when one has everything."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else 1.0


def _shares_of_customers(customers: NDArray[np.int64], waits_s: Floats, worked_s: Floats) -> Floats:
    """Of each customer with work done, the share of all their tasks' time that was work."""
    worked_at = worked_s > 0
    count = int(customers.max()) + 1 if len(customers) else 0
    worked = np.bincount(customers[worked_at], worked_s[worked_at], count)
    waited = np.bincount(customers[worked_at], waits_s[worked_at], count)
    some = worked > 0
    shares: Floats = 100 * worked[some] / (worked[some] + waited[some])
    return shares


def _busy_of_providers(nodes: SimulatedNodes) -> Floats:
    busy: Counter[UUID] = Counter()
    present: Counter[UUID] = Counter()
    for number, seller in enumerate(nodes.sellers):
        owner_id = seller.candidate.owner_id
        busy[owner_id] += nodes.busy_us[number]
        present[owner_id] += nodes.there_us[number] * nodes.capacity_milli[number]
    return np.array([100 * min(1.0, busy[owner] / present[owner]) for owner in present if present[owner]])


def _by_hour(submitted: NDArray[np.int64], waits_s: Floats, until: int) -> dict[str, list[float]]:
    """The quantiles of waits, in minutes, by the hour in which tasks were ordered."""
    hours = max(1, -(-until // HOUR))
    hour_numbers = np.minimum(submitted // HOUR, hours - 1)
    by_hour = np.argsort(hour_numbers, kind="stable")
    parts = np.split(waits_s[by_hour] / 60, np.searchsorted(hour_numbers[by_hour], np.arange(1, hours)))
    return {
        name: [float(np.quantile(part, quantile)) if len(part) else 0.0 for part in parts]
        for name, quantile in QUANTILES.items()
    }


def _quantiles(waits_s: Floats) -> dict[str, float]:
    return {
        name: _rounded(float(np.quantile(waits_s, quantile)) if len(waits_s) else 0.0)
        for name, quantile in QUANTILES.items()
    }


def _mean(values: list[float]) -> float:
    return _rounded(float(np.mean(values)) if values else 0.0)


def _rounded(value: float) -> float:
    return round(float(value), 4)
