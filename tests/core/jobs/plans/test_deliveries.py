"""What nodes deliver counts for the lease that it names, once; the first result of a task counts, even a late one."""

import hashlib
import secrets
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import AttemptState
from tidemill.core.jobs.plans.deliveries import GivenUpAttempt, ReportedWork, SignedReceipts, follow_deliveries
from tidemill.core.jobs.plans.happenings import EarlierFailure, Lease, WorkTerms
from tidemill.core.jobs.plans.work_plan import OVERTAKEN
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.task import Blame, RetryLimits, TaskState
from tidemill.core.settlement.pay import PayTerms, RewardPlan, cost_max_uc
from tidemill.core.trust.checks.judgement import UNEXPECTED

IDS = Ids(secrets.randbits)
NOW = Instant(1_800_000_000_000_000)
TERMS = WorkTerms(RetryLimits(failures_max=5), RewardPlan())
HOURLY_UC, QUOTED_MS = 3_600_000, 2_000
RESULT = b"right"
SHA256 = hashlib.sha256(RESULT).digest()
TASK, FIRST, SECOND_NODE, OTHER = UUID(int=1), UUID(int=10), UUID(int=11), UUID(int=12)


def lease_of(
    node_id: UUID, tries: int, *, failures: int = 0, expected: bytes | None = SHA256, house: bool = False
) -> Lease:
    return Lease(
        *(UUID(int=100 + tries), TASK, UUID(int=2), UUID(int=3), node_id, UUID(int=node_id.int + 10), 1, failures),
        *(tries, AttemptState.OFFERED, None, None, HOURLY_UC, QUOTED_MS, 0, Instant(NOW - 2 * SECOND)),
        *(None, None, house, expected),
        *(cost_max_uc(TERMS.plan, PayTerms(HOURLY_UC, QUOTED_MS)), UUID(int=4), True, False, "script"),
    )


def batch_of(lease: Lease, reason: str = "", sent_by: UUID | None = None) -> SignedReceipts:
    """A batch with one receipt of an attempt; with a reason, of its failure."""
    node_id = sent_by or lease.node_id
    receipt = Receipt(
        *(TASK, lease.attempt_id, node_id, lease.tries, b"" if reason else SHA256, None, b"" if reason else RESULT),
        *((), Instant(NOW - SECOND), NOW, 0, "exact", b""),
        *(AttemptOutcome.FAILED if reason else AttemptOutcome.DONE, 0, reason),
    )
    return SignedReceipts(UUID(int=1_000 + node_id.int), node_id, False, b"body", b"signature", (receipt,))


def test_a_right_result_is_paid_and_waits_where_the_ledger_does_not_pay() -> None:
    lease = lease_of(FIRST, 1)
    work = ReportedWork([batch_of(lease)], (), {lease.attempt_id: lease}, {}, ())
    plan = follow_deliveries(work, TERMS, IDS, NOW)
    assert [end.state for end in plan.task_ends] == [TaskState.COMPLETED]
    assert len(plan.paid) == 1
    unpaid = follow_deliveries(work, TERMS, IDS, NOW, is_payable=False)
    assert [change.state for change in unpaid.changes] == [AttemptState.SUBMITTED]
    assert not unpaid.paid


def test_nobody_delivers_or_prevents_the_attempt_of_another_node() -> None:
    lease = lease_of(FIRST, 1)
    foreign = batch_of(lease, sent_by=OTHER)
    held = {lease.attempt_id: lease}
    assert follow_deliveries(ReportedWork([foreign], (), held, {}, ()), TERMS, IDS, NOW).is_empty
    both = ReportedWork([foreign, batch_of(lease)], (), held, {}, ())
    assert follow_deliveries(both, TERMS, IDS, NOW).paid


def failure_of(owner: int, reason: str, *, is_crash: bool = True) -> EarlierFailure:
    times = (Instant(NOW - 10 * SECOND), Instant(NOW - 9 * SECOND))
    return EarlierFailure(
        TASK, UUID(int=50 + owner), UUID(int=owner), reason, is_crash, False, HOURLY_UC, QUOTED_MS, 0, *times
    )


def test_two_strangers_do_not_call_a_task_faulty() -> None:
    """Two free accounts with a cheap node each failed anybody's jobs."""
    lease = lease_of(SECOND_NODE, 2, failures=1)
    earlier = {TASK: [failure_of(20, "It has no input.")]}
    work = ReportedWork([batch_of(lease, "It has no input.")], (), {lease.attempt_id: lease}, earlier, ())
    plan = follow_deliveries(work, TERMS, IDS, NOW)
    assert [again.task_id for again in plan.waiting] == [TASK]
    assert (plan.task_ends, plan.blames, plan.paid) == ([], [], [])


def test_a_program_that_fails_on_a_house_node_too_is_paid_for_by_its_customer() -> None:
    lease = lease_of(SECOND_NODE, 2, failures=1, house=True)
    same, other = failure_of(20, "exit code 3"), failure_of(21, "exit code 9")
    work = ReportedWork([batch_of(lease, "exit code 3")], (), {lease.attempt_id: lease}, {TASK: [same, other]}, ())
    plan = follow_deliveries(work, TERMS, IDS, NOW)
    [end] = plan.task_ends
    assert (end.state, plan.blames) == (TaskState.FAILED, [])
    assert [(late.attempt_id, late.paid_uc) for late in plan.late_pays] == [(same.attempt_id, 1_000)]
    assert [(paid.owner_id, paid.is_verified) for paid in plan.paid] == [(same.owner_id, False)]
    assert 0 < end.cost_uc == sum(paid.due.cost_uc for paid in plan.paid) <= lease.cost_max_uc


def test_a_failure_that_a_node_made_up_is_recorded_once_another_has_succeeded() -> None:
    lease = lease_of(SECOND_NODE, 2, failures=1)
    earlier = {TASK: [failure_of(20, "It has no input.")]}
    work = ReportedWork([batch_of(lease)], (), {lease.attempt_id: lease}, earlier, ())
    assert follow_deliveries(work, TERMS, IDS, NOW).blames == [(UUID(int=20), Blame.CRASHED)]


def test_a_customer_who_expects_something_wrong_blames_nobody_and_pays_for_the_time() -> None:
    first = lease_of(FIRST, 1, expected=bytes(32))
    plan = follow_deliveries(ReportedWork([batch_of(first)], (), {first.attempt_id: first}, {}, ()), TERMS, IDS, NOW)
    assert ([again.task_id for again in plan.waiting], plan.blames) == ([TASK], [])
    second = lease_of(SECOND_NODE, 2, failures=1, expected=bytes(32), house=True)
    earlier = {TASK: [failure_of(20, UNEXPECTED, is_crash=False)]}
    work = ReportedWork([batch_of(second)], (), {second.attempt_id: second}, earlier, ())
    plan = follow_deliveries(work, TERMS, IDS, NOW)
    [end] = plan.task_ends
    assert (end.state, plan.blames) == (TaskState.FAILED, [])
    assert {paid.owner_id for paid in plan.paid} == {UUID(int=20)}


def test_two_strangers_who_miss_the_hash_that_is_expected_do_not_fail_the_job() -> None:
    """They were paid for two wrong results, and an honest customer paid."""
    second = lease_of(SECOND_NODE, 2, failures=1, expected=bytes(32))
    earlier = {TASK: [failure_of(20, UNEXPECTED, is_crash=False)]}
    work = ReportedWork([batch_of(second)], (), {second.attempt_id: second}, earlier, ())
    plan = follow_deliveries(work, TERMS, IDS, NOW)
    assert [(again.task_id, again.failures) for again in plan.waiting] == [(TASK, 2)]
    assert (plan.task_ends, plan.blames, plan.paid) == ([], [], [])


def test_a_late_result_takes_its_task_from_whoever_has_not_delivered() -> None:
    given_up = lease_of(FIRST, 1)._replace(state=AttemptState.LOST)
    holder = lease_of(SECOND_NODE, 2, failures=1)
    late = GivenUpAttempt(given_up, holder.rank, holder.failures, holder.tries, holder)
    plan = follow_deliveries(ReportedWork([batch_of(given_up)], (), {}, {}, [late]), TERMS, IDS, NOW)
    [resumed] = plan.resumed
    assert (resumed.attempt_id, resumed.failures, resumed.tries) == (given_up.attempt_id, 1, 2)
    assert [(off.attempt_id, off.reason) for off in plan.called_off] == [(holder.attempt_id, OVERTAKEN)]


def test_a_late_result_counts_for_nothing_beside_a_result_in_time_or_as_a_failure() -> None:
    given_up = lease_of(FIRST, 1)._replace(state=AttemptState.EXPIRED)
    holder = lease_of(SECOND_NODE, 2)
    late = GivenUpAttempt(given_up, holder.rank, holder.failures, holder.tries, holder)
    both = ReportedWork([batch_of(given_up), batch_of(holder)], (), {holder.attempt_id: holder}, {}, [late])
    plan = follow_deliveries(both, TERMS, IDS, NOW)
    assert not plan.resumed
    assert [end.attempt_id for end in plan.task_ends] == [holder.attempt_id]
    failed = ReportedWork([batch_of(given_up, "It broke.")], (), {}, {}, [late])
    assert follow_deliveries(failed, TERMS, IDS, NOW).is_empty
    stale = late._replace(lease=given_up._replace(tries=9))
    assert follow_deliveries(ReportedWork([batch_of(given_up)], (), {}, {}, [stale]), TERMS, IDS, NOW).is_empty
