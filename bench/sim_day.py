"""How long a simulated day takes: 100,000 nodes that come and go, and a million tasks, on one core.

Prints one line of JSON. `seconds` is wall time with everything, from making the world up to the last figure;
`cpu_seconds` is what of it was ours. Every life cycle, placement and payment is production's, and what must hold is
checked at each step.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path

from tidemill.control.placement.placement_policies import placement_policies
from tidemill.core.settings.tree import Settings
from tidemill.sim.days.runs import RunPlan, simulate
from tidemill.sim.days.scenario import DayScenario, PoolRules
from tidemill.sim.days.worlds.orders import OrderVolume, daily_wave
from tidemill.sim.days.worlds.presence import AT_HOME
from tidemill.sim.days.worlds.synthetic import synthetic
from tidemill.sim.days.worlds.task_types import OURS

HOURS = 24.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--fill", type=float, default=0.6, help="which share of the pool all orders would fill")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    settings = Settings(home=Path())
    began, cpu_began = time.perf_counter(), time.process_time()
    plan = RunPlan(
        synthetic(options.nodes, options.seed),
        OURS,
        placement_policies(settings),
        "value",
        daily_wave(HOURS),
        OrderVolume(options.tasks, HOURS, options.fill),
        AT_HOME,
        DayScenario(PoolRules.of(settings), HOURS, options.seed),
    )
    tally = simulate(plan)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    assert tally.shown is not None
    figures = tally.shown.figures
    told = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "tasks": figures["tasks"],
        "nodes": figures["nodes"],
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "events_per_s": round(figures["events"] / seconds),
        "events": figures["events"],
        "busy_pct": figures["busy_pct"],
        "wait_s": figures["wait_s"],
        "tasks_by_end": figures["tasks_by_end"],
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
