"""`tidemill sim run`: a day of a pool in minutes, under production's rules; and what if something were different."""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table
from tidemill.host.standard_error import say

if TYPE_CHECKING:
    from tidemill.sim.days.runs import RunPlan, WhatIf
    from tidemill.sim.days.tally import DayTally
    from tidemill.sim.days.worlds.task_types import TaskType
    from tidemill.sim.days.worlds.world import World

NODES = 2_000
TASKS = 20_000
_FILE = {"exists": True, "dir_okay": False}
_MIB_KIB = 1024


WorldFile = Annotated[
    Path | None, typer.Option("--world", **_FILE, help="A pool that `tidemill sim export` wrote; else one is made up.")
]
Nodes = Annotated[int, typer.Option(min=1, max=1_000_000, help="How many nodes a pool that is made up has.")]
NodesList = Annotated[Path | None, typer.Option(**_FILE, help="A cluster's list of nodes, as CSV.")]
Pods = Annotated[
    Path | None, typer.Option(**_FILE, help="The cluster's list of pods: what is asked for, and for how long.")
]
Tasks = Annotated[int, typer.Option(min=1, max=10_000_000, help="How many tasks are ordered.")]
Hours = Annotated[float, typer.Option(min=0.5, max=24 * 30, help="How much time passes.")]
Fill = Annotated[
    float, typer.Option(min=0.001, max=10, help="Which share of the pool all orders would fill; above 1, too much.")
]
Arrivals = Annotated[
    list[Path] | None,
    typer.Option(**_FILE, help="When orders come: rows of time and rate, or a column TIMESTAMP. Else by a wave."),
]
ChurnTable = Annotated[
    Path | None, typer.Option(**_FILE, help="A table of Weibull fits of how long nodes stay and are away.")
]
Fit = Annotated[str, typer.Option(help="The fit to take from that table, by the name in `dataset`.")]
NoChurn = Annotated[bool, typer.Option("--no-churn", help="All nodes stay.")]
PolicyName = Annotated[str, typer.Option(help="The policy by which tasks are placed.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="The same seed gives the same run.")]
Seeds = Annotated[int, typer.Option(min=1, max=100, help="How many runs, each with the next seed.")]
Load = Annotated[str, typer.Option(metavar="+N%", help="What if there were so much more work, or less?")]
Without = Annotated[str, typer.Option(metavar="PROVIDER", help="What if this provider had gone?")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots.")]


def run(  # noqa: PLR0913, PLR0917  # each is an option of the command
    world: WorldFile = None,
    nodes: Nodes = NODES,
    nodes_list: NodesList = None,
    pods: Pods = None,
    tasks: Tasks = TASKS,
    hours: Hours = 24.0,
    fill: Fill = 0.6,
    arrivals: Arrivals = None,
    churn: ChurnTable = None,
    fit: Fit = "",
    no_churn: NoChurn = False,
    policy: PolicyName = "value",
    seed: Seed = 1,
    seeds: Seeds = 1,
    load: Load = "",
    without: Without = "",
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Let a pool's time pass under production's rules, and tell how busy, how quick, how fair and how dear it was."""
    from tidemill.sim.days import runs
    from tidemill.sim.days.worlds.orders import OrderVolume, daily_wave, read_profile

    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise CommandRefused(f"No report can be written to {html}: name a file in a directory that is there.")
    pool_world, task_types = _world(world, nodes, nodes_list, pods, seed)
    plan = runs.RunPlan(
        world=pool_world,
        task_types=task_types,
        policies=_policies(),
        policy=policy,
        profile=read_profile(arrivals, hours) if arrivals else daily_wave(hours),
        volume=OrderVolume(tasks, hours, fill),
        churn=None if no_churn else _churn(churn, fit),
        scenario=_scenario(hours, seed),
    )
    what_if = runs.WhatIf(runs.read_load(load) if load else 0.0, without)
    _show(_run_all(plan, what_if, seeds), plan, html=html, as_json=as_json)


def _world(
    file: Path | None, nodes: int, nodes_list: Path | None, pods: Path | None, seed: int
) -> "tuple[World, tuple[TaskType, ...]]":
    """The world and its task types: from a file, from a cluster's lists, or made up."""
    from tidemill.sim.days.worlds.synthetic import synthetic
    from tidemill.sim.days.worlds.task_types import OURS
    from tidemill.sim.days.worlds.traces import read_task_types
    from tidemill.sim.days.worlds.world_files import read_world

    if (nodes_list is None) != (pods is None) or (file is not None and nodes_list is not None):
        raise CommandRefused(
            "A world comes from --world, from --nodes-list and --pods together, or is made up: choose one."
        )
    if nodes_list is not None and pods is not None:
        return read_task_types(nodes_list, pods)
    return (read_world(file) if file else synthetic(nodes, seed)), OURS


def _policies() -> Any:
    from tidemill.control.placement.placement_policies import placement_policies
    from tidemill.core.settings.tree import Settings

    return placement_policies(Settings(home=Path()))  # as they are by default, whatever this machine is set to


def _scenario(hours: float, seed: int) -> Any:
    from tidemill.core.settings.tree import Settings
    from tidemill.sim.days.scenario import DayScenario, PoolRules

    return DayScenario(PoolRules.of(Settings(home=Path())), hours, seed)


def _churn(file: Path | None, fit: str) -> Any:
    from tidemill.sim.days.worlds.presence import AT_HOME, read_churn

    if (file is None) != (not fit):
        raise CommandRefused("A fit is taken from a table: name both, --churn and --fit, or neither.")
    return AT_HOME if file is None else read_churn(file, fit)


def _run_all(plan: "RunPlan", what_if: "WhatIf", seeds: int) -> list[list[tuple[str, "DayTally", float]]]:
    """For each seed, run the pool as it is and as it would be; with the seconds each run took."""
    from dataclasses import replace

    from tidemill.sim.days.runs import simulate

    plans = [("as it is", plan)] + ([(what_if.named, what_if.applied(plan))] if what_if else [])
    runs_of_seeds: list[list[tuple[str, DayTally, float]]] = []
    with _progress(seeds * len(plans)) as progress:
        for number in range(seeds):
            runs_of_seeds.append([])
            for name, run_plan in plans:
                scenario = replace(run_plan.scenario, seed=run_plan.scenario.seed + number)
                began = time.perf_counter()
                tally = simulate(replace(run_plan, scenario=scenario), progress(f"seed {scenario.seed}, {name}"))
                runs_of_seeds[-1].append((name, tally, time.perf_counter() - began))
    return runs_of_seeds


@contextmanager
def _progress(runs: int) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """On a terminal, one bar over all runs; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda _: lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task, done = bar.add_task("", total=runs), iter(range(runs))

        def began(name: str) -> Callable[[float], None]:
            before = next(done)
            return lambda share: bar.update(task, description=name, completed=before + share)

        yield began


def _show(
    runs_of_seeds: "list[list[tuple[str, DayTally, float]]]", plan: "RunPlan", *, html: Path | None, as_json: bool
) -> None:
    from tidemill.sim.days import report

    first = [(name, tally) for name, tally, _ in runs_of_seeds[0]]
    if html is not None:
        html.write_text(report.page(first, _sentence(plan, len(runs_of_seeds))), "utf-8")
        say(f"The report is in {html}.")
    if as_json:
        print_json(_fields(runs_of_seeds, plan.scenario.seed))
        return
    print_table(("", *(name for name, _ in first)), report.rows(first))
    for name, summary in _over_seeds(runs_of_seeds).items() if len(runs_of_seeds) > 1 else ():
        say(f"{name}, over {len(runs_of_seeds)} seeds: {summary}")


def _sentence(plan: "RunPlan", seeds: int) -> str:
    demand, scenario = plan.volume, plan.scenario
    plots = f" Plots are of the first of {seeds} seeds." if seeds > 1 else ""
    return (
        f"{len(plan.world.present):,} nodes of {len(plan.world.owners):,} providers, {demand.tasks:,} tasks in "
        f"{demand.hours:g} hours, placed by the policy {plan.policy}, seed {scenario.seed}.{plots}"
    )


def _fields(runs_of_seeds: "list[list[tuple[str, DayTally, float]]]", seed: int) -> dict[str, Any]:
    """The figures of every run, and the time and memory of the simulation, which differ each time."""
    runs = [
        {"seed": seed + number, "run": name, **_figures(tally), "seconds": round(took_s, 2)}
        for number, of_seed in enumerate(runs_of_seeds)
        for name, tally, took_s in of_seed
    ]
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB_KIB
    return {"runs": runs, "over_seeds": _over_seeds(runs_of_seeds), "peak_rss_mib": round(peak_mib, 1)}


def _over_seeds(runs_of_seeds: "list[list[tuple[str, DayTally, float]]]") -> dict[str, dict[str, float]]:
    """The mean of the main figures over all seeds, and their standard deviation."""
    summary: dict[str, dict[str, float]] = {}
    for position, (name, _, _) in enumerate(runs_of_seeds[0]):
        figures = [_figures(of_seed[position][1]) for of_seed in runs_of_seeds]
        columns = {
            "busy_pct": [run_figures["busy_pct"] for run_figures in figures],
            "wait_s_mean": [run_figures["wait_s"]["mean"] for run_figures in figures],
            "wait_s_p95": [run_figures["wait_s"]["p95"] for run_figures in figures],
            "cost_per_device_hour": [run_figures["cost_per_device_hour"] for run_figures in figures],
        }
        summary[name] = {
            f"{column}{suffix}": round(of(values), 4)
            for column, values in columns.items()
            for suffix, of in (("", fmean), ("_sd", pstdev))
        }
    return summary


def _figures(tally: "DayTally") -> dict[str, Any]:
    assert tally.shown is not None
    return tally.shown.figures
