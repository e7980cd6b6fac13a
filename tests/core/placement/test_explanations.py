"""Which decisions are explained, and in which words."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

from tests.worlds.databases.dispatch_world import body_of, demand_of_body, queued
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.explainer import (
    BEST_MAX,
    COMPARED_MAX,
    FORGET_AFTER_US,
    OTHERS_MAX,
    SAMPLE_EVERY_US,
    SHARED_MAX,
    Explainer,
)
from tidemill.core.placement.explanations import (
    NO_NODES,
    CandidateComparison,
    ConsideredCandidate,
    WaitReasons,
    objection,
    why_lost,
    why_placed,
    why_waiting,
)
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import QueuedTask
from tidemill.core.placement.supply import Seller
from tidemill.core.settings import Settings
from tidemill.core.settlement.pay import RewardPlan

NOW = Instant(1_000_000 * SECOND)
FIRST, SECOND_BEST, THIRD = UUID(int=1), UUID(int=2), UUID(int=3)


def placer(nodes: int) -> Placer:
    policies = placement_policies(Settings(home=Path("/nowhere")))
    made = Placer(partial(CandidatePool, policies), RewardPlan(), "value")
    made.refill(
        Seller(
            Candidate(UUID(int=n), UUID(int=n), (), 10**6, 10**6, 10**6, price_uc=10**6, kinds=frozenset({"matmul"})),
            house=False,
            device_ops_per_s=0.0,
            core_ops_per_s=1e10,
        )
        for n in range(1, nodes + 1)
    )
    return made


def wants(count: int, job: int = 1, tries: int = 0) -> list[QueuedTask]:
    return [
        queued(job * 10_000 + n, job, 999_999, demand_of_body(body_of(1)), 10**12)._replace(since=NOW, tries=tries)
        for n in range(count)
    ]


def explained(explainer: Explainer, asked: list[QueuedTask], now: Instant = NOW) -> list[int]:
    """How many tasks each explanation of a batch is of."""
    decider = placer(50)
    decided = decider.decide(asked, now, listener=explainer)
    explainer.applied(decided, {one.task.task_id for one in decided.placements}, decider, now)
    kept, _ = explainer.take()
    assert all(len(one.weighing.candidates) <= BEST_MAX + OTHERS_MAX for one in kept)
    return [len(one.task_ids) for one in kept]


def test_a_job_is_explained_once_and_then_by_samples() -> None:
    explainer = Explainer()
    assert explained(explainer, wants(1_000)) == [SHARED_MAX]
    assert explained(explainer, wants(1_000), Instant(NOW + SAMPLE_EVERY_US - 1)) == []
    assert explained(explainer, wants(1_000), Instant(NOW + SAMPLE_EVERY_US)) == [SHARED_MAX]


def test_all_that_is_placed_again_is_explained_in_parts() -> None:
    explainer = Explainer()
    explained(explainer, wants(1))
    again = explained(explainer, wants(2 * SHARED_MAX + 1, tries=1), Instant(NOW + 1))
    assert again == [SHARED_MAX, SHARED_MAX, 1]


def test_no_batch_is_explained_without_bound() -> None:
    many = [one for job in range(1, 201) for one in wants(1, job)]
    assert len(explained(Explainer(), many)) == COMPARED_MAX


def test_explaining_changes_no_decision() -> None:
    asked = [one for job in range(1, COMPARED_MAX) for one in wants(6, job)]
    plain, heard = placer(50).decide(asked, NOW), placer(50).decide(asked, NOW, listener=Explainer())
    assert [one.seller.node_id for one in plain.placements] == [one.seller.node_id for one in heard.placements]


def test_what_was_not_applied_is_not_explained() -> None:
    explainer, decider = Explainer(), placer(50)
    decided = decider.decide(wants(10), NOW, listener=explainer)
    explainer.applied(decided, set(), decider, NOW)
    assert explainer.take() == ([], [])


def test_who_waits_no_more_is_forgotten() -> None:
    """A customer a minute orders something that nobody can do, and calls it off."""
    explainer, nobody = Explainer(), placer(0)
    told = 0
    for minute in range(200):
        now = Instant(NOW + minute * 60 * SECOND)
        asked = [one._replace(account_id=UUID(int=10**6 + minute)) for one in wants(3, job=minute)]
        explainer.applied(nobody.decide(asked, now, listener=explainer), set(), nobody, now)
        told += len(explainer.take()[1])
        assert len(explainer._shapes) <= FORGET_AFTER_US // (60 * SECOND)
    assert told == 200


def test_what_waits_is_told_in_a_sentence() -> None:
    assert why_waiting(WaitReasons({}, 0, 0, 0)) == NO_NODES
    busy = why_waiting(WaitReasons({"processor_busy": 2}, 2, 2, 1))
    assert busy == "It waits for room: of 2 nodes that may get work, 1 could have it and has too little free."
    never = why_waiting(WaitReasons({"too_dear": 1, "own_node": 3}, 9_000, 2_000, 0))
    assert never.startswith("No node can have it, of 2000 nodes that were looked at. (3) It belongs to the customer")
    assert objection("of_a_later_version") == "of_a_later_version"


def test_who_won_and_who_lost_are_told_in_sentences() -> None:
    candidates = (
        ConsideredCandidate(FIRST, (), {"price": 0.5}),
        ConsideredCandidate(SECOND_BEST, (), {"price": 0.25}),
        ConsideredCandidate(THIRD, ("excluded",), {}),
    )
    weighing = CandidateComparison(candidates, 3, "value", lower_wins=False)
    assert "its score was 0.500, and that of the next 0.250" in why_placed(weighing, FIRST)
    assert "together with alike tasks" in why_placed(weighing, SECOND_BEST)
    assert "not among the few" in why_placed(weighing, UUID(int=9))
    assert why_lost(weighing, SECOND_BEST) == "Its score was 0.250, and that of the chosen one 0.500."
    assert why_lost(weighing, THIRD).startswith("It is excluded from this task")
    assert why_lost(weighing, FIRST) == "It was chosen."
    costs = replace(weighing, lower_wins=True)
    assert "as good" in why_lost(costs, SECOND_BEST), "a lower cost that lost was equal in the policy's steps"
    alone = replace(weighing, candidates=candidates[:1], nodes=1)
    assert why_placed(alone, FIRST) == "It was the only node there was that could have it."
