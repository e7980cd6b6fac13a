"""The views of jobs, quotes and results."""

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from tidemill.control.http.views import Credits, Timestamp, View
from tidemill.core.clock import Instant
from tidemill.core.currency import CREDIT
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.plans.job_changes import why_not
from tidemill.core.jobs.private_results import envelope_for
from tidemill.core.jobs.quotes.order import read_result_key
from tidemill.core.jobs.quotes.quote import Quote, quote_from_json
from tidemill.core.jobs.quotes.quote_words import notes_of, summary_of
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.results import ReaderKey
from tidemill.core.money import credits_of
from tidemill.core.settings.sections.money import MoneySettings
from tidemill.store.jobs.job_views import Job, TaskResult

SEEN_BY_ALL = "The pool and the nodes that compute it see the order, its inputs and its results."
SEEN_BY_YOU = (
    "Only you and the pool's verification can open the results. The pool and the nodes that compute it see the order "
    "and its inputs; each node sees what it computes; what tasks print is not sealed."
)

Hours = Annotated[float, BeforeValidator(lambda hours: round(hours, 6))]


class QuoteLineView(View):
    what: str
    low: Credits = Field(validation_alias="low_uc")
    high: Credits = Field(validation_alias="high_uc")
    why: str


class RelaxationView(View):
    """One limit of the order, relaxed."""

    model_config = ConfigDict(serialize_by_alias=True)

    field: str = Field(description="The field of the order, such as gpu_memory or parameters.memory_mib.")
    before: str = Field(alias="from", validation_alias=AliasChoices("before", "from"))
    to: str = Field(description="What it would have to be; empty where it would be left out.")
    nodes: int = Field(description="How many nodes would fit then.")
    sentence: str


class FitView(View):
    """How many nodes could have a task if they had nothing else to do."""

    nodes: int
    of: int = Field(description="How many nodes may get work now.")
    relax: RelaxationView | None = Field(description="Where few fit: the one limit that lets most of the others in.")


class QuoteView(View):
    kind: str
    size: str = Field(description="light, medium, heavy or parallel, by the devices that could be used at once.")
    tasks: int
    nodes: int = Field(description="How many of the nodes that fit the price covers, the cheapest first.")
    fit: FitView
    devices: int = Field(description="GPUs of one task; 0 works with processors.")
    memory_mib: int
    gpu_memory_mib: int
    low: Credits = Field(validation_alias="low_uc")
    high: Credits = Field(validation_alias="high_uc", description="All that it can cost; held when it is confirmed.")
    currency: str = CREDIT
    hours_low: Hours
    hours_high: Hours
    summary: str = Field(description="The quote in one line.")
    notes: list[str] = Field(description="What to know before it is confirmed, in sentences.")
    lines: list[QuoteLineView]
    reasoning: list[str]
    expires_at: Timestamp
    can_be_checked: bool = Field(description="Whether a node that is online can check its results.")
    can_confirm: bool = True
    why_not: str | None = Field(None, description="Why it cannot be confirmed as it is.")


class JobProgressView(View):
    tasks: int
    waiting: int
    placed: int
    completed: int
    failed: int
    cancelled: int


class JobView(View):
    id: UUID
    account_id: UUID
    name: str
    kind: str
    state: JobState
    closing: str | None = Field(description="Why it wants no more of its tasks: called off, out of time or of budget.")
    priority: str
    asked: dict[str, Any] = Field(description="As it was sent.")
    private: bool = Field(description="Whether its results are sealed to the key that it was ordered with.")
    seen_by: str = Field(description="Who can see what, in a sentence or two.")
    quote: QuoteView | None
    progress: JobProgressView
    waits_for: str | None = Field(None, description="What it waits for; null in lists, and while nothing waits.")
    max_budget: str | None
    held: str
    spent: str
    currency: str
    made_at: Timestamp
    confirmed_at: Timestamp | None
    deadline_at: Timestamp | None
    ended_at: Timestamp | None


class JobPage(BaseModel):
    items: list[JobView]
    has_more: bool
    after: UUID | None


class AttemptUseView(View):
    attempt_id: UUID
    task: int
    node_id: UUID
    node_name: str
    device: str
    state: str
    verdict: str | None
    reason: str
    hourly: Credits | None = Field(validation_alias="hourly_uc", description="While it is at work.")
    paid: Credits = Field(validation_alias="paid_uc", description="What its provider got.")
    offered_at: Timestamp
    ended_at: Timestamp | None


class AttemptUsePage(BaseModel):
    items: list[AttemptUseView]
    has_more: bool
    after: UUID | None


class ResultView(BaseModel):
    task: int
    task_id: UUID
    state: str
    verdict: str | None
    reason: str
    attempt_id: UUID | None
    lease: int | None
    sha256: str | None = Field(description="Of the plain result.")
    artefact_id: UUID | None = Field(description="Where the result is: GET /api/v1/artefacts/{id}/content.")
    inline: str | None = Field(description="A small result itself, in base64: an archive, sealed if the job was.")
    envelopes: list[str] = Field(
        description="The result's key for each reader, in base64; none if it is open. The last is yours from the pool."
    )


class ResultPage(BaseModel):
    items: list[ResultView]
    has_more: bool
    after: int | None


class OutputPieceView(View):
    cursor: Annotated[str, BeforeValidator(str)]
    task: int
    attempt_id: UUID
    stream: str
    text: str
    at: Timestamp


class OutputPage(BaseModel):
    items: list[OutputPieceView]
    has_more: bool
    after: str


def quote_view(
    quote: Quote, budget_uc: int | None, money: MoneySettings, stopped_placement: str | None = None
) -> QuoteView:
    refusal = why_not(quote, budget_uc, money.currency)
    notes = notes_of(quote) if stopped_placement is None else [*notes_of(quote), stopped_placement]
    fields = {name: getattr(quote, name) for name in _QUOTED}
    return QuoteView.model_validate(
        {
            **fields,
            "summary": summary_of(quote, money.currency),
            "notes": notes,
            "can_be_checked": quote.has_house or not quote.is_rerun,
            "currency": money.currency,
            "can_confirm": refusal is None,
            "why_not": None if refusal is None else refusal.sentence,
        }
    )


def job_view(
    job: Job, money: MoneySettings, now: Instant, *, stopped_placement: str | None = None, waits_for: str | None = None
) -> JobView:
    quote = (
        None if job.quote is None else quote_view(quote_from_json(job.quote), job.budget_uc, money, stopped_placement)
    )
    fields: Mapping[str, Any] = {name: getattr(job, name) for name in _SAME}
    return JobView(
        **fields,
        name=job.asked.get("name", ""),
        priority=job.asked.get("priority", "normal"),
        asked=dict(job.asked),
        private=job.asked.get("result_key") is not None,
        seen_by=SEEN_BY_ALL if job.asked.get("result_key") is None else SEEN_BY_YOU,
        quote=None if quote is None else _with_expiry(quote, job, now),
        progress=JobProgressView.model_validate(job),
        waits_for=waits_for,
        max_budget=None if job.budget_uc is None else credits_of(job.budget_uc),
        held=credits_of(job.held_uc),
        spent=credits_of(job.spent_uc),
        currency=money.currency,
    )


def result_views(job: Job, results: Sequence[TaskResult], verification: ReaderKey) -> list[ResultView]:
    """The results of tasks. Opening the envelopes of private results takes a moment: call it in a thread."""
    customer = _customer(job)
    return [_result_view(result, _envelopes(result.receipt, customer, verification)) for result in results]


def _result_view(result: TaskResult, envelopes: list[str]) -> ResultView:
    receipt = result.receipt
    return ResultView(
        task=result.task,
        task_id=result.task_id,
        state=result.ended,
        verdict=result.verdict,
        reason=result.reason,
        attempt_id=result.attempt_id,
        lease=result.lease,
        sha256=receipt.result_sha256.hex() if receipt else None,
        artefact_id=result.artefact_id,
        inline=_base64(receipt.inline) if receipt and receipt.inline else None,
        envelopes=envelopes,
    )


_QUOTED = (
    "fit",
    "kind",
    "size",
    "tasks",
    "nodes",
    "devices",
    "memory_mib",
    "gpu_memory_mib",
    "low_uc",
    "high_uc",
    "hours_low",
    "hours_high",
    "lines",
    "reasoning",
    "expires_at",
)
_SAME = (
    "id",
    "account_id",
    "kind",
    "state",
    "closing",
    "made_at",
    "confirmed_at",
    "deadline_at",
    "ended_at",
)


def _with_expiry(view: QuoteView, job: Job, now: Instant) -> QuoteView:
    """Mark a quote that has expired."""
    if job.state is not JobState.QUOTED or job.quote_expires_at is None or now < job.quote_expires_at:
        return view
    return view.model_copy(update={"can_confirm": False, "why_not": JobRefusal.QUOTE_EXPIRED.sentence})


def _customer(job: Job) -> bytes | None:
    """The key that the results of a private job are sealed to."""
    key = read_result_key(job.asked.get("result_key"))
    assert not isinstance(key, TaskObjection), "what is wrong was told when it was ordered"
    return key


def _envelopes(receipt: Receipt | None, customer: bytes | None, verification: ReaderKey) -> list[str]:
    """The envelopes of the node, and one of the pool. The pool's opens even if the node sealed a wrong key."""
    if receipt is None or customer is None:
        return []
    own = envelope_for(receipt, verification, customer)
    assert own, "a result that does not open does not pass"
    return [_base64(envelope) for envelope in (*receipt.envelopes, own)]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
