"""The reason an operator gives. It is stored with the action, and shown to everybody."""

import unicodedata

from tidemill.core.refusals import Refusal

REASON_MAX = 500


class ReasonRefusal(Refusal):
    REASON_MISSING = "Say why: a reason is kept with whatever an operator does."
    REASON_TOO_LONG = f"The reason is too long: keep it to {REASON_MAX} characters."
    REASON_UNPRINTABLE = "The reason holds characters that cannot be shown: leave out control characters."


def checked_reason(reason: str) -> str | ReasonRefusal:
    """The reason as it is stored."""
    reason = reason.strip()
    if not reason:
        return ReasonRefusal.REASON_MISSING
    if len(reason) > REASON_MAX:
        return ReasonRefusal.REASON_TOO_LONG
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in reason):
        return ReasonRefusal.REASON_UNPRINTABLE
    return reason
