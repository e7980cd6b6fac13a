"""The operators' routes to results about which they are asked."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.idempotency import IdempotencyPart
from tidemill.control.http.problems import documented, unless_refused
from tidemill.control.http.references import ReviewedAttemptId
from tidemill.control.http.views import API, OperatorReason, Timestamp, View
from tidemill.core.clock import Instant
from tidemill.core.trust.reviews import ReviewDecision
from tidemill.store.operations.idempotent_answers import HttpAnswer
from tidemill.store.query import Connection
from tidemill.store.trust import reviews

router = APIRouter(prefix=f"{API}/admin", tags=["admin"], route_class=GuardedRoute)


class ReviewView(View):
    attempt_id: UUID
    node_id: UUID
    owner_id: UUID
    customer_id: UUID
    job_id: UUID
    task_id: UUID
    doubt: str = Field(description="What cannot be true.")
    asked_at: Timestamp


class ReviewPage(BaseModel):
    items: list[ReviewView]
    has_more: bool
    after: UUID | None


class AskedDecision(OperatorReason):
    """A decision, and why."""

    verdict: ReviewDecision = Field(description="Whether the result is paid; one that fails counts as wrong.")


@router.get("/reviews", responses=documented(401, 403, 422))
async def list_reviews(control: ControlPart, most: PageLimit, after: UUID | None = None) -> ReviewPage:
    """Right results with times that cannot be true, which nobody is paid for before an operator has decided."""
    async with control.route_database.connection() as connection:
        page = await reviews.listed(connection, after, most + 1)
    items = [ReviewView.model_validate(review) for review in page[:most]]
    return ReviewPage(items=items, has_more=len(page) > most, after=items[-1].attempt_id if items else None)


@router.post(
    "/reviews/{attempt_id}/decide", response_model=ReviewView, responses=documented(400, 401, 403, 404, 409, 413, 422)
)
async def decide(
    attempt_id: ReviewedAttemptId, asked: AskedDecision, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Decide whether a result is paid."""

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        decided = await reviews.decide(
            transaction, attempt_id, asked.verdict, reason=asked.reason, by=caller.name, ids=control.ids, now=now
        )
        return HttpAnswer(200, ReviewView.model_validate(unless_refused(decided)).model_dump_json().encode())

    return await once.answer(effect)
