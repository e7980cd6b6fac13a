"""How placement explains itself: to customers, to owners of nodes, to operators.

Whoever is no operator sees of nodes that are not theirs to know a score and the objections, and neither id nor name:
a customer knows the nodes that had a task of the job; an owner knows their own.
"""

from collections.abc import Collection, Mapping
from uuid import UUID

from pydantic import BaseModel, Field

from tidemill.control.http.views import Timestamp
from tidemill.core.placement.considerations import ConsideredCandidate
from tidemill.core.placement.objections import PlacementObjection
from tidemill.core.placement.sentences import NO_NODES, NOT_KEPT, SOON, objection, why_lost, why_placed, why_waiting
from tidemill.store.jobs.job_views import AttemptUse
from tidemill.store.placement.explanations import NodeName, StoredExplanation, WaitExplanation

ANOTHER = "another node"

NodeNames = Mapping[UUID, NodeName]


class ObjectionView(BaseModel):
    code: str = Field(description="Stable: programs may match it.")
    sentence: str


class CountedObjectionView(ObjectionView):
    nodes: int = Field(description="How many nodes it speaks of.")


class QueueObjectionView(CountedObjectionView):
    jobs: int = Field(description="How many jobs have tasks that wait because of it.")


class CandidateView(BaseModel):
    node_id: UUID | None = Field(description="Null where the node is not yours to know.")
    name: str
    chosen: bool = Field(description="Whether the task that was weighed went there.")
    score: float | None = Field(description="Null where there are objections.")
    terms: dict[str, float] = Field(description="What the score is made of; empty where the node is not yours to know.")
    objections: list[ObjectionView]


class PlacementView(BaseModel):
    attempt_id: UUID
    task: int
    node_id: UUID
    node_name: str
    state: str
    offered_at: Timestamp
    kept: bool = Field(description="Whether what spoke for and against the nodes was kept.")
    sentence: str
    policy: str | None
    nodes: int | None = Field(description="How many nodes there were.")
    candidates: list[CandidateView] = Field(description="The best, and some others; the chosen one first.")


class WaitView(BaseModel):
    task: int = Field(description="One that waits, for all of the job that ask the same.")
    since: Timestamp
    seen_at: Timestamp = Field(description="When this was so.")
    nodes: int = Field(description="How many nodes there were that may get work.")
    looked: int = Field(description="How many of them were looked at.")
    soon: int = Field(description="How many of those could have it as soon as they have room.")
    objections: list[CountedObjectionView]
    sentence: str


class JobExplanationView(BaseModel):
    sentence: str | None = Field(description="What its tasks wait for; null if none of them waits.")
    waiting: list[WaitView]
    items: list[PlacementView] = Field(description="Its attempts, in the order in which they were placed.")
    has_more: bool
    after: UUID | None


class ConsiderationView(BaseModel):
    at: Timestamp
    kind: str
    tasks: int = Field(description="How many alike tasks were placed together, as far as they were counted.")
    chosen: bool
    sentence: str
    score: float | None
    terms: dict[str, float]
    objections: list[ObjectionView]
    winner: str = Field(description="The node that was chosen, where it is yours to know.")
    winner_id: UUID | None
    winner_score: float | None
    job_id: UUID | None = Field(description="For operators.")


class ConsiderationPage(BaseModel):
    items: list[ConsiderationView]
    has_more: bool
    after: UUID | None


def wait_view(one: WaitExplanation) -> WaitView:
    nowhere = one.nowhere
    counts = sorted(nowhere.counts.items(), key=lambda each: (-each[1], each[0]))
    return WaitView.model_validate(
        {
            "task": one.task,
            "since": one.since,
            "seen_at": one.seen_at,
            "nodes": nowhere.nodes,
            "looked": nowhere.looked,
            "soon": nowhere.soon,
            "objections": [CountedObjectionView(**_objection(code), nodes=nodes) for code, nodes in counts],
            "sentence": why_waiting(nowhere),
        }
    )


def placement_view(
    used: AttemptUse, kept: StoredExplanation | None, names: NodeNames, known: Collection[UUID] | None
) -> PlacementView:
    """`known` are the nodes that the reader may know; None is all of them."""
    weighing = kept.explained.weighing if kept else None
    candidates = weighing.candidates if weighing else ()
    shown = [_candidate(one, place == 0, names, _may_know(one, known)) for place, one in enumerate(candidates)]
    return PlacementView.model_validate(
        {
            **{name: getattr(used, name) for name in ("attempt_id", "task", "node_id", "node_name", "state")},
            "offered_at": used.offered_at,
            "kept": weighing is not None,
            "sentence": why_placed(weighing, used.node_id) if weighing else NOT_KEPT,
            "policy": weighing.policy if weighing else None,
            "nodes": weighing.nodes if weighing else None,
            "candidates": shown,
        }
    )


def consideration_view(
    kept: StoredExplanation, node_id: UUID, names: NodeNames, owner_id: UUID | None
) -> ConsiderationView:
    """`owner_id` is whose eyes see it; None are an operator's."""
    explained, weighing = kept.explained, kept.explained.weighing
    winner = weighing.candidates[0]
    mine = next(one for one in weighing.candidates if one.node_id == node_id)
    named = names.get(winner.node_id)
    knows = owner_id is None or (named is not None and named.owner_id == owner_id)
    return ConsiderationView.model_validate(
        {
            "at": explained.at,
            "kind": explained.kind,
            "tasks": len(explained.task_ids),
            "chosen": mine is winner,
            "sentence": why_lost(weighing, node_id),
            "score": mine.score,
            "terms": dict(mine.terms),
            "objections": [ObjectionView(**_objection(code)) for code in mine.objections],
            "winner": named.name if named and knows else ANOTHER,
            "winner_id": winner.node_id if knows else None,
            "winner_score": winner.score,
            "job_id": explained.job_id if owner_id is None else None,
        }
    )


def queue_objections(counts: Mapping[str, tuple[int, int]]) -> list[QueueObjectionView]:
    sentences = {"soon": SOON, "no_nodes": NO_NODES}
    return [
        QueueObjectionView(code=code, sentence=sentences.get(code) or objection(code), jobs=jobs, nodes=nodes)
        for code, (jobs, nodes) in counts.items()
    ]


def _may_know(one: ConsideredCandidate, known: Collection[UUID] | None) -> bool:
    """Who is excluded had the task before, or its customer named it."""
    return known is None or one.node_id in known or PlacementObjection.EXCLUDED.code in one.objections


def _candidate(one: ConsideredCandidate, is_chosen: bool, names: NodeNames, may_know: bool) -> CandidateView:
    named = names.get(one.node_id)
    return CandidateView(
        node_id=one.node_id if may_know else None,
        name=named.name if named and may_know else ANOTHER,
        chosen=is_chosen,
        score=one.score,
        terms=dict(one.terms) if may_know else {},
        objections=[ObjectionView(**_objection(code)) for code in one.objections],
    )


def _objection(code: str) -> dict[str, str]:
    return {"code": code, "sentence": objection(code)}
