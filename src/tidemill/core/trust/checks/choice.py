"""How a result is to be checked: one decision for each, by the cheapest way that is enough.

What the customer knows is compared with that. What a house node computed is the pool's own. What can be proved from the
inputs is proved. Everything else is executed once more by a house node and compared; there is no result that nobody
looks at, and what is sealed is opened first. Which of those may be left to a draw is to be decided here too, once
owners have a record to draw by.
"""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.trust.checks.task_checks import is_provable

THE_POOL = UUID(int=0)
"""Who orders audits: no account, so no customer sees them among their tasks, waits for them or pays for them."""


class CheckManner(Enum):
    EXPECTED = "The customer knows the hash of the result."
    TRUSTED = "A house node computed it."
    PROVED = "The pool checks it against the inputs, without computing it."
    REPEATED = "A house node executes the task once more, and the two results are compared."


@dataclass(frozen=True)
class ResultFacts:
    """What is known of a result before anything of it is read."""

    task: Task
    is_expected: bool
    """Whether the customer knows it."""

    by_house: bool


def manner_of(delivered: ResultFacts) -> CheckManner:
    """How a result is to be checked."""
    if delivered.is_expected:
        return CheckManner.EXPECTED
    if delivered.by_house:
        return CheckManner.TRUSTED
    return CheckManner.PROVED if is_provable(delivered.task) else CheckManner.REPEATED
