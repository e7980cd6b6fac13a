"""Explanations: where a job's tasks went and what they wait for, and what a node was considered for.

Another account's job or node is answered as if it did not exist.
"""

from collections.abc import Iterable
from uuid import UUID

from fastapi import APIRouter

from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import documented, unless_refused
from tidemill.control.http.references import JobId, NodeId
from tidemill.control.http.views import API
from tidemill.control.jobs import job_waits
from tidemill.control.placement.explanation_views import (
    ConsiderationPage,
    JobExplanationView,
    consideration_view,
    placement_view,
    wait_view,
)
from tidemill.core.accounts.roles import Caller
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.nodes.node import NodeRefusal
from tidemill.store.jobs import job_views
from tidemill.store.nodes import nodes
from tidemill.store.placement import explanations
from tidemill.store.placement.explanations import StoredExplanation

router = APIRouter(prefix=API, route_class=GuardedRoute)

_CLASSES_MAX = 20
CONSIDERED_MAX = 20


@router.get("/marketplace/jobs/{job_id}/explanation", tags=["jobs"], responses=documented(404, 422))
async def explain_job(
    job_id: JobId, control: ControlPart, caller: CallerPart, most: PageLimit, after: UUID | None = None
) -> JobExplanationView:
    """Why the tasks of a job went where they went, and what those that wait wait for."""
    async with control.route_database.connection() as connection:
        job = unless_refused(await job_views.get(connection, job_id, _whose(caller)) or JobRefusal.UNKNOWN_JOB)
        uses = await job_views.attempt_uses(connection, job_id, after, most + 1)
        kept = await explanations.of_job(connection, job_id, [use.offered_at for use in uses])
        names = await explanations.names(connection, _candidates(kept.values()))
        waiting = [wait_view(wait) for wait in await explanations.waiting(connection, job_id, _CLASSES_MAX)]
        stopped = await job_waits.stopped_placement(connection)
    known_nodes = None if caller.is_operator else {use.node_id for use in uses}
    items = [placement_view(use, kept.get((use.task, use.offered_at)), names, known_nodes) for use in uses[:most]]
    sentence = await job_waits.waits_for(control, job, stopped)
    last = items[-1].attempt_id if items else None
    return JobExplanationView(sentence=sentence, waiting=waiting, items=items, has_more=len(uses) > most, after=last)


@router.get("/nodes/{node_id}/considered", tags=["nodes"], responses=documented(404, 422))
async def considered(
    node_id: NodeId, control: ControlPart, caller: CallerPart, most: PageLimit, after: UUID | None = None
) -> ConsiderationPage:
    """What a node was considered for lately, newest first, and why it lost. Of many decisions only some are kept."""
    owner, most = _whose(caller), min(most, CONSIDERED_MAX)
    async with control.route_database.connection() as connection:
        unless_refused(await nodes.get(connection, node_id, owner) or NodeRefusal.UNKNOWN_NODE)
        kept = await explanations.of_node(connection, node_id, after, most + 1)
        names = await explanations.names(connection, _candidates(kept))
    items = [consideration_view(explanation, node_id, names, owner) for explanation in kept[:most]]
    return ConsiderationPage(items=items, has_more=len(kept) > most, after=kept[len(items) - 1].id if items else None)


def _candidates(kept: Iterable[StoredExplanation]) -> set[UUID]:
    return {node_id for explanation in kept for node_id in explanation.node_ids}


def _whose(caller: Caller) -> UUID | None:
    """The account whose jobs and nodes a caller may read; None is everybody's."""
    return None if caller.is_operator else caller.account_id
