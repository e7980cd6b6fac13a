"""Results about which an operator is asked: right ones, with times that cannot be true, that no house node executed.

Nothing is paid and nobody is blamed until somebody has decided. Whoever verifies then judges by the decision.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.events import ReviewAsked, ReviewDecided
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal
from tidemill.core.trust.reviews import ReviewDecision, ReviewRefusal
from tidemill.store.events import events
from tidemill.store.query import Connection, Query

if TYPE_CHECKING:  # judging loads numpy, which a command has no use for
    from tidemill.core.trust.checks.judgement import UncheckedResult


class Review(NamedTuple):
    """A result that waits for a decision, and why."""

    attempt_id: UUID
    node_id: UUID
    owner_id: UUID
    customer_id: UUID
    job_id: UUID
    task_id: UUID
    doubt: str
    asked_at: Instant


_ASK = Query("trust/review/ask", UUID)
_LIST = Query("trust/review/list", Review)
_DECIDE = Query("trust/review/decide", UUID)


async def ask(transaction: Connection, result: "UncheckedResult", doubt: str, ids: Ids, now: Instant) -> bool:
    """Ask an operator about a result. False if somebody was asked before, or the result is judged."""
    row = await _ASK.row(transaction, attempt_id=result.attempt_id, lease=result.lease, doubt=doubt, now=now)
    if row is not None:
        asked = ReviewAsked(result.owner_id, result.node_id, result.attempt_id, doubt)
        await events.append(transaction, [asked], ids, now)
    return row is not None


async def listed(connection: Connection, after: UUID | None, limit: int) -> Sequence[Review]:
    """The results that wait for a decision, the oldest first."""
    return await _LIST.rows(connection, attempt_id=None, after=after, limit=limit)


async def decide(
    transaction: Connection, attempt_id: UUID, verdict: ReviewDecision, *, reason: str, by: str, ids: Ids, now: Instant
) -> Review | Refusal:
    """Decide whether a result is paid. Returns what was decided on."""
    kept = checked_reason(reason)
    if isinstance(kept, ReasonRefusal):
        return kept
    review = await _LIST.row(transaction, attempt_id=attempt_id, after=None, limit=1)
    decided = await _DECIDE.row(transaction, attempt_id=attempt_id, decided=verdict.value, by=by, reason=kept)
    if review is None or decided is None:
        return ReviewRefusal.REVIEW_UNKNOWN
    event = ReviewDecided(review.owner_id, review.node_id, attempt_id, verdict.value, kept, by)
    await events.append(transaction, [event], ids, now)
    return review
