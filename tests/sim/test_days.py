"""Simulated days: the same seed gives the same numbers, nothing is lost, and a rule that is broken is noticed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tidemill.control.placement.placement_policies import placement_policies
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.jobs.attempt import ATTEMPTS, AttemptState, Happening
from tidemill.core.jobs.plans import job_ends, task_bills, work_plan
from tidemill.core.jobs.task import RetryLimits, TaskLife, TaskState
from tidemill.core.nodes.rules.windows import Window
from tidemill.core.placement.candidate import Candidate, CandidateDevice
from tidemill.core.placement.demand import PriorityLevel
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.supply import Seller
from tidemill.core.settings.tree import Settings
from tidemill.core.settlement.obligations import Obligation
from tidemill.core.settlement.pay import AttemptPay
from tidemill.core.settlement.rewards import owed_for
from tidemill.sim.days import report, watch
from tidemill.sim.days.books import DayBooks
from tidemill.sim.days.chance import draw
from tidemill.sim.days.day import Day
from tidemill.sim.days.runs import RunPlan, WhatIf, read_load, simulate
from tidemill.sim.days.scenario import MONDAY, Chances, DayScenario, PoolRules
from tidemill.sim.days.tally import DayTally, jain
from tidemill.sim.days.watch import BrokenRule, RuleWatch
from tidemill.sim.days.worlds import presence
from tidemill.sim.days.worlds.orders import OrderTable, OrderVolume, daily_wave, draw_orders
from tidemill.sim.days.worlds.presence import AT_HOME, Churn, Spans, turns
from tidemill.sim.days.worlds.synthetic import synthetic
from tidemill.sim.days.worlds.task_types import OURS, fit_task_types
from tidemill.sim.days.worlds.world import Member, World, WorldFault, checked_world

SETTINGS = Settings(home=Path())
POLICIES = placement_policies(SETTINGS)
RULES = PoolRules.of(SETTINGS)
USUAL = Chances()
NOTHING_HAPPENS = Chances(0, 0, 0, 0, 0, 0)
OFTEN = Churn(Spans(0.6, 2.0), Spans(0.6, 0.5))


def plan(
    world: World | None = None,
    *,
    nodes: int = 60,
    tasks: int = 600,
    hours: float = 6.0,
    fill: float = 0.7,
    churn: Churn | None = AT_HOME,
    chances: Chances = USUAL,
    seed: int = 1,
    policy: str = "value",
) -> RunPlan:
    return RunPlan(
        world or synthetic(nodes, seed),
        OURS,
        POLICIES,
        policy,
        daily_wave(hours),
        OrderVolume(tasks, hours, fill),
        churn,
        DayScenario(RULES, hours, seed, chances),
    )


def figures(tally: DayTally) -> Mapping[str, Any]:
    assert tally.shown is not None
    json.dumps(tally.shown.figures, allow_nan=False)
    return tally.shown.figures


def small_pool(*counts: int, windows: tuple[Window, ...] = ()) -> World:
    """Nodes of one model, each with so many devices and an owner of its own."""
    members = []
    for number, count in enumerate(counts):
        candidate = Candidate(
            UUID(int=number + 1),
            UUID(int=1000 + number),
            (CandidateDevice("GeForce RTX 3090", 24_576),) * count,
            8_000 * max(1, count),
            65_536 * max(1, count),
            disk_mib=100_000,
            price_uc=200_000,
            kinds=frozenset({"embed", "render", "matmul", "container", "script"}),
        )
        members.append(Member(Seller(candidate, False, 1e13, 1e11), f"provider-{number + 1}", windows))
    return checked_world(members)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_gives_others() -> None:
    one, again, other = (simulate(plan(seed=seed)) for seed in (3, 3, 4))
    assert figures(one) == figures(again)
    assert one.samples == again.samples
    assert figures(one) != figures(other)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_task_is_counted_once_and_no_money_is_lost(policy: str) -> None:
    found = figures(simulate(plan(policy=policy, fill=1.2, churn=OFTEN)))
    assert sum(found["tasks_by_end"].values()) == found["tasks"] == 600
    assert found["attempts"]["node_lost"] > 0
    assert found["attempts"]["passed"] == found["tasks_by_end"]["completed"] > 0
    assert found["spent"] == pytest.approx(found["earned_by_providers"] + found["kept_by_pool"], abs=0.001)


def test_an_idle_pool_makes_nobody_wait_and_a_full_one_does() -> None:
    idle, full = (figures(simulate(plan(fill=fill, churn=None, chances=NOTHING_HAPPENS))) for fill in (0.1, 4.0))
    assert idle["wait_s"]["p99"] < 5
    assert full["wait_s"]["p95"] > 600
    assert full["busy_pct"] > idle["busy_pct"] > 0
    assert set(idle["attempts"]) <= {"accepted", "started", "delivered", "passed", "called_off"}


def test_with_more_load_tasks_wait_longer() -> None:
    base = plan(nodes=100, tasks=1500, hours=12, fill=1.0)
    as_it_is, more, less = (
        figures(simulate(WhatIf(load).applied(base) if load else base)) for load in (0.0, 0.3, -0.3)
    )
    assert more["tasks"] == 1950
    assert less["tasks"] < 1300
    assert less["wait_s"]["mean"] < as_it_is["wait_s"]["mean"] < more["wait_s"]["mean"]


def test_a_provider_who_has_gone_leaves_the_same_jobs_to_fewer_nodes() -> None:
    base = plan(nodes=100, tasks=1500, hours=12, fill=0.9)
    changed = WhatIf(without="provider-1").applied(base)
    before, after = figures(simulate(base)), figures(simulate(changed))
    gone = base.world.owners["provider-1"]
    assert gone > 3
    assert after["nodes"] == before["nodes"] - gone
    assert after["providers"] == before["providers"] - 1
    assert (after["tasks"], after["jobs"]) == (before["tasks"], before["jobs"])
    assert after["wait_s"]["mean"] > before["wait_s"]["mean"]


def test_luck_belongs_to_whom_it_befalls() -> None:
    """Whoever stays is there at the same times, whoever else has gone."""
    world = synthetic(200, 1)
    there, comings = turns(world, AT_HOME, MONDAY, 24 * HOUR, 1)
    less, fewer = turns(world.without("provider-1"), AT_HOME, MONDAY, 24 * HOUR, 1)
    stay = {number for number, member in enumerate(world.members) if member.owner != "provider-1"}
    assert [turn for turn in comings if turn[1] in stay] == fewer
    assert [there[number] for number in stay] == [less[number] for number in stay]
    draws = [draw(1, task, attempt, what) for task in range(100) for attempt in range(5) for what in range(8)]
    assert len(set(draws)) == len(draws)
    assert 0.45 < np.mean(draws) < 0.55
    assert 0 <= min(draws) <= max(draws) < 1


def test_a_change_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(WorldFault, match="largest providers of this world are"):
        synthetic(20, 1).without("nobody")
    with pytest.raises(WorldFault, match="there is no pool"):
        small_pool(1).without("provider-1")
    with pytest.raises(WorldFault, match="no policy called best"):
        simulate(plan(policy="best"))
    for text in ("20%", "+20", "+-20%", "+1001%", "-100%", "+٢%", "+nan%"):
        with pytest.raises(WorldFault):
            read_load(text)
    assert (read_load("+20%"), read_load("-12.5 %")) == (0.2, -0.125)
    assert WhatIf(0.2, "provider-1").named == "20 % more load, without provider-1"


def test_as_many_nodes_are_there_at_the_end_as_at_the_beginning() -> None:
    """Whoever is there at first is in the middle of a span, so the pool neither fills nor empties."""
    world, churn = synthetic(4000, 1), Churn(Spans(0.5, 6.0), Spans(0.7, 5.0))
    there, comings = turns(world, churn, MONDAY, 24 * HOUR, 7)
    shares = [sum(there) / 4000]
    present = sum(there)
    for hour in range(1, 25):
        present += sum(1 if comes else -1 for at, _, comes in comings if (hour - 1) * HOUR <= at < hour * HOUR)
        shares.append(present / 4000)
    assert max(abs(share - churn.there_share) for share in shares) < 0.03


def test_a_node_is_there_only_in_its_owners_hours() -> None:
    night = (Window(22 * 60, 8 * 60),)
    world = small_pool(1, windows=night)
    there, comings = turns(world, None, MONDAY, 24 * HOUR, 1)
    assert there == [True]
    assert comings == [(8 * HOUR, 0, False), (22 * HOUR, 0, True)]
    gone = turns(world, Churn(Spans(1.0, 0.001), Spans(1.0, 1e5)), MONDAY, 24 * HOUR, 3)
    assert sum(comes for _, _, comes in gone[1]) <= 1
    found = simulate(plan(world, tasks=50, hours=24, churn=None, chances=NOTHING_HAPPENS))
    assert {found.samples.nodes[place] for place in (60, 100, 130)} == {0.0}
    assert figures(found)["tasks_by_end"]["completed"] > 0


BROKEN = replace(NOTHING_HAPPENS, broken=1)


def test_a_program_that_fails_everywhere_is_given_up_and_costs_nothing() -> None:
    found = figures(simulate(plan(tasks=100, hours=24, fill=0.05, churn=None, chances=BROKEN)))
    assert found["tasks_by_end"]["failed"] > 10
    assert found["attempts"]["crashed"] >= 3 * found["tasks_by_end"]["failed"]
    assert "faulted" not in found["attempts"], "only a house node calls a task faulty"
    assert found["spent"] == 0


def test_nodes_that_are_lost_fail_no_task() -> None:
    found = figures(simulate(plan(churn=OFTEN, chances=NOTHING_HAPPENS)))
    assert found["attempts"]["node_lost"] > 50
    assert "failed" not in found["tasks_by_end"]


def test_stragglers_are_given_up_and_their_late_results_are_taken() -> None:
    """A pool with no second node: what is late is still the first to deliver."""
    chances = replace(NOTHING_HAPPENS, straggling=1)
    found = figures(simulate(plan(small_pool(4), tasks=40, hours=48, fill=0.02, churn=None, chances=chances)))
    assert found["attempts"]["time_up"] > 0
    assert found["tasks_by_end"]["completed"] > 20


def test_the_only_node_of_a_pool_is_asked_again_after_it_declined() -> None:
    chances = replace(NOTHING_HAPPENS, declined=0.5)
    found = figures(simulate(plan(small_pool(8), tasks=30, hours=24, fill=0.1, churn=None, chances=chances)))
    assert found["attempts"]["declined"] > 5
    assert found["tasks_by_end"]["completed"] >= 25


def test_a_pool_without_devices_sells_its_processors() -> None:
    found = figures(simulate(plan(small_pool(0, 0, 0), tasks=60, hours=24, fill=0.2, churn=None)))
    assert found["tasks_by_end"]["completed"] > 30
    assert 0 < found["busy_pct"] <= 100


def test_a_pool_that_can_do_nothing_that_is_ordered_says_so() -> None:
    world = small_pool(0)
    other = replace(world.members[0].seller.candidate, kinds=frozenset({"telepathy"}))
    with pytest.raises(WorldFault, match="can carry out anything"):
        simulate(plan(checked_world([Member(Seller(other, False, 1.0, 1.0), "provider-1")])))
    with pytest.raises(WorldFault, match="no node"):
        checked_world([])


def test_who_is_in_a_hurry_waits_less() -> None:
    base = plan(small_pool(*[2] * 20), tasks=6000, hours=12, fill=1.0, churn=None, chances=NOTHING_HAPPENS)
    asked = fit_task_types(base.world, base.task_types, base.policy)
    orders = draw_orders(base.world, asked, base.profile, base.volume, 1.0, 1)
    day = Day(base.world, asked, orders, POLICIES, base.scenario)
    tally = day.run([True] * 20, [])
    assert tally.shown is not None
    waits, sizes = tally.shown.waits_s, np.repeat([int(one) for one in orders.priority], orders.tasks)
    low, normal, high = (waits[sizes == level].mean() for level in range(3))
    assert high < normal < low


def test_who_has_nothing_at_work_goes_before_who_has() -> None:
    """Both devices are one customer's; the first that is free goes to the other, who came later."""
    base = plan(small_pool(1, 1), tasks=1, churn=None, chances=NOTHING_HAPPENS)
    asked = fit_task_types(base.world, OURS[:1], base.policy)
    jobs = 4
    orders = OrderTable(
        at=[0, 1, 5 * SECOND, 9 * SECOND],
        task_type=[0] * jobs,
        customer=[0, 0, 0, 1],
        tasks=[1, 1, 2, 1],
        first=[0, 1, 2, 4],
        length_s=[600.0, 1200.0, 600.0, 600.0],
        priority=[PriorityLevel.NORMAL] * jobs,
        deadline_us=[HOUR * 24] * jobs,
        called_off_us=[-1] * jobs,
    )
    day = Day(base.world, asked, orders, POLICIES, base.scenario)
    tally = day.run([True] * 2, [])
    assert tally.shown is not None
    _, _, *mine, theirs = tally.shown.waits_s
    assert 500 < theirs < min(mine)
    assert not day.nodes.customers.devices


def test_orders_fill_what_they_should_also_where_a_few_last_for_ever() -> None:
    base = plan(nodes=200, tasks=2000, hours=12, fill=0.5)
    endless = [replace(sort, lengths=(1.0,) * 99 + (1e5,)) for sort in OURS]
    for sorts in (OURS, endless):
        asked = fit_task_types(base.world, sorts, "value")
        orders = draw_orders(base.world, asked, base.profile, base.volume, 1.0, 1)
        milli = [asked[sort].task_type.demand.asked_milli for sort in orders.task_type]
        lasted = zip(milli, orders.tasks, orders.length_s, strict=True)
        busy = sum(one * count * min(length_s, 12 * 3600) for one, count, length_s in lasted)
        capacity = sum(1000 * len(member.seller.candidate.devices) for member in base.world.members)
        assert busy / (capacity * 12 * 3600) == pytest.approx(0.5, rel=0.01)


def test_a_division_is_as_even_as_it_is() -> None:
    assert jain(np.array([2.0, 2.0, 2.0])) == pytest.approx(1)
    assert jain(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert jain(np.array([])) == 1.0


def test_a_report_shows_every_run_and_fetches_nothing() -> None:
    base = plan(tasks=200)
    runs = [("as it is", simulate(base)), ("<b>more</b>", simulate(WhatIf(0.5).applied(base)))]
    html = report.page(runs, "Told <script>")
    assert "&lt;b&gt;more&lt;/b&gt;" in html
    assert "<script" not in html
    assert "http" not in html
    assert html.count("<svg") == 8
    assert "nan" not in html.lower()


# A rule that is broken is noticed


def test_a_task_that_jumps_ahead_is_noticed() -> None:
    looking = RuleWatch(1, RetryLimits())
    with pytest.raises(BrokenRule, match="was assigned and is verifying"):
        looking.task(0, TaskLife(TaskState.ASSIGNED, 0, 1, UUID(int=1)), TaskLife(TaskState.VERIFYING, 0, 1))


def test_an_attempt_that_comes_back_from_the_dead_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ATTEMPTS, (AttemptState.SUBMITTED, Happening.PASSED), AttemptState.RUNNING)
    monkeypatch.setattr(work_plan, "_step", work_plan._step.__wrapped__)
    with pytest.raises(BrokenRule, match="was submitted is running"):
        simulate(plan(tasks=50, fill=0.05))


def test_a_pool_that_gives_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It forgets to count what it gave back, as a leak would."""
    monkeypatch.setattr(CandidatePool, "release", lambda *_: True)
    with pytest.raises(BrokenRule, match="attempts have"):
        simulate(plan())


def test_a_task_that_fails_more_often_than_it_may_is_noticed() -> None:
    looking = RuleWatch(1, RetryLimits())
    with pytest.raises(BrokenRule, match="failed 5 times"):
        looking.task(0, TaskLife(TaskState.COMPUTING, 3, 4, UUID(int=1)), TaskLife(TaskState.PENDING, 5, 4))


def test_a_task_that_ends_twice_is_noticed() -> None:
    looking = RuleWatch(1, RetryLimits())
    running, done = TaskLife(TaskState.VERIFYING, 0, 1, UUID(int=1)), TaskLife(TaskState.COMPLETED, 0, 1, UUID(int=1))
    looking.task(0, running, done)
    with pytest.raises(BrokenRule, match="ended twice"):
        looking.task(0, running, done)


def test_pay_above_what_was_held_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_bills, "attempt_pay", lambda *_: AttemptPay(10**15, 0, 0))
    with pytest.raises(AssertionError, match="more than was held"):
        simulate(plan(tasks=50))


def test_a_micro_credit_that_vanishes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def paid_short(books: DayBooks, owed: Obligation) -> None:
        pay(books, owed)
        books.pool_uc -= 1

    pay = DayBooks.pay
    monkeypatch.setattr(DayBooks, "pay", paid_short)
    with pytest.raises(BrokenRule, match="off by"):
        simulate(plan(tasks=50))


def test_pay_that_is_asked_for_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hold is as large as the job may cost, and no larger."""

    def twice(*given: Any) -> list[Obligation]:
        return [obligation for obligation in owed_for(*given) for _ in range(5_000)]

    monkeypatch.setattr(job_ends, "owed_for", twice)
    with pytest.raises(BrokenRule, match="more than was held"):
        simulate(plan(tasks=50))


def test_the_watch_allows_what_production_allows() -> None:
    """Every transition of production's table is one that is looked for, so that no rule is wrongly called broken."""
    made = {(before, after) for (before, _), after in ATTEMPTS.items()}
    assert made <= watch.ATTEMPTS
    assert (AttemptState.JUDGED, AttemptState.SUBMITTED) not in watch.ATTEMPTS


def test_a_churn_of_nothing_is_no_endless_loop() -> None:
    flickering = Churn(Spans(1.0, 1e-4), Spans(1.0, 1e-4))
    _, comings = turns(small_pool(1, 1), flickering, Instant(0), HOUR // 10, 1)
    assert 10 < len(comings) < 10_000
    assert presence.AT_HOME.there_share == pytest.approx(0.882, abs=0.01)
    assert all(at < HOUR // 10 for at, _, _ in comings)
