"""What customers order in a simulated time: jobs with their moment, size, length, priority and deadline, as columns.

Arrivals follow a profile of rates: a daily wave, or the contents of files. Lengths are such that all orders together
would fill a given share of the pool. More load means more jobs beside the same ones, and less means that some are
missing, so that two runs can be compared job by job.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import HOUR, SECOND, as_instant
from tidemill.core.placement.demand import PriorityLevel
from tidemill.sim.days.worlds.task_types import TaskTypeFit
from tidemill.sim.days.worlds.world import World, WorldFault, capacity_milli

Floats = NDArray[np.float64]

LENGTHS_SIGMA = 1.0
LONGEST = 20.0
"""No task takes longer than so many times the mean."""

PRIORITIES = (PriorityLevel.LOW, PriorityLevel.NORMAL, PriorityLevel.HIGH)
PRIORITY_SHARES = (0.2, 0.7, 0.1)
TASKS_PER_CUSTOMER = 400
CALLED_OFF_SHARE = 0.02
URGENT_SHARE = 0.2
"""The share of jobs that must be done within a few times their own length; the others have a day more."""

WINDOW_S = 600
SPAN_MAX_S = 10 * 366 * 86_400.0
"""No file covers more than ten years."""


@dataclass(frozen=True)
class OrderVolume:
    """How much is ordered: so many tasks in the time, which would fill such a share of the mean capacity."""

    tasks: int
    hours: float
    fill: float
    more: float = 0.0
    """This share more, or less where it is below zero."""


@dataclass
class OrderTable:
    """Jobs in the order of their arrival. Tasks are numbered through; `first` is the number of a job's first."""

    at: list[int]
    task_type: list[int]
    customer: list[int]
    tasks: list[int]
    first: list[int]
    length_s: list[float]
    priority: list[PriorityLevel]
    deadline_us: list[int]
    called_off_us: list[int]
    """After so long, or -1."""

    @property
    def tasks_total(self) -> int:
        return sum(self.tasks)

    @property
    def numbered_to(self) -> int:
        """One above the largest number of a task."""
        return max((first + tasks for first, tasks in zip(self.first, self.tasks, strict=True)), default=0)


def daily_wave(hours: float) -> Floats:
    """Quiet at night, busy in the afternoon."""
    middles = (np.arange(max(1, round(hours * 3600 / WINDOW_S))) + 0.5) * WINDOW_S / 3600
    return 1.0 - 0.5 * np.cos(2 * pi * (middles - 3.0) / 24)


def read_profile(files: Iterable[Path], hours: float) -> Floats:
    """Rates by ten minutes: from rows of time and rate without a header, or from times in a column TIMESTAMP.

    Several files are added up. Times count from the earliest; a shorter trace begins again.
    """
    windows = max(1, round(hours * 3600 / WINDOW_S))
    total = np.zeros(windows)
    for file in files:
        try:
            times, rates = _stamps(file)
        except (ValueError, IndexError, csv.Error, UnicodeDecodeError) as error:
            raise WorldFault(f"{file} tells no arrivals ({error}): it needs times and rates, or TIMESTAMP.") from error
        if not all(time <= SPAN_MAX_S for time in times):
            raise WorldFault(f"{file} tells no arrivals: its times are further apart than ten years, or no numbers.")
        span = int(max(times, default=0.0) // WINDOW_S) + 1
        rates_in_file = np.bincount((np.array(times) // WINDOW_S).astype(np.intp), rates, span)
        total += np.resize(rates_in_file, windows)
    if not total.any():
        raise WorldFault("Nothing arrives in these files in the time that is simulated.")
    return total


def draw_orders(
    world: World, fields: Sequence[TaskTypeFit], profile: Floats, demand: OrderVolume, present_share: float, seed: int
) -> OrderTable:
    """All jobs of the time. `present_share` is the mean share of time that a node is present."""
    base = _drawn(fields, profile, demand, demand.tasks, np.random.default_rng((seed, 3)))
    scale = _seconds_a_unit(world, fields, base, demand, present_share)
    base["length_s"] *= scale
    if demand.more > 0:
        more = _drawn(fields, profile, demand, round(demand.tasks * demand.more), np.random.default_rng((seed, 4)))
        more["length_s"] *= scale
        base = {name: np.concatenate((column, more[name])) for name, column in base.items()}
    base["first"] = np.concatenate(([0], np.cumsum(base["tasks"])[:-1]))
    if demand.more < 0:
        is_kept = np.random.default_rng((seed, 5)).random(len(base["at"])) >= -demand.more
        base = {name: column[is_kept] for name, column in base.items()}
    return _as_orders(base)


def _drawn(
    fields: Sequence[TaskTypeFit], profile: Floats, demand: OrderVolume, tasks: int, dice: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """So many tasks in jobs; the last job has as many as are left. Lengths are relative."""
    weights = np.array([field.task_type.weight for field in fields])
    means = np.array([field.task_type.tasks_mean for field in fields])
    weights = weights / weights.sum()
    jobs = int(1.5 * tasks / (weights @ means)) + 100
    while True:
        task_types = dice.choice(len(fields), jobs, p=weights)
        sizes = dice.geometric(1 / means[task_types])
        if sizes.sum() >= tasks:
            break
        jobs *= 2
    count = int(np.searchsorted(np.cumsum(sizes), tasks)) + 1
    task_types, sizes = task_types[:count], sizes[:count]
    sizes[-1] -= sizes.sum() - tasks
    customers = max(3, demand.tasks // TASKS_PER_CUSTOMER)
    popularity = np.arange(1, customers + 1) ** -0.8
    return {
        "at": _times(profile, demand.hours, count, dice),
        "task_type": task_types.astype(float),
        "customer": dice.choice(customers, count, p=popularity / popularity.sum()).astype(float),
        "tasks": sizes.astype(float),
        "length_s": _lengths(fields, task_types, dice),
        "priority": dice.choice(len(PRIORITIES), count, p=PRIORITY_SHARES).astype(float),
        "urgent": (dice.random(count) < URGENT_SHARE).astype(float),
        "called_off": np.where(dice.random(count) < CALLED_OFF_SHARE, dice.random(count), -1.0),
    }


def _times(profile: Floats, hours: float, count: int, dice: np.random.Generator) -> Floats:
    """Moments drawn from the profile, in microseconds."""
    reached = np.concatenate(([0.0], np.cumsum(profile)))
    places = np.interp(dice.random(count) * reached[-1], reached, np.arange(len(reached)))
    times: Floats = places / len(profile) * hours * HOUR
    return times


def _lengths(fields: Sequence[TaskTypeFit], task_types: NDArray[np.int64], dice: np.random.Generator) -> Floats:
    sigma = LENGTHS_SIGMA
    drawn: Floats = np.minimum(np.exp(dice.normal(-(sigma**2) / 2, sigma, len(task_types))), LONGEST)
    drawn *= np.array([field.task_type.work for field in fields])[task_types]
    for number, field in enumerate(fields):
        if field.task_type.lengths:
            indexes = np.flatnonzero(task_types == number)
            drawn[indexes] = dice.choice(np.array(field.task_type.lengths), len(indexes))
    return drawn


def _seconds_a_unit(
    world: World, fields: Sequence[TaskTypeFit], drawn: dict[str, Floats], demand: OrderVolume, present_share: float
) -> float:
    """How long the unit of length is, so that the orders fill what they should."""
    has_devices = any(field.task_type.demand.devices for field in fields)
    candidates = [member.seller.candidate for member in world.members]
    capacity = sum(capacity_milli(candidate) for candidate in candidates if candidate.devices or not has_devices)
    milli = np.array([_busy_milli(field, has_devices=has_devices) for field in fields], float)
    milli_a_job = milli[drawn["task_type"].astype(np.intp)] * drawn["tasks"]
    return _scale(
        milli_a_job,
        drawn["length_s"],
        demand.hours * 3600,
        demand.fill * capacity * present_share * demand.hours * 3600,
    )


def _scale(milli: Floats, lengths: Floats, time_s: float, target: float) -> float:
    """The factor for lengths so that so much is ordered in the time. No length counts for more than the time."""
    low, high = 0.0, time_s / max(1e-9, float(lengths.min(initial=1.0)))
    for _ in range(60):
        middle = (low + high) / 2
        enough = float((milli * np.minimum(lengths * middle, time_s)).sum()) >= target
        low, high = (low, middle) if enough else (middle, high)
    return high


def _busy_milli(field: TaskTypeFit, *, has_devices: bool) -> int:
    demand = field.task_type.demand
    return demand.asked_milli if has_devices else demand.cpu_milli


def _as_orders(columns: dict[str, Floats]) -> OrderTable:
    by_time = np.argsort(columns["at"], kind="stable")
    sorted_ = {name: column[by_time] for name, column in columns.items()}
    length_us = sorted_["length_s"] * SECOND
    ahead_us = np.where(sorted_["urgent"] > 0, 0.25 * HOUR, 24.0 * HOUR) + 6 * length_us
    off_us = np.where(sorted_["called_off"] >= 0, sorted_["called_off"] * 2 * length_us, -1)
    integers = {name: column.astype(np.int64).tolist() for name, column in sorted_.items() if name != "length_s"}
    return OrderTable(
        at=integers["at"],
        task_type=integers["task_type"],
        customer=integers["customer"],
        tasks=integers["tasks"],
        first=integers["first"],
        length_s=sorted_["length_s"].tolist(),
        priority=[PRIORITIES[number] for number in integers["priority"]],
        deadline_us=ahead_us.astype(np.int64).tolist(),
        called_off_us=off_us.astype(np.int64).tolist(),
    )


def _stamps(file: Path) -> tuple[list[float], list[float]]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.reader(opened))
    if rows and "TIMESTAMP" in rows[0]:
        index = rows[0].index("TIMESTAMP")
        times = [as_instant(datetime.fromisoformat(row[index][:26] + "+00:00")) / SECOND for row in rows[1:]]
        return [time - min(times) for time in times], [1.0] * len(times)
    times, rates = [float(row[0]) for row in rows], [float(row[1]) for row in rows]
    if not all(0 <= rate < float("inf") for rate in rates):
        raise ValueError("a rate is below zero or no number")
    return [time - min(times) for time in times], rates
