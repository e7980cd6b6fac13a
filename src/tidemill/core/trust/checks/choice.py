"""How a result is checked: one decision for each, by the cheapest sufficient way.

A result that the customer knows is compared with that. A house node's result is the pool's own. A result that can be
proved from the inputs is proved. Every other result is executed again by a house node and compared; none goes
unchecked, and sealed results are opened first. Which of them a draw may skip will be decided here, too, once owners
have a record.
"""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.trust.checks.task_checks import is_provable

THE_POOL = UUID(int=0)
"""The account that orders audits: nobody's, so no customer sees them among their tasks, waits or pays for them."""


class CheckManner(Enum):
    EXPECTED = "The customer knows the hash of the result."
    TRUSTED = "A house node computed it."
    PROVED = "The pool checks it against the inputs, without computing it."
    REPEATED = "A house node executes the task once more, and the two results are compared."


@dataclass(frozen=True)
class ResultFacts:
    """What is known of a result before any of it is read."""

    task: Task
    is_expected: bool
    """Whether the customer knows it."""

    by_house: bool


def manner_of(delivered: ResultFacts) -> CheckManner:
    """How to check a result."""
    if delivered.is_expected:
        return CheckManner.EXPECTED
    if delivered.by_house:
        return CheckManner.TRUSTED
    return CheckManner.PROVED if is_provable(delivered.task) else CheckManner.REPEATED
