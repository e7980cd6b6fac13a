"""The report of a run as one HTML page that needs nothing else."""

from tidemill.sim import page as pages
from tidemill.sim import plots
from tidemill.sim.economy.cheating_profits import cheating_profits
from tidemill.sim.economy.scenario import DAYS_A_MONTH, STEPS_A_DAY
from tidemill.sim.economy.tally import EconomyTally, StrategyOutcome, larger_share_ahead

JudgedLine = tuple[str, str, str, bool]
"""The criterion, the figure found, the required figure, and whether it holds."""


def page(tally: EconomyTally) -> str:
    """Everything that a run showed."""
    figures, scenario = tally.as_json(), tally.scenario
    cheaters = {name: outcome for name, outcome in tally.outcomes.items() if name != "honest"}
    months = [f"day {DAYS_A_MONTH * month}" if month else "day 1" for month in range(scenario.months + 1)]
    sections = [
        f"<h1>Does cheating pay?</h1><p>{scenario.nodes:,} nodes, {scenario.months} months, seed {scenario.seed}; "
        f"{tally.delivered:,} results delivered. Every profit is compared with that of honest owners who had "
        "devices as good at the same age of membership, and luck is taken off.</p>",
        pages.table(("what must hold", "found", "asked"), _goals(tally)),
        "<h2>Profit against honest work</h2>"
        + plots.intervals([(name, outcome.profit_vs_honest, *outcome.ci95) for name, outcome in cheaters.items()]),
        pages.table(
            ("strategy", "profit", "95 % interval", "ahead", "people", "cheated", "found", "days to finding"),
            [_row(name, outcome) for name, outcome in tally.outcomes.items()],
        ),
        "<h2>What checks take of all work</h2>" + plots.lines([("checks ÷ work", _days(tally, 0))], " %", months),
        "<h2>Wrong results delivered</h2>" + plots.lines([("wrong ÷ delivered", _days(tally, 1))], " %", months),
        f"<p>{figures['wrong_results_delivered_ppm']:,.0f} of a million results were wrong, "
        f"{figures['wrong_by_cheating_ppm']:,.0f} by cheating; the rest are errors of hardware.</p>",
        "<h2>Where cheating begins to pay</h2><p>Red: at this stake and this audit rate, one answer that was not "
        "computed is worth more than it must expect to lose. Blue: it is worth less. The line is the rate at which the "
        "rules check an owner with a long record.</p>" + _map(tally),
    ]
    return pages.page("does cheating pay?", sections)


def shortcomings(tally: EconomyTally) -> list[str]:
    """A sentence for each criterion that does not hold."""
    judged = (*_judged_profits(tally), *_judged_pool(tally))
    return [
        f"{criterion}: {figure}, and {required} is asked." for criterion, figure, required, holds in judged if not holds
    ]


def _judged_profits(tally: EconomyTally) -> list[JudgedLine]:
    return [
        (f"the upper end of {name}'s profit", f"{outcome.ci95[1]:+.4f}", "below 0", outcome.ci95[1] < 0)
        for name, outcome in tally.outcomes.items()
        if name != "honest"
    ]


def _judged_pool(tally: EconomyTally) -> list[JudgedLine]:
    figures = tally.as_json()
    cheaters = [(name, outcome) for name, outcome in tally.outcomes.items() if name != "honest"]
    overhead, losses = figures["audit_overhead_pct"], figures["honest_stake_losses_per_100k"]
    counted = sum(outcome.qualified + outcome.stopped for _, outcome in cheaters)
    ahead = larger_share_ahead(outcome for _, outcome in cheaters)
    return [
        ("those ahead who cheat on a fifth", f"{ahead:.3%} of {counted}", "at most 0.1 %", ahead <= 0.001),
        ("checks, as a share of all work", f"{overhead} %", "at most 5 %", overhead <= 5),
        ("honest stakes lost in 100,000 results", str(losses), "at most 1", losses <= 1),
    ]


def _goals(tally: EconomyTally) -> list[tuple[str, ...]]:
    """The criteria for the pool, and of profits only the highest: the others are in the table below."""
    profits, pool_lines = _judged_profits(tally), _judged_pool(tally)
    highest = [
        ("the highest of all: " + line[0], *line[1:]) for line in sorted(profits, key=lambda row: float(row[1]))[-1:]
    ]
    return [
        (criterion, figure if holds else f"!{figure}", required)
        for criterion, figure, required, holds in (*highest, *pool_lines)
    ]


def _row(name: str, outcome: StrategyOutcome) -> tuple[str, ...]:
    low, high = outcome.ci95
    return (
        name,
        f"{outcome.profit_vs_honest:+.2%}",
        f"{low:+.2%} … {high:+.2%}",
        f"{outcome.share_ahead:.2%}",
        f"{outcome.people:,}",
        f"{outcome.cheated:,} of {outcome.tasks:,}",
        f"{outcome.found_share:.0%}",
        "–" if outcome.detection_days is None else f"{outcome.detection_days:g}",
    )


def _days(tally: EconomyTally, column: int) -> list[float]:
    """Means over days, in percent, without the first day, on which everything is new."""
    values = [100 * step[column] for step in tally.daily]
    return [sum(values[at : at + STEPS_A_DAY]) / STEPS_A_DAY for at in range(STEPS_A_DAY, len(values), STEPS_A_DAY)]


def _map(tally: EconomyTally) -> str:
    map_ = cheating_profits(tally.scenario.rules)
    return plots.heat(map_.stakes, map_.rates, map_.profits, map_.in_force)
