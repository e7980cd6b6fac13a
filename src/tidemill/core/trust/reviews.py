"""What operators decide about results that nobody else can judge."""

from enum import StrEnum

from tidemill.core.refusals import Refusal


class ReviewDecision(StrEnum):
    """What an operator decides about a result."""

    PASS = "pass"  # noqa: S105  # a decision, no secret
    FAIL = "fail"


class ReviewRefusal(Refusal):
    REVIEW_UNKNOWN = "No result of this attempt waits for a decision: see `tidemill trust reviews` for those that do."
