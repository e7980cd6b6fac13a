"""Results that come late: an attempt that was given up delivers after all, before any other has.

It gets its task back, and any other attempt at it is called off. Whoever takes the task's row from the queue, or locks
the other attempt's lease, decides. A task that has ended, or that another attempt has delivered, stays as it is.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import AttemptState, Happening
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.task import Attempt, RetryLimits, TaskLife, TaskState
from tidemill.store.arrays import uuid_array
from tidemill.store.artefacts import artefact_grants
from tidemill.store.jobs import leases, outcomes
from tidemill.store.jobs.outcomes import AttemptHappening
from tidemill.store.query import Connection, Query

_FIND = Query("jobs/late/find")
_UNQUEUE = Query("jobs/late/unqueue")
_HOLDERS = Query("jobs/late/holders")
_RESUME = Query("jobs/late/resume")

LateReceipt: TypeAlias = tuple[Receipt, UUID, int]
"""A receipt with its batch and its index there."""

LateReceipts: TypeAlias = Mapping[UUID, LateReceipt]
"""By attempt."""

RANKS = (0, 1, 2)
_OVERTAKEN = "Another node delivered this task after all."


async def take(transaction: Connection, late: LateReceipts, patience: RetryLimits, now: Instant) -> Mapping[UUID, UUID]:
    """Take late receipts that are still wanted. Returns their tasks, each with its batch."""
    done = {attempt_id for attempt_id, (receipt, _, _) in late.items() if receipt.outcome is AttemptOutcome.DONE}
    rows = await _FIND.rows(transaction, attempt_ids=uuid_array(sorted(done))) if done else []
    wanted = {row["task_id"]: row for row in rows if _is_of(row, late[row["attempt_id"]][0])}
    if not wanted:
        return {}
    task_ids = sorted(wanted)
    waiting = await _UNQUEUE.rows(transaction, ranks=list(RANKS), task_ids=task_ids)
    holders = await _HOLDERS.rows(transaction, task_ids=task_ids)
    lives = {row["task_id"]: (row, _life(row)) for row in (*waiting, *holders)}
    taken = [
        (wanted[task_id], row)
        for task_id, (row, life) in lives.items()
        if tasks.step(life, _attempt(wanted[task_id]), Happening.DELIVERED, patience)
    ]
    assert len(taken) == len(lives), "what waits or is at work takes whatever comes first"
    await _overtake(transaction, holders, now)
    await _resume(transaction, taken, late, now)
    return {row["task_id"]: late[row["attempt_id"]][1] for row, _ in taken}


def _is_of(row: asyncpg.Record, receipt: Receipt) -> bool:
    return (row["task_id"], row["node_id"], row["lease"]) == (receipt.task_id, receipt.node_id, receipt.lease)


def _attempt(row: asyncpg.Record) -> Attempt:
    return Attempt(row["attempt_id"], AttemptState(row["state"]))


def _life(row: asyncpg.Record) -> TaskLife:
    holder = row.get("attempt_id")
    return TaskLife(TaskState.PENDING if holder is None else TaskState.ASSIGNED, row["failures"], row["tries"], holder)


async def _overtake(transaction: Connection, holders: Sequence[asyncpg.Record], now: Instant) -> None:
    """Stop other attempts at the task, without blame."""
    if not holders:
        return
    happenings = [
        AttemptHappening(row["attempt_id"], row["tries"], row["node_id"], (Happening.CALLED_OFF,), _OVERTAKEN)
        for row in holders
    ]
    await leases.call_off(transaction, happenings, _OVERTAKEN, now)
    await outcomes.cancel(transaction, happenings, now)
    await artefact_grants.take_back(transaction, [happening.attempt_id for happening in happenings], now)


async def _resume(
    transaction: Connection,
    taken: Sequence[tuple[asyncpg.Record, asyncpg.Record]],
    late: LateReceipts,
    now: Instant,
) -> None:
    given_up = [row for row, _ in taken]
    same = ("attempt_id", "task_id", "job_id", "account_id", "node_id", "owner_id")
    await _RESUME.run(
        transaction,
        **{f"{name}s": [row[name] for row in given_up] for name in same},
        ranks=[row["rank"] for _, row in taken],
        failures=[row["failures"] for _, row in taken],
        tries=[row["lease"] for row in given_up],
        batch_ids=[late[row["attempt_id"]][1] for row in given_up],
        places=[late[row["attempt_id"]][2] for row in given_up],
        hourly_uc=[row["hourly_uc"] for row in given_up],
        quoted_ms=[row["quoted_ms"] for row in given_up],
        offered_at=[row["offered_at"] for row in given_up],
        now=now,
    )
