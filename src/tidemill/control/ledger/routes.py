"""The operators' routes to the books: accounts, statements, holds, adjustments, and freezing.

Amounts are decimal credits. An adjustment takes two operators: one proposes it, another approves it.
"""

from dataclasses import asdict
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import AwareDatetime, BaseModel, Field, WithJsonSchema

from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit
from tidemill.control.http.exact_numbers import ExactRoute
from tidemill.control.http.idempotency import IdempotencyPart
from tidemill.control.http.problems import RouteRefused, documented, unless_refused, unless_too_new
from tidemill.control.http.references import AdjustmentId, LedgerAccountFilter, LedgerAccountId, OwnerFilter
from tidemill.control.http.views import API, Credits, OperatorReason, Timestamp, View
from tidemill.control.ledger.statements import statement_csv
from tidemill.core.clock import Instant, as_instant
from tidemill.core.currency import CREDIT, kept_currency, shown_currency
from tidemill.core.ledger import AccountKind, Adjustment, AdjustmentState, PostingRefusal
from tidemill.core.money import credits_of, micro_credits
from tidemill.store.accounts import operator_words
from tidemill.store.ledger import adjustments, books
from tidemill.store.ledger.books import Balance
from tidemill.store.operations.idempotent_answers import HttpAnswer
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/ledger", tags=["ledger"], route_class=ExactRoute)

_CSV: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole statement.", "content": {"text/csv": {"schema": {"type": "string"}}}}
}
_LINE_MAX = 2**63 - 1

Amount = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})]
"""As it was written, for `micro_credits` to judge."""


class LedgerAccountView(View):
    id: UUID
    kind: AccountKind
    owner: UUID | None = Field(validation_alias="owner_id")
    address: str | None = Field(validation_alias="owner_address", description="The owner's, if it is an account's.")
    name: str
    currency: str
    frozen: bool
    posted: Credits = Field(validation_alias="posted_uc")
    held: Credits = Field(validation_alias="held_uc", description="How much of what is posted is reserved.")
    available: Credits = Field(validation_alias="available_uc")


class LedgerAccountThenView(LedgerAccountView):
    posted_then: str | None = Field(None, description="What was posted up to the time `at`, if that was asked for.")


class LedgerAccountPage(BaseModel):
    items: list[LedgerAccountView]
    has_more: bool
    after: UUID | None


class StatementLineView(View):
    number: int = Field(description="The order of posting.")
    id: UUID
    at: Timestamp
    kind: str
    cause: str
    counterpart: UUID = Field(validation_alias="counterpart_id")
    amount: Credits = Field(validation_alias="amount_uc", description="Negative for what went out.")
    currency: str


class StatementPage(BaseModel):
    items: list[StatementLineView]
    has_more: bool
    after: int | None


class HoldView(View):
    id: UUID
    account: UUID = Field(validation_alias="account_id")
    amount: Credits = Field(validation_alias="amount_uc")
    captured: Credits = Field(validation_alias="captured_uc")
    currency: str
    expires_at: Timestamp
    cause: str
    at: Timestamp


class HoldPage(BaseModel):
    items: list[HoldView]
    has_more: bool


class AdjustmentView(View):
    id: UUID
    debit: UUID = Field(validation_alias="debit_id")
    credit: UUID = Field(validation_alias="credit_id")
    amount: Credits = Field(validation_alias="amount_uc")
    currency: str
    reason: str
    state: AdjustmentState
    proposed_by: str
    proposed_at: Timestamp
    decided_by: str | None
    decided_at: Timestamp | None


class ProposedAdjustmentView(AdjustmentView):
    approvable_from: Timestamp | None = Field(
        None, description="From when another operator's approval counts; null while there is no other operator."
    )


V = TypeVar(
    "V",
    LedgerAccountView,
    LedgerAccountThenView,
    StatementLineView,
    HoldView,
    AdjustmentView,
    ProposedAdjustmentView,
)
"""The views that show amounts and their currency."""


class AdjustmentPage(BaseModel):
    items: list[AdjustmentView]
    has_more: bool
    after: UUID | None


class Proposal(OperatorReason):
    """An adjustment that is asked for."""

    debit: UUID = Field(description="The account that the money leaves.")
    credit: UUID = Field(description="The account that it goes to.")
    amount: Amount = Field(description="Credits, with up to six places.")
    currency: str = CREDIT


@router.get("/accounts", responses=documented(401, 403, 404, 409, 422))
async def list_accounts(
    control: ControlPart,
    most: PageLimit,
    owner: OwnerFilter,
    kind: AccountKind | None = None,
    after: UUID | None = None,
) -> LedgerAccountPage:
    """The accounts and what is on them, in the order of their ids."""
    async with control.route_database.connection() as connection:
        page = await books.balances(connection, kind=kind, owner_id=owner, after=after, limit=most + 1)
    items = [_view_of(LedgerAccountView, account, control) for account in page[:most]]
    return LedgerAccountPage(items=items, has_more=len(page) > most, after=items[-1].id if items else after)


@router.get("/accounts/{account_id}", responses=documented(401, 403, 404, 410, 422))
async def show_account(
    account_id: LedgerAccountId, control: ControlPart, at: AwareDatetime | None = None
) -> LedgerAccountThenView:
    """What is on an account, and what was on it at a time."""
    async with control.route_database.connection() as connection:
        view = _view_of(LedgerAccountThenView, await _account(connection, account_id), control)
        if at is None:
            return view
        posted_uc = await books.balance_at(connection, account_id, as_instant(at))
    return view.model_copy(update={"posted_then": credits_of(unless_refused(posted_uc))})


@router.get(
    "/accounts/{account_id}/statement",
    response_model=StatementPage,
    responses={200: {**_CSV[200], "description": "A page, or all of it as CSV."}, **documented(401, 403, 404, 422)},
)
async def show_statement(
    account_id: LedgerAccountId,
    request: Request,
    control: ControlPart,
    most: PageLimit,
    after: Annotated[int | None, Query(ge=1, le=_LINE_MAX, description="The number of the last line seen.")] = None,
) -> Response | StatementPage:
    """What moved on an account, newest first: a page, or all of it with `Accept: text/csv`."""
    async with control.route_database.connection() as connection:
        account = await _account(connection, account_id)
        if "text/csv" in request.headers.get("accept", ""):
            return _whole_statement(control, account)
        lines = await books.statement(connection, account_id, after, most + 1)
    items = [
        _view_of(StatementLineView, {**asdict(line), "currency": account.currency}, control) for line in lines[:most]
    ]
    return StatementPage(items=items, has_more=len(lines) > most, after=items[-1].number if items else after)


@router.get(
    "/accounts/{account_id}/statement.csv",
    response_class=StreamingResponse,
    responses={**_CSV, **documented(401, 403, 404, 422)},
)
async def download_statement(account_id: LedgerAccountId, control: ControlPart) -> Response:
    """All that moved on an account, newest first, as CSV; months that were archived are in their files."""
    async with control.route_database.connection() as connection:
        account = await _account(connection, account_id)
    return _whole_statement(control, account)


@router.get("/holds", responses=documented(401, 403, 404, 409, 422))
async def list_holds(control: ControlPart, most: PageLimit, account: LedgerAccountFilter) -> HoldPage:
    """The holds of which something is left, those that expire soonest first."""
    async with control.route_database.connection() as connection:
        page = await books.open_holds(connection, account, most + 1)
    return HoldPage(items=[_view_of(HoldView, hold, control) for hold in page[:most]], has_more=len(page) > most)


@router.get("/adjustments", responses=documented(401, 403, 422))
async def list_adjustments(
    control: ControlPart,
    most: PageLimit,
    state: AdjustmentState | None = None,
    after: UUID | None = None,
) -> AdjustmentPage:
    """The adjustments, newest first."""
    async with control.route_database.connection() as connection:
        page = await adjustments.adjustments(connection, state=state, before=after, limit=most + 1)
    items = [_view_of(AdjustmentView, adjustment, control) for adjustment in page[:most]]
    return AdjustmentPage(items=items, has_more=len(page) > most, after=items[-1].id if items else after)


@router.post(
    "/adjustments",
    status_code=201,
    response_model=ProposedAdjustmentView,
    responses=documented(400, 401, 403, 404, 413, 422),
)
async def propose(proposal: Proposal, control: ControlPart, caller: CallerPart, once: IdempotencyPart) -> Response:
    """Propose a transfer by hand. It is posted when another operator approves it."""
    amount_uc = unless_refused(micro_credits(proposal.amount))
    currency = kept_currency(proposal.currency, control.settings.money)

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        terms = (proposal.debit, proposal.credit, amount_uc, currency, proposal.reason)
        proposed = Adjustment(control.ids.new(now), *terms, caller.name, now)
        word = await operator_words.read(transaction, caller.name, control.settings.trail)
        adjustment = await adjustments.propose_adjustment(transaction, proposed, word, control.ids)
        kept = unless_too_new(adjustment, word)
        counts_from = await operator_words.others_count_from(transaction, caller.name, control.settings.trail)
        return _answer(201, ProposedAdjustmentView, {**asdict(kept), "approvable_from": counts_from}, control)

    return await once.answer(effect)


@router.post(
    "/adjustments/{adjustment_id}/approve",
    response_model=AdjustmentView,
    responses=documented(400, 401, 402, 403, 404, 409, 413, 422),
)
async def approve(
    adjustment_id: AdjustmentId, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Approve what another operator has proposed, and post it."""
    return await _settle(control, once, adjustment_id, caller.name, approve=True)


@router.post(
    "/adjustments/{adjustment_id}/reject",
    response_model=AdjustmentView,
    responses=documented(400, 401, 403, 404, 409, 413, 422),
)
async def reject(
    adjustment_id: AdjustmentId, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Reject an adjustment, or take one's own back."""
    return await _settle(control, once, adjustment_id, caller.name, approve=False)


@router.post(
    "/accounts/{account_id}/freeze",
    response_model=LedgerAccountView,
    responses=documented(400, 401, 403, 404, 409, 413, 422),
)
async def freeze(
    account_id: LedgerAccountId, why: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Freeze an account: nothing moves on it, except what is given back to it."""
    return await _set_frozen(control, once, account_id, caller.name, why.reason, frozen=True)


@router.post(
    "/accounts/{account_id}/unfreeze",
    response_model=LedgerAccountView,
    responses=documented(400, 401, 403, 404, 409, 413, 422),
)
async def unfreeze(
    account_id: LedgerAccountId, why: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Let money move on an account again."""
    return await _set_frozen(control, once, account_id, caller.name, why.reason, frozen=False)


async def _account(connection: Connection, account_id: UUID) -> Balance:
    balances = await books.balances(connection, ids=[account_id])
    if not balances:
        raise RouteRefused(PostingRefusal.UNKNOWN_ACCOUNT)
    return balances[0]


def _whole_statement(control: Control, account: Balance) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "Content-Disposition": f'attach; filename="statement-{account.id}.csv"'}
    return StreamingResponse(statement_csv(control, account), media_type="text/csv", headers=headers)


async def _settle(control: Control, once: IdempotencyPart, adjustment_id: UUID, by: str, *, approve: bool) -> Response:
    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        word = await operator_words.read(transaction, by, control.settings.trail)
        settled = await adjustments.settle_adjustment(
            transaction, adjustment_id, approve=approve, word=word, ids=control.ids, now=now
        )
        return _answer(200, AdjustmentView, unless_too_new(settled, word), control)

    return await once.answer(effect)


async def _set_frozen(
    control: Control, once: IdempotencyPart, account_id: UUID, by: str, reason: str, *, frozen: bool
) -> Response:
    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        changed = await adjustments.set_frozen(
            transaction, account_id, frozen=frozen, reason=reason, by=by, ids=control.ids, now=now
        )
        return _answer(200, LedgerAccountView, changed, control)

    return await once.answer(effect)


def _view_of(view: type[V], value: object, control: Control) -> V:
    """A view with the pool's own name for the currency."""
    shown = view.model_validate(value)
    return shown.model_copy(update={"currency": shown_currency(shown.currency, control.settings.money)})


def _answer(status: int, view: type[V], value: object, control: Control) -> HttpAnswer:
    """The answer with a view of a value. A refusal is raised, so that the transaction is rolled back."""
    return HttpAnswer(status, _view_of(view, unless_refused(value), control).model_dump_json().encode())
