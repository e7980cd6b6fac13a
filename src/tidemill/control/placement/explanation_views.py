"""How placement explains itself: to customers, to owners of nodes, to operators.

Operators see all nodes. A customer may know the nodes that had a task of the job; an owner knows their own. Of other
nodes they see the score and the objections, and neither id nor name.
"""

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from pydantic import BaseModel, Field

from tidemill.control.http.views import Timestamp
from tidemill.core.jobs.waits import attempt_words
from tidemill.core.placement.explanations import (
    NO_NODES,
    NOT_KEPT,
    SOON,
    ConsideredCandidate,
    objection,
    why_lost,
    why_placed,
    why_waiting,
)
from tidemill.core.placement.rule import PlacementObjection
from tidemill.store.jobs.job_views import AttemptUse
from tidemill.store.placement.explanations import NodeName, QueueObjection, StoredExplanation, WaitExplanation

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
    chosen: bool = Field(
        description="Whether this attempt went there. Of alike tasks placed together, only the first was weighed."
    )
    score: float | None = Field(description="Null where there are objections.")
    terms: dict[str, float] = Field(description="What the score is made of; empty where the node is not yours to know.")
    objections: list[ObjectionView]


class PlacementView(BaseModel):
    attempt_id: UUID
    task: int
    node_id: UUID
    node_name: str
    state: str
    now: str = Field(description="What became of it, as the rest of a sentence that begins with the node.")
    offered_at: Timestamp
    kept: bool = Field(description="Whether what spoke for and against the nodes was kept.")
    sentence: str
    policy: str | None
    nodes: int | None = Field(description="How many nodes there were.")
    candidates: list[CandidateView] = Field(description="The best, and some others; the best first.")


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
    sentence: str | None = Field(description="What it waits for; null while its tasks are at work or over.")
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


def wait_view(wait: WaitExplanation) -> WaitView:
    counts = sorted(wait.counts.items(), key=lambda each: (-each[1], each[0]))
    return WaitView.model_validate(
        {
            **{name: getattr(wait, name) for name in ("task", "since", "seen_at", "nodes", "looked", "soon")},
            "objections": [CountedObjectionView(**_objection(code), nodes=nodes) for code, nodes in counts],
            "sentence": why_waiting(wait),
        }
    )


def placement_view(
    used: AttemptUse, kept: StoredExplanation | None, names: NodeNames, known_nodes: Collection[UUID] | None
) -> PlacementView:
    """`known_nodes` are the nodes that the reader may know; None is all of them."""
    weighing = kept.weighing if kept else None
    candidates = weighing.candidates if weighing else ()
    views = [
        _candidate(candidate, candidate.node_id == used.node_id, names, _may_know(candidate, known_nodes))
        for candidate in candidates
    ]
    return PlacementView.model_validate(
        {
            **{name: getattr(used, name) for name in ("attempt_id", "task", "node_id", "node_name", "state")},
            "now": attempt_words(used.state, used.verdict, used.audit),
            "offered_at": used.offered_at,
            "kept": weighing is not None,
            "sentence": why_placed(weighing, used.node_id) if weighing else NOT_KEPT,
            "policy": weighing.policy if weighing else None,
            "nodes": weighing.nodes if weighing else None,
            "candidates": views,
        }
    )


def consideration_view(
    kept: StoredExplanation, node_id: UUID, names: NodeNames, owner_id: UUID | None
) -> ConsiderationView:
    """`owner_id` is the owner who reads it; None is an operator."""
    weighing = kept.weighing
    winner = weighing.candidates[0]
    own = next(candidate for candidate in weighing.candidates if candidate.node_id == node_id)
    named = names.get(winner.node_id)
    knows = owner_id is None or (named is not None and named.owner_id == owner_id)
    return ConsiderationView.model_validate(
        {
            "at": kept.at,
            "kind": kept.kind,
            "tasks": len(kept.task_ids),
            "chosen": own is winner,
            "sentence": why_lost(weighing, node_id),
            "score": own.score,
            "terms": dict(own.terms),
            "objections": [ObjectionView(**_objection(code)) for code in own.objections],
            "winner": named.name if named and knows else ANOTHER,
            "winner_id": winner.node_id if knows else None,
            "winner_score": winner.score,
            "job_id": kept.job_id if owner_id is None else None,
        }
    )


def queue_objections(objections: Iterable[QueueObjection]) -> list[QueueObjectionView]:
    sentences = {"soon": SOON, "no_nodes": NO_NODES}
    return [
        QueueObjectionView(code=code, sentence=sentences.get(code) or objection(code), jobs=jobs, nodes=nodes)
        for code, jobs, nodes in objections
    ]


def _may_know(candidate: ConsideredCandidate, known_nodes: Collection[UUID] | None) -> bool:
    """Whether the reader may know a node. An excluded node had the task before, or its customer named it."""
    return (
        known_nodes is None
        or candidate.node_id in known_nodes
        or PlacementObjection.EXCLUDED.code in candidate.objections
    )


def _candidate(candidate: ConsideredCandidate, is_chosen: bool, names: NodeNames, may_know: bool) -> CandidateView:
    named = names.get(candidate.node_id)
    return CandidateView(
        node_id=candidate.node_id if may_know else None,
        name=named.name if named and may_know else ANOTHER,
        chosen=is_chosen,
        score=candidate.score,
        terms=dict(candidate.terms) if may_know else {},
        objections=[ObjectionView(**_objection(code)) for code in candidate.objections],
    )


def _objection(code: str) -> dict[str, str]:
    return {"code": code, "sentence": objection(code)}
