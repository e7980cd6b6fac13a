"""`tidemill sim`: what rules and policies do in simulated worlds. Nothing of a pool is changed."""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.sim import sim_economy, sim_export, sim_run
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table

if TYPE_CHECKING:
    from tidemill.core.placement.policies import Policy
    from tidemill.sim.openb.experiment import Allocation, Cluster

app = CommandGroup("Try the pool's rules in simulated worlds.")
app.command("run")(sim_run.run)
app.command("export")(sim_export.export)
app.command("economy")(sim_economy.economy)

NodesFile = Annotated[Path, typer.Option("--nodes", exists=True, dir_okay=False, help="The list of nodes, as CSV.")]
PodsFile = Annotated[Path, typer.Option("--pods", exists=True, dir_okay=False, help="The list of pods, as CSV.")]
PolicyName = Annotated[str, typer.Option("--policy", help="A policy of the pool, or random, bestfit or fgd.")]
Seeds = Annotated[int, typer.Option("--seeds", min=1, max=1000, help="How often, each time in another order.")]


@app.callback()
def sim() -> None:
    """Commands are added below."""


@app.command()
def openb(
    nodes: NodesFile, pods: PodsFile, policy: PolicyName = "packed", seeds: Seeds = 10, as_json: AsJson = False
) -> None:
    """Fill a cluster with 1.3 times what it can take, and see how much of its GPUs is handed out."""
    from tidemill.sim.openb.experiment import PolicyOutcome, read_cluster

    _policy(policy, read_cluster(nodes, pods), 0)  # report an unknown name or file before anything is started
    with ProcessPoolExecutor(min(seeds, os.cpu_count() or 1), get_context("spawn")) as processes:
        runs = list(processes.map(_run, [(policy, nodes, pods, seed) for seed in range(seeds)]))
    outcome = PolicyOutcome.of(policy, runs)
    fields = {
        "policy": policy,
        "allocated_pct_at_100": round(outcome.at_100_pct, 3),
        "allocated_pct_at_130": round(outcome.at_130_pct, 3),
        "sd": round(outcome.sd, 3),
    }
    if as_json:
        print_json(fields)
    else:
        print_table(tuple(fields), [tuple(str(value) for value in fields.values())])


def _run(arguments: tuple[str, Path, Path, int]) -> "Allocation":
    """Run one seed, in a process of its own."""
    from tidemill.sim.openb.experiment import inflate, read_cluster

    name, nodes, pods, seed = arguments
    cluster = read_cluster(nodes, pods)
    return inflate(cluster, _policy(name, cluster, seed), Random(seed))  # noqa: S311  # runs must repeat


def _policy(name: str, cluster: "Cluster", seed: int) -> "Policy":
    from tidemill.control.placement.placement_policies import placement_policies
    from tidemill.core.placement.workload import Workload
    from tidemill.core.settings.tree import Settings
    from tidemill.sim.openb.rivals import BestFit, GradientDescent, RandomFit

    ours = placement_policies(Settings(home=Path()))  # as they are by default, whatever this machine is set to
    rivals: dict[str, Policy] = {
        "random": RandomFit(Random(-1 - seed)),  # noqa: S311  # another order than that of the pods
        "bestfit": BestFit(),
        "fgd": GradientDescent(Workload.of(cluster.pods)),
    }
    policies = {**ours, **rivals}
    if name not in policies:
        raise CommandRefused(f"There is no policy called {name}: there are {', '.join(sorted(policies))}.")
    return policies[name]
