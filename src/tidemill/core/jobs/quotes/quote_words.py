"""A quote in words: its one line, what to know before confirming it, and numbers as people write them. Pure.

No number is in scientific form, no range has equal ends, and nothing is said that the quote does not hold.
"""

from typing import TYPE_CHECKING

from tidemill.core.money import amount_words, credits_of
from tidemill.core.placement.supply import SPREAD, START_MS

if TYPE_CHECKING:
    from tidemill.core.jobs.quotes.fit import Fit
    from tidemill.core.jobs.quotes.quote import Quote

SAME_BYTES = "The same input must give the same bytes: a house node runs it again to check."
NO_HOUSE = (
    "No house node that is online can check such work yet. Where the pool has just started, try again in a few "
    "seconds; else the result would wait for one, for a day or so, and then the money goes back."
)
NO_NODE = "No node that is online can do it: the job would wait until one comes."
NOBODY_ONLINE = (
    "No node that is online can do it: none is. Where the pool has just started, try again in a few seconds."
)
_UNITS = (("days", 86_400, 2), ("h", 3_600, 1), ("min", 60, 2), ("s", 1, 0))
_NAMES = ("", " thousand", " million", " billion", " trillion", " quadrillion", " quintillion")


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in its largest fitting unit: 0.2 s, 3 s, 40 min, 18 h, 185 days."""
    name, length_s = _unit(seconds)
    value = seconds / length_s
    return f"{value:.1f} {name}" if value < 1 and round(value, 1) else f"{max(1, round(value)):,} {name}"


def durations(least_s: float, most_s: float) -> str:
    """A range of times, with its unit once if both ends have the same."""
    least, most = duration(least_s), duration(most_s)
    if least == most:
        return most
    same_unit = least.rpartition(" ")[2] == most.rpartition(" ")[2]
    return f"{least.rpartition(' ')[0] if same_unit else least} to {most}"


def span(low_uc: int, high_uc: int) -> str:
    """A range of amounts; a single one if its ends are equal."""
    return credits_of(low_uc) if low_uc == high_uc else f"{credits_of(low_uc)} to {credits_of(high_uc)}"


def spoken(amount: float) -> str:
    """A large number with two digits that count: 17 billion."""
    power = 0
    while amount >= 1_000 and power < len(_NAMES) - 1:
        amount, power = amount / 1_000, power + 1
    return f"{amount:.2g}{_NAMES[power]}" if amount < 100 else f"{amount:,.0f}{_NAMES[power]}"


def summary_of(quote: "Quote", currency: str) -> str:
    """The quote in one line: `at most 0.0001 credits, about 3 s, 4 of 5 nodes fit`."""
    price = f"at most {amount_words(quote.high_uc, currency)}"
    nodes = _fit_words(quote.fit)
    work = f"{counted(quote.tasks, 'task')}, " if quote.has_runner and quote.tasks > 1 else ""
    return f"{work}{price}, {_time(quote)}, {nodes}"


def notes_of(quote: "Quote") -> list[str]:
    """What to know before confirming."""
    if not quote.has_runner:
        return list(quote.reasoning[:1])
    notes = [SAME_BYTES] if quote.is_rerun and quote.is_own_program else []
    if quote.fit.relax is not None:
        notes.append(quote.fit.relax.sentence)
    if not quote.nodes:
        return [*notes, *filter(None, [quote.fit.lack]), NO_NODE if quote.fit.of else NOBODY_ONLINE]
    return [*notes, NO_HOUSE] if quote.is_checkable and quote.is_rerun and not quote.has_house else notes


def fit_told(fit: "Fit") -> tuple[str, ...]:
    """How many nodes fit, and what would let more of them in."""
    told = f"{_fit_words(fit)}."
    told = told[0].upper() + told[1:]
    return (told,) if fit.relax is None else (told, fit.relax.sentence)


def _fit_words(fit: "Fit") -> str:
    return (
        f"{fit.nodes:,} of {counted(fit.of, 'node')} {'fits' if fit.nodes == 1 else 'fit'}"
        if fit.nodes
        else "no node fits"
    )


def _time(quote: "Quote") -> str:
    least_s, most_s = quote.hours_low * 3600, quote.hours_high * 3600
    if not quote.has_runner:
        return durations(least_s, most_s)
    return (
        f"up to {duration(most_s)}" if quote.is_own_program else f"about {duration(least_s * SPREAD + START_MS / 1000)}"
    )


def _unit(seconds: float) -> tuple[str, int]:
    return next(((name, length_s) for name, length_s, least in _UNITS if seconds >= least * length_s), ("s", 1))
