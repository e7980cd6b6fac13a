"""Why tasks went where they went, and what others wait for: the placer stores it, and whoever may ask reads it.

Only the newest explanations are kept. An explanation is found by its task and the moment of the decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.placement.explanations import (
    CandidateComparison,
    ConsideredCandidate,
    PlacementExplanation,
    QueueExplanation,
    WaitReasons,
)
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query

DIGITS = 6


@dataclass(frozen=True)
class StoredExplanation:
    """A stored explanation. `weighed` says of each node in `node_ids` what speaks for or against it."""

    id: UUID
    job_id: UUID
    at: Instant
    kind: str
    policy: str
    lower_wins: bool
    nodes: int
    task_ids: list[UUID]
    node_ids: list[UUID]
    weighed: list[dict[str, Any]]

    @cached_property
    def weighing(self) -> CandidateComparison:
        candidates = tuple(
            ConsideredCandidate(node_id, tuple(weighed.get("objections", ())), weighed.get("terms", {}))
            for node_id, weighed in zip(self.node_ids, self.weighed, strict=True)
        )
        return CandidateComparison(candidates, self.nodes, self.policy, self.lower_wins)


@dataclass(frozen=True)
class _NumberedExplanation(StoredExplanation):
    """An explanation with the numbers of its tasks."""

    numbers: list[int]


@dataclass(frozen=True)
class WaitExplanation(WaitReasons):
    """Why a task waits, for all of its job with the same demand; since when, and when this was last seen."""

    task: int
    since: Instant
    seen_at: Instant


class QueueObjection(NamedTuple):
    """How many jobs have tasks that wait because of an objection, and at how many nodes at most."""

    code: str
    jobs: int
    nodes: int


class NodeName(NamedTuple):
    """The name and owner of a node."""

    id: UUID
    name: str
    owner_id: UUID


_KEEP = Query("placement/explanation/keep")
_WAIT = Query("placement/explanation/wait")
_OF_JOB = Query("placement/explanation/of_job", _NumberedExplanation)
_OF_NODE = Query("placement/explanation/of_node", StoredExplanation)
_WAITING = Query("placement/explanation/waiting", WaitExplanation)
_QUEUE = Query("placement/explanation/queue", QueueObjection)
_NAMES = Query("placement/explanation/names", NodeName)
_FORGET = Query("placement/explanation/forget", UUID)
_FORGET_WAITS = Query("placement/explanation/forget_waits", UUID)


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
    found = await _OF_JOB.rows(connection, job_id=job_id, ats=sorted(set(ats)))
    return {(number, explanation.at): explanation for explanation in found for number in explanation.numbers}


async def of_node(connection: Connection, node_id: UUID, after: UUID | None, limit: int) -> Sequence[StoredExplanation]:
    """The last explanations that consider a node, newest first."""
    return await _OF_NODE.rows(connection, node_id=node_id, after=after, limit=limit)


async def waiting(connection: Connection, job_id: UUID, limit: int) -> Sequence[WaitExplanation]:
    """What tasks of a job wait for; one task stands for all with the same demand."""
    return await _WAITING.rows(connection, job_id=job_id, limit=limit)


async def queue(connection: Connection) -> Sequence[QueueObjection]:
    """What the queue waits for. `soon` means nodes that are only busy, `no_nodes` means jobs without any node."""
    return await _QUEUE.rows(connection)


async def names(connection: Connection, node_ids: Iterable[UUID]) -> Mapping[UUID, NodeName]:
    return {node.id: node for node in await _NAMES.rows(connection, ids=sorted(set(node_ids)))}


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
