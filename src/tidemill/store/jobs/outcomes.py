"""Applies what happens to attempts: leases continue or end, tasks wait again or end, jobs end, passed work is paid.

A batch is one transaction: lock the leases, let core decide on their current state, and write everything that follows.
A repeated or late happening finds no lease, or a lease of another try, and changes nothing. Lock order: leases by id,
then jobs by id, then owners' records by id, then the ledger. Others need all of these except leases, so those are
locked last and briefly.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import OVER, AttemptState, Happening
from tidemill.core.jobs.events import JobEnded
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.task import ENDED, Attempt, Blame, RetryLimits, TaskEffect, TaskLife, TaskState, TaskStep
from tidemill.core.jobs.task_events import AttemptsPaid, TasksEnded
from tidemill.core.settlement.rewards import AttemptPay, RewardPlan, attempt_pay
from tidemill.store.arrays import bigint_array, text_array, uuid_array
from tidemill.store.events import events
from tidemill.store.jobs import task_ends
from tidemill.store.jobs.task_ends import JobEnd, TaskEnd
from tidemill.store.query import Connection, Query
from tidemill.store.settlement import rewards
from tidemill.store.settlement.rewards import PassedAttempt

_LOCK = Query("jobs/lease/lock", by_key=True)
_CHANGE = Query("jobs/lease/change", by_key=True)
_END_LEASES = Query("jobs/lease/end", by_key=True)
_REQUEUE = Query("jobs/task/requeue")
_COUNT_VERIFIED = Query("jobs/owner_record/count")

Leases: TypeAlias = Mapping[UUID, asyncpg.Record]
"""Locked leases by attempt, each with its task's expected result and highest cost, and whether its job wants it."""

_HOLDER = UUID(int=0)

_TASK_STATES = {
    AttemptState.OFFERED: TaskState.ASSIGNED,
    AttemptState.ACCEPTED: TaskState.ASSIGNED,
    AttemptState.RUNNING: TaskState.COMPUTING,
    AttemptState.SUBMITTED: TaskState.VERIFYING,
}


class AttemptHappening(NamedTuple):
    """What happened to an attempt of a node, under a lease. A report by another node changes nothing.

    `used_ms` is how long it took; `batch_id` and `receipt_index` say where its receipt is.
    """

    attempt_id: UUID
    lease: int
    node_id: UUID
    happenings: tuple[Happening, ...]
    reason: str = ""
    verdict: str = ""
    used_ms: int = 0
    batch_id: UUID | None = None
    receipt_index: int = 0


@dataclass(frozen=True)
class WorkTerms:
    """The rules: when tasks are given up, and what is paid."""

    patience: RetryLimits
    plan: RewardPlan


@dataclass(frozen=True)
class BatchOutcome:
    """The outcome of a batch: the attempts that changed, what owners are blamed for, the jobs that ended.

    `ended` counts the attempts that are over, by state and verdict.
    """

    attempts: Mapping[UUID, AttemptState]
    blames: Sequence[tuple[UUID, Blame]]
    jobs_ended: Mapping[UUID, JobState]
    ended: Mapping[tuple[AttemptState, str], int]


class LeaseChange(NamedTuple):
    """A locked lease, its next step, and what it pays."""

    happening: AttemptHappening
    lease: asyncpg.Record
    step: TaskStep
    due: AttemptPay | None = None


async def apply(
    transaction: Connection, happenings: Sequence[AttemptHappening], terms: WorkTerms, ids: Ids, now: Instant
) -> BatchOutcome:
    """Lock the leases and apply happenings, once each."""
    leases = await lock(transaction, [(happening.attempt_id, happening.node_id) for happening in happenings])
    return await settle(transaction, happenings, leases, terms, ids, now)


async def lock(transaction: Connection, attempts: Iterable[tuple[UUID, UUID]]) -> Leases:
    """Lock the leases of attempts until the transaction ends. A lease that the named node does not hold is left out."""
    pairs = list(attempts)
    rows = await _LOCK.rows(
        transaction,
        attempt_ids=uuid_array([attempt_id for attempt_id, _ in pairs]),
        node_ids=uuid_array([node_id for _, node_id in pairs]),
    )
    return {row["attempt_id"]: row for row in rows}


async def settle(
    transaction: Connection,
    happenings: Sequence[AttemptHappening],
    leases: Leases,
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> BatchOutcome:
    """Apply happenings to locked leases."""
    assert len({happening.attempt_id for happening in happenings}) == len(happenings), "an attempt is named once"
    changes = _decided(happenings, leases, terms)
    ends = [_task_end(change) for change in changes if change.step.task.state in ENDED]
    return await write(transaction, changes, ends, terms.plan, ids, now)


async def write(
    transaction: Connection,
    changes: Sequence[LeaseChange],
    ends: Sequence[TaskEnd],
    plan: RewardPlan,
    ids: Ids,
    now: Instant,
) -> BatchOutcome:
    """Write the changes of leases and tasks, pay, and release what is left of the holds of jobs that ended."""
    over = [change for change in changes if change.step.attempt in OVER]
    owed = await rewards.bill(transaction, [_passed(change) for change in changes if change.due], ids, now)
    await _requeue(transaction, [change for change in changes if change.step.task.state is TaskState.PENDING], now)
    await _change(transaction, [change for change in changes if change.step.attempt not in OVER])
    await _end_leases(transaction, over, owed.rewards, now)
    ended = await task_ends.write(transaction, ends, now)
    if new_events := _events(changes, ends, ended):
        await events.append(transaction, new_events, ids, now)
    await _count_verified(transaction, [change for change in changes if change.due])
    await rewards.pay(transaction, owed, [job.hold_id for job in ended.values()], plan, ids, now)
    return BatchOutcome(
        {change.happening.attempt_id: change.step.attempt for change in changes},
        [(change.lease["owner_id"], change.step.blame) for change in changes if change.step.blame],
        {job_id: job.state for job_id, job in ended.items()},
        Counter((change.step.attempt, change.happening.verdict) for change in over),
    )


async def cancel(transaction: Connection, happenings: Sequence[AttemptHappening], now: Instant) -> None:
    """End attempts whose tasks another attempt has now. The caller has locked their leases."""
    await _END_LEASES.run(
        transaction,
        now=now,
        attempt_ids=uuid_array([happening.attempt_id for happening in happenings]),
        states=text_array([AttemptState.CANCELLED.value for _ in happenings]),
        verdicts=text_array(["" for _ in happenings]),
        reasons=text_array([happening.reason for happening in happenings]),
        paid_uc=bigint_array([0 for _ in happenings]),
        transfer_ids=uuid_array([None for _ in happenings]),
        batch_ids=uuid_array([None for _ in happenings]),
        places=bigint_array([0 for _ in happenings]),
    )


def _decided(happenings: Iterable[AttemptHappening], leases: Leases, terms: WorkTerms) -> list[LeaseChange]:
    changes = []
    for happening in happenings:
        lease = leases.get(happening.attempt_id)
        if lease is None or (lease["tries"], lease["node_id"]) != (happening.lease, happening.node_id):
            continue
        life = (lease["state"], lease["failures"], lease["tries"], lease["wanted"])
        step = _step(life, happening.happenings, terms.patience)
        if step is not None:
            changes.append(LeaseChange(happening, lease, step, _due(happening, lease, step, terms.plan)))
    return changes


@lru_cache(maxsize=10_000)
def _step(
    life: tuple[str, int, int, bool], happenings: tuple[Happening, ...], patience: RetryLimits
) -> TaskStep | None:
    """The next step of a task's attempt. It depends only on their states, so it is cached for all attempts."""
    state, failures, tries, wanted = life
    attempt = Attempt(_HOLDER, AttemptState(state))
    task = TaskLife(_TASK_STATES[attempt.state], failures, tries, _HOLDER)
    return tasks.steps(task, attempt, happenings, patience, wanted=wanted)


def _due(happening: AttemptHappening, lease: asyncpg.Record, step: TaskStep, plan: RewardPlan) -> AttemptPay | None:
    if TaskEffect.PAY not in step.effects or lease["hold_id"] is None:
        return None  # the pool owes itself nothing for an audit
    owed = attempt_pay(plan, lease["hourly_uc"], lease["quoted_ms"], happening.used_ms)
    assert owed.cost_uc <= lease["cost_max_uc"], "no task is placed where it would cost more than was held for it"
    return owed


def _task_end(change: LeaseChange) -> TaskEnd:
    lease, cost_uc = change.lease, change.due.cost_uc if change.due else 0
    return TaskEnd(lease["task_id"], lease["job_id"], change.step.task.state, change.happening.attempt_id, cost_uc)


def life_of(lease: asyncpg.Record) -> TaskLife:
    """The life state of a lease's task."""
    state = _TASK_STATES[AttemptState(lease["state"])]
    return TaskLife(state, lease["failures"], lease["tries"], lease["attempt_id"])


def _passed(change: LeaseChange) -> PassedAttempt:
    assert change.due
    lease = change.lease
    return PassedAttempt(lease["job_id"], lease["account_id"], lease["hold_id"], lease["owner_id"], change.due)


def _events(changes: Sequence[LeaseChange], ends: Sequence[TaskEnd], ended: Mapping[UUID, JobEnd]) -> list[Event]:
    """One event for each job whose tasks ended, for each owner who was paid, and for each job that is over."""
    customers = {change.lease["job_id"]: change.lease["account_id"] for change in changes}
    counts = Counter((end.job_id, end.state) for end in ends if end.job_id in customers)
    jobs = {job_id for job_id, _ in counts}
    paid: dict[UUID, list[int]] = defaultdict(list)
    for change in changes:
        if change.due:
            paid[change.lease["owner_id"]].append(change.due.reward_uc)
    return [
        *(
            TasksEnded(customers[job_id], job_id, counts[job_id, TaskState.COMPLETED], counts[job_id, TaskState.FAILED])
            for job_id in jobs
        ),
        *(AttemptsPaid(owner_id, len(rewards_uc), sum(rewards_uc)) for owner_id, rewards_uc in paid.items()),
        *(
            JobEnded(
                job.account_id,
                job_id,
                job.state.value,
                job.ends.completed,
                job.ends.failed,
                job.ends.cancelled,
                job.spent_uc,
            )
            for job_id, job in ended.items()
        ),
    ]


async def _requeue(transaction: Connection, changes: Sequence[LeaseChange], now: Instant) -> None:
    if changes:
        await _REQUEUE.run(
            transaction,
            now=now,
            ranks=bigint_array([change.lease["rank"] for change in changes]),
            task_ids=uuid_array([change.lease["task_id"] for change in changes]),
            job_ids=uuid_array([change.lease["job_id"] for change in changes]),
            account_ids=uuid_array([change.lease["account_id"] for change in changes]),
            failures=bigint_array([change.step.task.failures for change in changes]),
            tries=bigint_array([change.step.task.tries for change in changes]),
        )


async def _count_verified(transaction: Connection, passed: Sequence[LeaseChange]) -> None:
    if passed:
        counts = Counter(change.lease["owner_id"] for change in passed)
        verified = bigint_array(list(counts.values()))
        await _COUNT_VERIFIED.run(transaction, owner_ids=uuid_array(list(counts)), verified=verified)


async def _change(transaction: Connection, changes: Sequence[LeaseChange]) -> None:
    if changes:
        await _CHANGE.run(
            transaction,
            attempt_ids=uuid_array([change.happening.attempt_id for change in changes]),
            states=text_array([change.step.attempt.value for change in changes]),
            batch_ids=uuid_array([change.happening.batch_id for change in changes]),
            places=bigint_array([change.happening.receipt_index for change in changes]),
        )


async def _end_leases(
    transaction: Connection, over: Sequence[LeaseChange], transfers: Mapping[tuple[UUID, UUID], UUID], now: Instant
) -> None:
    if over:
        await _END_LEASES.run(
            transaction,
            now=now,
            attempt_ids=uuid_array([change.happening.attempt_id for change in over]),
            states=text_array([change.step.attempt.value for change in over]),
            verdicts=text_array([change.happening.verdict for change in over]),
            reasons=text_array([change.happening.reason for change in over]),
            paid_uc=bigint_array([change.due.reward_uc if change.due else 0 for change in over]),
            transfer_ids=uuid_array(
                [transfers.get((change.lease["job_id"], change.lease["owner_id"])) for change in over]
            ),
            batch_ids=uuid_array([change.happening.batch_id or change.lease["batch_id"] for change in over]),
            places=bigint_array([change.happening.receipt_index or change.lease["place"] or 0 for change in over]),
        )
