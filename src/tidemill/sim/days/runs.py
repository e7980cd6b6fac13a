"""A run from its plan, and what if something were different: more load, or a provider gone.

A plan is a value; the same plan gives the same numbers. A changed plan keeps the jobs, nodes and luck that both have,
so that all differences follow from the change.
"""

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidemill.core.clock import HOUR
from tidemill.core.placement.policies import Policy
from tidemill.sim.days.day import Day
from tidemill.sim.days.scenario import DayScenario
from tidemill.sim.days.tally import DayTally
from tidemill.sim.days.worlds.orders import Floats, OrderVolume, draw_orders
from tidemill.sim.days.worlds.presence import Churn, turns
from tidemill.sim.days.worlds.task_types import TaskType, fit_task_types
from tidemill.sim.days.worlds.world import World, WorldFault

_CHANGE = re.compile(r"([+-])(\d+(?:\.\d+)?) ?%", re.ASCII)


@dataclass(frozen=True)
class RunPlan:
    """Everything that a run depends on. `profile` are the rates of arrivals; without churn no node leaves by chance."""

    world: World
    task_types: Sequence[TaskType]
    policies: Mapping[str, Policy]
    policy: str
    profile: Floats
    volume: OrderVolume
    churn: Churn | None
    scenario: DayScenario


@dataclass(frozen=True)
class WhatIf:
    """`load` is the share of additional jobs; below zero, of those that do not come."""

    load: float = 0.0
    without: str = ""

    def __bool__(self) -> bool:
        return bool(self.load or self.without)

    @property
    def named(self) -> str:
        more = f"{100 * abs(self.load):g} % {'more' if self.load > 0 else 'less'} load" if self.load else ""
        return ", ".join(filter(None, (more, f"without {self.without}" if self.without else "")))

    def applied(self, plan: RunPlan) -> RunPlan:
        world = plan.world.without(self.without) if self.without else plan.world
        return replace(plan, world=world, volume=replace(plan.volume, more=self.load))


def read_load(text: str) -> float:
    """`+20%` as a share."""
    match = _CHANGE.fullmatch(text.strip())
    if match is None:
        raise WorldFault(f"{text!r} is no change of load: write it as +20% or -10%.")
    share = float(match[2]) / 100 * (1 if match[1] == "+" else -1)
    if not -1 < share <= 10:
        raise WorldFault("Load changes by more than -100% and by at most +1000%.")
    return share


def simulate(plan: RunPlan, progress: Callable[[float], None] = lambda _: None) -> DayTally:
    """Make the world, and let its time pass."""
    scenario = plan.scenario
    if plan.policy not in plan.policies:
        raise WorldFault(f"There is no policy called {plan.policy}: there are {', '.join(sorted(plan.policies))}.")
    fits = fit_task_types(plan.world, plan.task_types, plan.policy)
    present_share = 1.0 if plan.churn is None else plan.churn.there_share
    orders = draw_orders(plan.world, fits, plan.profile, plan.volume, present_share, scenario.seed)
    until_us = int(scenario.hours * HOUR)
    present, comings = turns(plan.world, plan.churn, scenario.begins, until_us, scenario.seed)
    day = Day(plan.world, fits, orders, plan.policies, scenario)
    with _without_looking_for_cycles():
        return day.run(present, comings, progress)


@contextmanager
def _without_looking_for_cycles() -> Iterator[None]:
    """A run makes no cycles, and searching millions of objects for them takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
