"""Why tasks went where they went, and what others wait for: the placer stores it, and whoever may ask reads it.

Only the newest explanations are kept. An explanation is found by its task and the moment of the decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.placement.considerations import CandidateComparison, ConsideredCandidate, WaitReasons
from tidemill.core.placement.explanations import PlacementExplanation, QueueExplanation
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query

_KEEP = Query("placement/explanation/keep")
_WAIT = Query("placement/explanation/wait")
_OF_JOB = Query("placement/explanation/of_job")
_OF_NODE = Query("placement/explanation/of_node")
_WAITING = Query("placement/explanation/waiting")
_QUEUE = Query("placement/explanation/queue")
_NAMES = Query("placement/explanation/names")
_FORGET = Query("placement/explanation/forget")
_FORGET_WAITS = Query("placement/explanation/forget_waits")

DIGITS = 6


@dataclass(frozen=True)
class StoredExplanation:
    """A stored explanation."""

    id: UUID
    explained: PlacementExplanation


@dataclass(frozen=True)
class WaitExplanation:
    """A waiting task, for all of its job with the same demand: since when and why it waits, as last seen."""

    task: int
    since: Instant
    seen_at: Instant
    nowhere: WaitReasons


@dataclass(frozen=True)
class NodeName:
    """The name and owner of a node."""

    name: str
    owner_id: UUID


async def keep(
    database: Database,
    explanations: Sequence[PlacementExplanation],
    waits: Sequence[QueueExplanation],
    ids: Ids,
    now: Instant,
) -> None:
    """Store the explanations of one placement tick."""
    if explanations or waits:
        async with database.transaction() as transaction:
            if explanations:
                await _KEEP.run(
                    transaction, explanations=[_row(explanation, ids.new(now)) for explanation in explanations]
                )
            if waits:
                last = {(explanation.job_id, explanation.task_id): explanation for explanation in waits}
                await _WAIT.run(transaction, waits=[_wait_row(explanation) for explanation in last.values()])


async def of_job(
    connection: Connection, job_id: UUID, ats: Iterable[Instant]
) -> Mapping[tuple[int, Instant], StoredExplanation]:
    """The stored explanations of attempts placed at these moments, by the task's number and the moment."""
    rows = await _OF_JOB.rows(connection, job_id=job_id, ats=sorted(set(ats)))
    return {(number, row["at"]): _stored(row) for row in rows for number in row["numbers"]}


async def of_node(connection: Connection, node_id: UUID, after: UUID | None, limit: int) -> Sequence[StoredExplanation]:
    """The last explanations that consider a node, newest first."""
    rows = await _OF_NODE.rows(connection, node_id=node_id, after=after, limit=limit)
    return [_stored(row) for row in rows]


async def waiting(connection: Connection, job_id: UUID, limit: int) -> Sequence[WaitExplanation]:
    """What tasks of a job wait for; one task stands for all with the same demand."""
    rows = await _WAITING.rows(connection, job_id=job_id, limit=limit)
    return [
        WaitExplanation(
            row["task"], row["since"], row["at"], WaitReasons(row["counts"], row["nodes"], row["looked"], row["soon"])
        )
        for row in rows
    ]


async def queue(connection: Connection) -> Mapping[str, tuple[int, int]]:
    """For each objection, how many jobs have tasks that wait because of it, and at how many nodes at most.

    `soon` means nodes that are only busy, `no_nodes` means jobs without any node.
    """
    return {row["code"]: (row["jobs"], row["nodes"]) for row in await _QUEUE.rows(connection) if row["jobs"]}


async def names(connection: Connection, node_ids: Iterable[UUID]) -> Mapping[UUID, NodeName]:
    rows = await _NAMES.rows(connection, ids=sorted(set(node_ids)))
    return {row["id"]: NodeName(row["name"], row["account_id"]) for row in rows}


async def forget(database: Database, most: int) -> int:
    """Delete all but the newest explanations, and those of tasks that no longer wait. Returns how many."""
    async with database.transaction() as transaction:
        explained = await _FORGET.rows(transaction, most=most)
        waits = await _FORGET_WAITS.rows(transaction)
    return len(explained) + len(waits)


def _row(explanation: PlacementExplanation, explanation_id: UUID) -> dict[str, Any]:
    weighing = explanation.weighing
    return {
        "id": str(explanation_id),
        "job_id": str(explanation.job_id),
        "at_us": explanation.at,
        "kind": explanation.kind,
        "policy": weighing.policy,
        "lower_wins": weighing.lower_wins,
        "nodes": weighing.nodes,
        "task_ids": [str(task_id) for task_id in explanation.task_ids],
        "node_ids": [str(candidate.node_id) for candidate in weighing.candidates],
        "weighed": [_weighed(candidate) for candidate in weighing.candidates],
    }


def _weighed(candidate: ConsideredCandidate) -> dict[str, Any]:
    if candidate.objections:
        return {"objections": list(candidate.objections)}
    return {"terms": {name: round(value, DIGITS) for name, value in candidate.terms.items()}}


def _wait_row(explanation: QueueExplanation) -> dict[str, Any]:
    nowhere = explanation.nowhere
    return {
        "job_id": str(explanation.job_id),
        "task_id": str(explanation.task_id),
        "at_us": explanation.at,
        "nodes": nowhere.nodes,
        "looked": nowhere.looked,
        "soon": nowhere.soon,
        "counts": dict(nowhere.counts),
    }


def _stored(row: asyncpg.Record) -> StoredExplanation:
    candidates = tuple(
        ConsideredCandidate(node_id, tuple(weighed.get("objections", ())), weighed.get("terms", {}))
        for node_id, weighed in zip(row["node_ids"], row["weighed"], strict=True)
    )
    weighing = CandidateComparison(candidates, row["nodes"], row["policy"], row["lower_wins"])
    return StoredExplanation(
        row["id"], PlacementExplanation(row["job_id"], row["at"], row["kind"], row["task_ids"], weighing)
    )
