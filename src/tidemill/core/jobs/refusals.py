"""Why an action on a job is refused."""

from tidemill.core.refusals import Refusal


class JobRefusal(Refusal):
    UNKNOWN_JOB = "There is no such job: `tidemill jobs list` shows yours."
    JOB_NOT_QUOTED = "Only a quoted job can be confirmed: ask for a quote first."
    QUOTE_EXPIRED = "The quote has expired: ask for a new one, and confirm that."
    JOB_OVER = "The job is over; nothing was changed."
    BUDGET_TOO_SMALL = "The quote's upper end is above your budget: extend the job with a larger one, or order less."
    TOO_MANY_UNCONFIRMED = (
        "You have ordered as many jobs without confirming them as there may be, those called off among them: confirm "
        "some, or wait until the oldest are forgotten."
    )
    UNCONFIRMED_TOO_LARGE = (
        "The orders that you have not confirmed take as much space as they may: confirm some, wait until the oldest "
        "are forgotten, or send what is large as artefacts."
    )
    NO_RUNNER = "No node carries out this kind of work yet: it can be quoted, and not confirmed. Order another kind."
    UNCHECKABLE = (
        "Nobody here could ever check such work: that takes a house node which can run it again, and this pool has "
        "none that carries it out and is large enough. Order smaller tasks, name the SHA-256 that you expect of each "
        "result (`expected`), or ask the pool's operator for such a house node."
    )
    PRICE_ABOVE_CONFIRMED = "The quote's upper end is above the price that you confirm: look at the quote again first."
    RESULT_NOT_READY = "The job is not over: its results are there once it is. Ask for the job to see how far it is."
    JOB_NOT_CONFIRMED = "The job was not confirmed, so it has no deadline and no results: confirm it first."
    NOTHING_TO_EXTEND = "Nothing is added: say how much more time as `hours`, or name a larger `max_budget`."
    BUDGET_HELD = "All that the job can cost is held already, so its budget says nothing more: only time can be added."
    BUDGET_NOT_LARGER = "The budget is at least as large already: name a larger one."
    DEADLINE_TOO_FAR = "A deadline is at most 90 days away: add less time, or order the rest as a new job."
