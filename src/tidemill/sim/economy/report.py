"""The report of a run as one HTML page that needs nothing else."""

from tidemill.sim import page as pages
from tidemill.sim import plots
from tidemill.sim.economy.cheating_profits import cheating_profits
from tidemill.sim.economy.scenario import DAYS_A_MONTH, STEPS_A_DAY
from tidemill.sim.economy.tally import EconomyTally, StrategyOutcome, larger_share_ahead

JudgedLine = tuple[str, str, str, bool]
"""What must hold, what was found, what is asked, and whether it holds."""


def page(tally: EconomyTally) -> str:
    """Everything a run showed."""
    found, scenario = tally.as_json(), tally.scenario
    cheaters = {name: one for name, one in tally.outcomes.items() if name != "honest"}
    months = [f"day {DAYS_A_MONTH * month}" if month else "day 1" for month in range(scenario.months + 1)]
    sections = [
        f"<h1>Does cheating pay?</h1><p>{scenario.nodes:,} nodes, {scenario.months} months, seed {scenario.seed}; "
        f"{tally.delivered:,} results delivered. Every profit is compared with that of honest owners who had "
        "devices as good at the same age of membership, and luck is taken off.</p>",
        pages.table(("what must hold", "found", "asked"), _goals(tally)),
        "<h2>Profit against honest work</h2>"
        + plots.intervals([(name, one.profit_vs_honest, *one.ci95) for name, one in cheaters.items()]),
        pages.table(
            ("strategy", "profit", "95 % interval", "ahead", "people", "cheated", "found", "days to finding"),
            [_row(name, one) for name, one in tally.outcomes.items()],
        ),
        "<h2>What checks take of all work</h2>" + plots.lines([("checks ÷ work", _days(tally, 0))], " %", months),
        "<h2>Wrong results delivered</h2>" + plots.lines([("wrong ÷ delivered", _days(tally, 1))], " %", months),
        f"<p>{found['wrong_results_delivered_ppm']:,.0f} of a million results were wrong, "
        f"{found['wrong_by_cheating_ppm']:,.0f} by cheating; the rest are errors of hardware.</p>",
        "<h2>Where cheating begins to pay</h2><p>Red: at this stake and this audit rate, one answer that was not "
        "computed is worth more than it must expect to lose. Blue: it is worth less. The line is the rate at which the "
        "rules check an owner with a long record.</p>" + _map(tally),
    ]
    return pages.page("does cheating pay?", sections)


def shortcomings(tally: EconomyTally) -> list[str]:
    """Every sentence about what must hold and does not."""
    judged = (*_judged_profits(tally), *_judged_pool(tally))
    return [f"{what}: {found}, and {wanted} is asked." for what, found, wanted, holds in judged if not holds]


def _judged_profits(tally: EconomyTally) -> list[JudgedLine]:
    return [
        (f"the upper end of {name}'s profit", f"{one.ci95[1]:+.4f}", "below 0", one.ci95[1] < 0)
        for name, one in tally.outcomes.items()
        if name != "honest"
    ]


def _judged_pool(tally: EconomyTally) -> list[JudgedLine]:
    found = tally.as_json()
    cheaters = [(name, one) for name, one in tally.outcomes.items() if name != "honest"]
    overhead, losses = found["audit_overhead_pct"], found["honest_stake_losses_per_100k"]
    counted = sum(one.qualified + one.stopped for _, one in cheaters)
    ahead = larger_share_ahead(one for _, one in cheaters)
    return [
        ("those ahead who cheat on a fifth", f"{ahead:.3%} of {counted}", "at most 0.1 %", ahead <= 0.001),
        ("checks, as a share of all work", f"{overhead} %", "at most 5 %", overhead <= 5),
        ("honest stakes lost in 100,000 results", str(losses), "at most 1", losses <= 1),
    ]


def _goals(tally: EconomyTally) -> list[tuple[str, ...]]:
    """What must hold of the pool, and of profits only the highest: the others are in the table below."""
    profits, others = _judged_profits(tally), _judged_pool(tally)
    highest = [
        ("the highest of all: " + one[0], *one[1:]) for one in sorted(profits, key=lambda row: float(row[1]))[-1:]
    ]
    return [(what, found if holds else f"!{found}", wanted) for what, found, wanted, holds in (*highest, *others)]


def _row(name: str, one: StrategyOutcome) -> tuple[str, ...]:
    low, high = one.ci95
    return (
        name,
        f"{one.profit_vs_honest:+.2%}",
        f"{low:+.2%} … {high:+.2%}",
        f"{one.share_ahead:.2%}",
        f"{one.people:,}",
        f"{one.cheated:,} of {one.tasks:,}",
        f"{one.found_share:.0%}",
        "–" if one.detection_days is None else f"{one.detection_days:g}",
    )


def _days(tally: EconomyTally, column: int) -> list[float]:
    """Means over days, in percent, without the first, in which everything is new."""
    values = [100 * step[column] for step in tally.daily]
    return [sum(values[at : at + STEPS_A_DAY]) / STEPS_A_DAY for at in range(STEPS_A_DAY, len(values), STEPS_A_DAY)]


def _map(tally: EconomyTally) -> str:
    made = cheating_profits(tally.scenario.rules)
    return plots.heat(made.stakes, made.rates, made.profits, made.in_force)
