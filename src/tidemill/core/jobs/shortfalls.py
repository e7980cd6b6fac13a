"""Refusals about the money and the time of a job: which amounts are in the way, and what to type next. Pure."""

from tidemill.core.accounts.keys import KeyRefusal
from tidemill.core.clock import DAY
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.ledger.entries import PostingRefusal
from tidemill.core.money import CREDIT_UC, AmountObjection, amount_words, credits_of


def over_budget(high_uc: int, budget_uc: int, currency: str) -> AmountObjection:
    """The quote's upper end is above the job's budget."""
    high, budget = credits_of(high_uc), credits_of(budget_uc)
    sentence = (
        f"This job can cost up to {amount_words(high_uc, currency)}, and its budget is {budget}: "
        f"give it more with --max-budget {high}, or order less."
    )
    return AmountObjection(JobRefusal.BUDGET_TOO_SMALL, sentence, {"needed": high_uc, "budget": budget_uc})


def price_rose(high_uc: int, at_most_uc: int, currency: str) -> AmountObjection:
    """The quote's upper end is above what the customer confirms."""
    sentence = (
        f"This job can cost up to {amount_words(high_uc, currency)}, and you confirm {credits_of(at_most_uc)}: look at "
        "the quote again with `tidemill jobs quote`, and confirm that."
    )
    return AmountObjection(JobRefusal.PRICE_ABOVE_CONFIRMED, sentence, {"needed": high_uc, "confirmed": at_most_uc})


def balance_short(needed_uc: int, available_uc: int, currency: str) -> AmountObjection:
    """The account has less available than is to be held."""
    sentence = (
        f"This job would hold {amount_words(needed_uc, currency)}, and {credits_of(available_uc)} "
        f"{'is' if available_uc == CREDIT_UC else 'are'} available: order less, call off a job that holds money "
        f"(`tidemill jobs list`), or ask the pool's operator to add {credits_of(needed_uc - available_uc)}."
    )
    return AmountObjection(
        PostingRefusal.INSUFFICIENT_FUNDS, sentence, {"needed": needed_uc, "available": available_uc}
    )


def cap_reached(needed_uc: int, cap_uc: int, spent_uc: int, currency: str) -> AmountObjection:
    """An API key, with those that it replaced, may not spend so much more."""
    sentence = (
        f"This API key may spend {amount_words(cap_uc, currency)} in all, and has spent {credits_of(spent_uc)}; this "
        f"job counts {credits_of(needed_uc)}, the most it can cost: use another key, or make one with a larger cap "
        "(`tidemill keys create NAME --spending-cap AMOUNT`)."
    )
    amounts = {"needed": needed_uc, "cap": cap_uc, "spent": spent_uc}
    return AmountObjection(KeyRefusal.SPENDING_CAP_REACHED, sentence, amounts)


def budget_not_larger(asked_uc: int, budget_uc: int, currency: str) -> AmountObjection:
    """A new budget that is no larger than the old one."""
    sentence = f"The budget is {amount_words(budget_uc, currency)} already: name a larger one with --max-budget."
    return AmountObjection(JobRefusal.BUDGET_NOT_LARGER, sentence, {"asked": asked_uc, "budget": budget_uc})


def deadline_too_far(after_us: int, most_us: int) -> AmountObjection:
    """A deadline further away than any may be. No money is in the way."""
    over_h = -(-(after_us - most_us) * 24 // DAY)
    sentence = (
        f"A deadline is at most {most_us // DAY} days away, and this one would be {after_us / DAY:,.0f}: add at least "
        f"{over_h:,} hours less with --hours, or order the rest as a new job."
    )
    return AmountObjection(JobRefusal.DEADLINE_TOO_FAR, sentence, {})
