"""Jobs as their customers see them: one, many, what they use, what they print, and their results.

`owner` limits the answer to one account's jobs: another's job is reported as unknown. Without an owner all jobs are
meant, which is for operators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.receipts import Receipt, inclusion, read_receipt
from tidemill.store.query import Connection, Query

_FIND = Query("jobs/job_view/find")
_LIST = Query("jobs/job_view/list")
_USED = Query("jobs/job_view/used")
_RESULTS = Query("jobs/job_view/results")
_LOG = Query("jobs/job_view/log")
_QUEUE = Query("jobs/job_view/queue")

_AUDITS = {
    "waits": "The result waits for a house node, which executes the task again to check it.",
    "runs": "A house node executes the task again to check the result.",
}


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
    """What an attempt of a job uses or used: which node, for how long, and for what pay."""

    attempt_id: UUID
    task: int
    node_id: UUID
    node_name: str
    device: str
    state: str
    verdict: str | None
    reason: str
    hourly_uc: int | None
    paid_uc: int
    offered_at: Instant
    ended_at: Instant | None


@dataclass(frozen=True)
class TaskResult:
    """The outcome of a task: a receipt if it was completed, and the artefact if its result is one."""

    task_id: UUID
    task: int
    ended: str
    attempt_id: UUID | None
    lease: int | None
    reason: str
    verdict: str | None
    receipt: Receipt | None
    artefact_id: UUID | None

    @property
    def digest(self) -> Digest | None:
        return self.receipt.artefact if self.receipt else None


@dataclass(frozen=True)
class OutputPiece:
    """A piece of what an attempt printed."""

    cursor: Cursor
    task: int
    attempt_id: UUID
    stream: str
    text: str
    at: Instant


@dataclass(frozen=True)
class QueueState:
    """How many tasks wait and how many nodes have, for all customers together; `waiting` by rank, 0 is served first."""

    waiting: Mapping[int, int]
    placed: int
    jobs: int
    oldest_at: Instant | None


async def get(connection: Connection, job_id: UUID, owner: UUID | None) -> Job | None:
    row = await _FIND.row(connection, id=job_id, owner=owner)
    return _job(row) if row else None


async def listed(
    connection: Connection, owner: UUID | None, state: JobState | None, after_id: UUID | None, limit: int
) -> Sequence[Job]:
    """Jobs, newest first."""
    rows = await _LIST.rows(connection, owner=owner, state=state, after=after_id, limit=limit)
    return [_job(row) for row in rows]


async def attempt_uses(connection: Connection, job_id: UUID, after_id: UUID | None, limit: int) -> Sequence[AttemptUse]:
    """Attempts of a job, running or over, in the order in which they were made."""
    rows = await _USED.rows(connection, job_id=job_id, after=after_id, limit=limit)
    return [_attempt_use(row) for row in rows]


async def results(connection: Connection, job_id: UUID, after: int, limit: int) -> Sequence[TaskResult]:
    """The outcomes of the tasks after a number, in order."""
    return [_result(row) for row in await _RESULTS.rows(connection, job_id=job_id, after=after, limit=limit)]


async def output_pieces(
    connection: Connection, job_id: UUID, after: Cursor | None, limit: int
) -> Sequence[OutputPiece]:
    """What a job's attempts printed after a cursor. An empty list means that there is nothing more yet."""
    start = after or LOG_START
    rows = await _LOG.rows(
        connection,
        job_id=job_id,
        generation=start.generation,
        transaction=start.transaction,
        number=start.number,
        limit=limit,
    )
    return [_output_piece(row) for row in rows]


async def queue_state(connection: Connection) -> QueueState:
    """How long the queue is."""
    row = await _QUEUE.row(connection)
    assert row
    waiting = {rank: row[name] for rank, name in enumerate(("high", "normal", "low"))}
    return QueueState(waiting, row["placed"], row["jobs"], row["oldest_at"])


def _attempt_use(row: asyncpg.Record) -> AttemptUse:
    audit = row["audit"]
    fields = {name: value for name, value in row.items() if name != "audit"}
    return AttemptUse(**{**fields, "reason": _AUDITS[audit]}) if audit else AttemptUse(**fields)


def _job(row: asyncpg.Record) -> Job:
    return Job(**{**row, "state": JobState(row["state"])})


def _result(row: asyncpg.Record) -> TaskResult:
    fields = dict(row)
    batch, index = fields.pop("body"), fields.pop("place")
    return TaskResult(**fields, receipt=None if batch is None else _receipt(batch, index))


def _receipt(batch: bytes, index: int) -> Receipt:
    receipt = read_receipt(inclusion(batch, index).receipt)
    assert isinstance(receipt, Receipt), "what was judged could be read"
    return receipt


def _output_piece(row: asyncpg.Record) -> OutputPiece:
    cursor = Cursor(row["generation"], row["transaction"], row["number"])
    return OutputPiece(cursor, row["task"], row["attempt_id"], row["stream"], row["text"], row["at"])
