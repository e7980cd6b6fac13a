"""Jobs as their customers see them: one, many, what they use, what they print, and their results.

`owner` limits the answer to one account's jobs: another's job is reported as unknown. Without an owner all jobs are
meant, which is for operators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.receipts import Receipt, inclusion, read_receipt
from tidemill.core.jobs.waits import AUDITS, ChecksUnderWay
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class Job:
    """A job. `waiting` counts its tasks that wait for a node, `placed` those that a node has."""

    id: UUID
    account_id: UUID
    state: JobState
    closing: str | None
    kind: str
    asked: Mapping[str, Any]
    quote: Mapping[str, Any] | None
    quote_expires_at: Instant | None
    budget_uc: int | None
    held_uc: int
    tasks: int
    completed: int
    failed: int
    cancelled: int
    waiting: int
    placed: int
    spent_uc: int
    made_at: Instant
    confirmed_at: Instant | None
    deadline_at: Instant | None
    ended_at: Instant | None


@dataclass(frozen=True)
class AttemptUse:
    """What an attempt of a job uses or used: which node, for how long, and for what pay. `audit` is set while its
    result is audited."""

    attempt_id: UUID
    task: int
    node_id: UUID
    node_name: str
    device: str
    state: str
    verdict: str | None
    end_reason: str
    audit: str | None
    hourly_uc: int | None
    paid_uc: int
    offered_at: Instant
    ended_at: Instant | None

    @property
    def reason(self) -> str:
        return self.end_reason if self.audit is None else AUDITS[self.audit]


@dataclass(frozen=True)
class TaskResult:
    """The outcome of a task: a receipt if it was completed, and the artefact if its result is one.

    The receipt has its place in the batch that its node signed.
    """

    task_id: UUID
    task: int
    ended: str
    attempt_id: UUID | None
    lease: int | None
    reason: str
    verdict: str | None
    batch: bytes | None
    place: int | None
    artefact_id: UUID | None

    @cached_property
    def receipt(self) -> Receipt | None:
        if self.batch is None or self.place is None:
            return None
        receipt = read_receipt(inclusion(self.batch, self.place).receipt)
        assert isinstance(receipt, Receipt), "what was judged could be read"
        return receipt


@dataclass(frozen=True)
class OutputPiece:
    """A piece of what an attempt printed."""

    generation: int
    transaction: int
    number: int
    task: int
    attempt_id: UUID
    stream: str
    text: str
    at: Instant

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.generation, self.transaction, self.number)


@dataclass(frozen=True)
class QueueState:
    """How many tasks wait, by priority, and how many nodes have, for all customers together."""

    high: int
    normal: int
    low: int
    placed: int
    jobs: int
    oldest_at: Instant | None

    @property
    def waiting(self) -> dict[str, int]:
        return {"high": self.high, "normal": self.normal, "low": self.low}


_FIND = Query("jobs/job_view/find", Job)
_LIST = Query("jobs/job_view/list", Job)
_USED = Query("jobs/job_view/used", AttemptUse)
_RESULTS = Query("jobs/job_view/results", TaskResult)
_LOG = Query("jobs/job_view/log", OutputPiece)
_QUEUE = Query("jobs/job_view/queue", QueueState)
_CHECKS = Query("jobs/job_view/checks", ChecksUnderWay)


async def get(connection: Connection, job_id: UUID, owner: UUID | None) -> Job | None:
    return await _FIND.row(connection, id=job_id, owner=owner)


async def listed(
    connection: Connection, owner: UUID | None, state: JobState | None, after_id: UUID | None, limit: int
) -> Sequence[Job]:
    """Jobs, newest first."""
    return await _LIST.rows(connection, owner=owner, state=state, after=after_id, limit=limit)


async def attempt_uses(connection: Connection, job_id: UUID, after_id: UUID | None, limit: int) -> Sequence[AttemptUse]:
    """Attempts of a job, running or over, in the order in which they were made."""
    return await _USED.rows(connection, job_id=job_id, after=after_id, limit=limit)


async def checks(connection: Connection, job_id: UUID) -> ChecksUnderWay:
    """How many delivered results of a job wait for a verdict, and by what."""
    return await _CHECKS.only(connection, job_id=job_id)


async def results(connection: Connection, job_id: UUID, after: int, limit: int) -> Sequence[TaskResult]:
    """The outcomes of the tasks after a number, in order."""
    return await _RESULTS.rows(connection, job_id=job_id, after=after, limit=limit)


async def output_pieces(
    connection: Connection, job_id: UUID, after: Cursor | None, limit: int
) -> Sequence[OutputPiece]:
    """What a job's attempts printed after a cursor. An empty list means that there is nothing more yet."""
    start = after or LOG_START
    return await _LOG.rows(
        connection,
        job_id=job_id,
        generation=start.generation,
        transaction=start.transaction,
        number=start.number,
        limit=limit,
    )


async def queue_state(connection: Connection) -> QueueState:
    """How long the queue is."""
    return await _QUEUE.only(connection)
