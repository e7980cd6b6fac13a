"""What happens to a letter after a try: sent, tried again, or given up.

A server's 5xx is final, with one exception: answers about rights and policy (5.7.x, and "authenticate first") concern
us, not the letter, and an operator can fix that. No letter is given up before its time for any other reason.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.clock import SECOND, Instant
from tidemill.core.pace import Backoff

_ABOUT_US = frozenset({530, 534, 535, 538})
_POLICY = re.compile(r"5\.7\.\d{1,3}\b")


class FailureCause(StrEnum):
    """Why a letter will never arrive."""

    REJECTED = "rejected"
    TOO_LATE = "too_late"


@dataclass(frozen=True)
class RetryRules:
    """How long the waits between tries are, and when a letter is too old to be of use."""

    waits: Backoff
    give_up_us: int


def is_final(code: int, answer: str) -> bool:
    """Whether a server's refusal of a letter will stay the same however often we try."""
    return code >= 500 and code not in _ABOUT_US and not _POLICY.match(answer)


def is_too_late(rules: RetryRules, *, tried_since: Instant, now: Instant) -> bool:
    return now - tried_since >= rules.give_up_us


def next_try(rules: RetryRules, *, tried_since: Instant, tries: int, now: Instant) -> Instant:
    """When to try again after so many tries. The last try is made when the time is over."""
    wait_us = int(rules.waits.after(tries, 0.0) * SECOND)
    return Instant(min(now + wait_us, max(now, tried_since + rules.give_up_us)))
