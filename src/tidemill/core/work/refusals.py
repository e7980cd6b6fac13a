"""Why something is not done to a job."""

from tidemill.core.refusals import Refusal


class JobRefusal(Refusal):
    UNKNOWN_JOB = "There is no such job: look at your list of jobs."
    JOB_NOT_QUOTED = "Only a quoted job can be confirmed: ask for a quote first."
    QUOTE_EXPIRED = "The quote has expired: ask for a new one, and confirm that."
    JOB_OVER = "The job is over; nothing was changed."
    BUDGET_TOO_SMALL = "The quote's upper end is above your budget: raise max_budget, or order less."
