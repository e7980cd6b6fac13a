"""The report of runs as one HTML page: what the pool did, and beside it what it would have done."""

from collections.abc import Callable, Sequence
from typing import Any

from tidemill.sim import page as pages
from tidemill.sim import plots
from tidemill.sim.days.tally import DayTally, RunResults

Named = Sequence[tuple[str, DayTally]]


def page(runs: Named, description: str) -> str:
    """One run, or several to be compared, the first being the pool as it is. `description` says what was simulated."""
    clock = _clock(len(runs[0][1].samples.busy_pct))
    sections = [
        f"<h1>{'A pool’s day' if len(runs) == 1 else 'What if?'}</h1>",
        pages.paragraph(description),
        pages.table(("", *(name for name, _ in runs)), _rows([_shown(tally).figures for _, tally in runs])),
        "<h2>How busy devices are</h2>",
        plots.lines(_over(runs, lambda tally: tally.samples.busy_pct), " %", clock),
        "<h2>Nodes that are there</h2>",
        plots.lines(_over(runs, lambda tally: tally.samples.nodes), "", clock),
        "<h2>Tasks that wait</h2>",
        plots.lines(_over(runs, lambda tally: tally.samples.waiting), "", clock),
        "<h2>How long tasks wait for their first node</h2>",
        pages.paragraph("In minutes, by the hour in which they were ordered."),
        plots.lines(_waits(runs), " min", clock),
        "<h2>Fairness between customers</h2>",
        pages.paragraph("The share of their tasks’ time that was work and not waiting, from the least to the most."),
        plots.lines(_over(runs, lambda tally: _shown(tally).customers), " %", _RANKS),
        "<h2>Fairness between providers</h2>",
        pages.paragraph(
            "How much of the time that their devices were there they were busy, from the least to the most."
        ),
        plots.lines(_over(runs, lambda tally: _shown(tally).providers), " %", _RANKS),
        "<h2>Fragmentation</h2>",
        pages.paragraph(
            "The share of free devices that what is ordered cannot use, though their machines would be large enough."
        ),
        plots.lines(_over(runs, lambda tally: tally.samples.fragmentation_pct), " %", clock),
        "<h2>What a device-hour costs</h2>",
        pages.paragraph("The price of the devices at which work is under way, in credits, without commission."),
        plots.lines(_over(runs, lambda tally: tally.samples.price), "", clock),
        "<h2>What became of attempts</h2>",
        pages.table(("", *(name for name, _ in runs)), _counts(runs)),
    ]
    return pages.page("a pool’s day" if len(runs) == 1 else "what if?", sections)


_RANKS = ("least", "", "half", "", "most")

_FIGURES: Sequence[tuple[str, Callable[[dict[str, Any]], str]]] = (
    ("nodes", lambda figures: f"{figures['nodes']:,}"),
    ("of them there, in the mean", lambda figures: f"{figures['nodes_there_mean']:,.0f}"),
    ("tasks ordered", lambda figures: f"{figures['tasks']:,}"),
    ("completed", lambda figures: f"{figures['tasks_by_end'].get('completed', 0):,}"),
    ("failed", lambda figures: f"{figures['tasks_by_end'].get('failed', 0):,}"),
    ("cancelled or out of time", lambda figures: f"{figures['tasks_by_end'].get('cancelled', 0):,}"),
    ("not over at the end", lambda figures: f"{figures['tasks_by_end']['open']:,}"),
    ("devices busy", lambda figures: f"{figures['busy_pct']:.1f} %"),
    ("wait for the first node, mean", lambda figures: spoken(figures["wait_s"]["mean"])),
    ("half wait at most", lambda figures: spoken(figures["wait_s"]["p50"])),
    ("of twenty, nineteen at most", lambda figures: spoken(figures["wait_s"]["p95"])),
    ("of a hundred, ninety-nine at most", lambda figures: spoken(figures["wait_s"]["p99"])),
    ("most tasks waiting at once", lambda figures: f"{figures['waiting_most']:,.0f}"),
    ("fairness between customers (1 is even)", lambda figures: f"{figures['fairness']['customers']:.3f}"),
    ("fairness between providers (1 is even)", lambda figures: f"{figures['fairness']['providers']:.3f}"),
    ("fragmentation", lambda figures: f"{figures['fragmentation_pct']:.1f} %"),
    ("credits spent by customers", lambda figures: f"{figures['spent']:,.2f}"),
    ("credits for a device-hour, all in", lambda figures: f"{figures['cost_per_device_hour']:.4f}"),
)


def rows(runs: Named) -> list[tuple[str, ...]]:
    """The figures as people read them, a row each."""
    return _rows([_shown(tally).figures for _, tally in runs])


def spoken(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _rows(figures: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [(name, *(show(run_figures) for run_figures in figures)) for name, show in _FIGURES]


def _counts(runs: Named) -> list[tuple[str, ...]]:
    attempts = [_shown(tally).figures["attempts"] for _, tally in runs]
    names = sorted({name for counts in attempts for name in counts})
    return [(name.replace("_", " "), *(f"{counts.get(name, 0):,}" for counts in attempts)) for name in names]


def _over(runs: Named, values: Callable[[DayTally], Sequence[float]]) -> list[tuple[str, Sequence[float]]]:
    return [(name, values(tally)) for name, tally in runs]


def _waits(runs: Named) -> list[tuple[str, Sequence[float]]]:
    """Half and nineteen of twenty; the colours go in pairs."""
    words = {"p50": "half", "p95": "19 of 20"}
    return [
        (f"{name}: {word}" if len(runs) > 1 else word, _shown(tally).waits_by_hour[quantile])
        for quantile, word in words.items()
        for name, tally in runs
    ]


def _clock(samples: int) -> list[str]:
    """Seven moments from the first sample to the last."""
    hours = (samples - 1) / 6
    return [f"{hours * at / 6:g} h" for at in range(7)]


def _shown(tally: DayTally) -> RunResults:
    assert tally.shown is not None, "a report is of runs that are over"
    return tally.shown
