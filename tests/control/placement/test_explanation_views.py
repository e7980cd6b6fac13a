"""What is shown of a placement: each attempt in its own table, and sentences that name the limit there was."""

from uuid import UUID

from tidemill.control.placement.explanation_views import placement_view
from tidemill.core.clock import Instant
from tidemill.core.placement.explanations import objection
from tidemill.store.jobs.job_views import AttemptUse
from tidemill.store.placement.explanations import NodeName, StoredExplanation

FIRST, SECOND, DEAR = (UUID(int=number) for number in (1, 2, 3))
NAMES = {node_id: NodeName(node_id, f"node-{node_id.int}", UUID(int=9)) for node_id in (FIRST, SECOND, DEAR)}


def use(node_id: UUID) -> AttemptUse:
    """An attempt at a node."""
    name = NAMES[node_id].name
    return AttemptUse(UUID(int=7), 0, node_id, name, "cpu", "judged", "pass", "", None, None, 1, Instant(1), None)


KEPT = StoredExplanation(
    id=UUID(int=5),
    job_id=UUID(int=6),
    at=Instant(1),
    kind="matmul",
    policy="value",
    lower_wins=False,
    nodes=3,
    task_ids=[UUID(int=8)],
    node_ids=[FIRST, SECOND, DEAR],
    weighed=[{"terms": {"all": 0.9}}, {"terms": {"all": 0.8}}, {"objections": ["above_quote"]}],
)


def test_of_alike_tasks_each_shows_its_own_node_as_chosen() -> None:
    for node_id in (FIRST, SECOND):
        view = placement_view(use(node_id), KEPT, NAMES, None)
        assert [candidate.node_id for candidate in view.candidates if candidate.chosen] == [node_id]
        assert view.candidates[0].node_id == FIRST


def test_a_node_above_the_quote_is_told_of_the_quote_and_of_no_limit_that_nobody_set() -> None:
    dear = placement_view(use(FIRST), KEPT, NAMES, None).candidates[2]
    assert [told.code for told in dear.objections] == ["above_quote"]
    assert "upper end of the job's quote" in dear.objections[0].sentence
    assert "hourly" in objection("too_dear")
