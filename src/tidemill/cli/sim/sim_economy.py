"""`tidemill sim economy`: does cheating pay? Months of a pool with cheaters in it, in minutes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table
from tidemill.host.standard_error import say

if TYPE_CHECKING:
    from tidemill.sim.economy.tally import EconomyTally

QUICK_NODES = 1500
QUICK_MONTHS = 2


def economy(  # noqa: PLR0913, PLR0917  # each is an option of the command
    nodes: Annotated[int, typer.Option(min=200, max=1_000_000, help="How many nodes there are.")] = 20_000,
    months: Annotated[int, typer.Option(min=1, max=60, help="How many months pass, of thirty days.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 1,
    strategies: Annotated[
        str, typer.Option(metavar="NAME,…", help="Only these strategies, beside honest work; else all.")
    ] = "",
    strategy_file: Annotated[
        list[Path] | None, typer.Option(exists=True, dir_okay=False, help="A Python file with strategies of your own.")
    ] = None,
    cheaters: Annotated[
        float, typer.Option(min=0, max=0.9, help="The share of owners who do not work honestly.")
    ] = 0.4,
    quick: Annotated[bool, typer.Option(help="A small run of some seconds, with wide intervals.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with plots.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the rules of trust and money over owners of whom many cheat, and say what it brought them."""
    from tidemill.sim.economy import report
    from tidemill.sim.economy.run import Economy
    from tidemill.sim.economy.scenario import EconomyScenario
    from tidemill.sim.economy.strategies.choice import chosen

    scenario = EconomyScenario(nodes=nodes, months=months, seed=seed, cheaters=cheaters)
    if quick:
        scenario = replace(scenario, nodes=QUICK_NODES, months=QUICK_MONTHS)
    names = [name.strip() for name in strategies.split(",") if name.strip()]
    run = Economy(scenario, chosen(names, strategy_file or []))
    tally = run.run(_progress(scenario.steps))
    if html is not None:
        html.write_text(report.page(tally), "utf-8")
        say(f"The report is in {html}.")
    if as_json:
        print_json(tally.as_json())
    else:
        _show(tally)
    if not quick and (missed := report.shortcomings(tally)):
        raise CommandRefused("Not everything holds that must: " + " ".join(missed))


def _progress(steps: int) -> Callable[[int], None]:
    """Says how far a run is, ten times."""

    def say_progress(step: int) -> None:
        if 10 * (step + 1) // steps > 10 * step // steps:
            say(f"{10 * (10 * (step + 1) // steps)} %")

    return say_progress


def _show(tally: "EconomyTally") -> None:
    columns = ("strategy", "profit", "95 % interval", "ahead", "people", "found", "days to finding")
    rows: list[Sequence[str]] = [
        (
            name,
            f"{outcome.profit_vs_honest:+.2%}",
            f"{outcome.ci95[0]:+.2%} … {outcome.ci95[1]:+.2%}",
            f"{outcome.share_ahead:.2%}",
            str(outcome.people),
            f"{outcome.found_share:.0%}",
            "–" if outcome.detection_days is None else f"{outcome.detection_days:g}",
        )
        for name, outcome in tally.outcomes.items()
    ]
    print_table(columns, rows)
    figures = tally.as_json()
    print_line(f"checks: {figures['audit_overhead_pct']} % of all work after the first month")
    print_line(f"honest stakes lost: {figures['honest_stake_losses_per_100k']} in 100,000 results")
    print_line(f"wrong results delivered: {figures['wrong_results_delivered_ppm']} in a million")
