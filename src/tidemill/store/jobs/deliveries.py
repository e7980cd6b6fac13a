"""What nodes deliver: receipts are stored as they were signed, and what follows from them is written; and what attempts
print, up to a number of lines per attempt.

A repeated receipt finds its lease over, and changes nothing. Where the ledger refuses to pay, the delivery is stored
anyway, and settled later.

A result may come late: an attempt that was given up delivers after all, before any other has. Whoever locks the task's
row in the queue, or the other attempt's lease, decides on the task. A task that has ended, or that another attempt has
delivered, is not found. Holders are locked after the leases that reports name, so two batches may wait for each other:
the database ends one, and its reports come again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt_reports import OutputReport
from tidemill.core.jobs.plans.deliveries import GivenUpAttempt, ReportedWork, SignedReceipts, follow_deliveries
from tidemill.core.jobs.plans.happenings import AttemptHappening, Lease, WorkTerms
from tidemill.core.jobs.plans.work_plan import WorkPlan
from tidemill.store.jobs import leases, work_plans
from tidemill.store.query import Connection, Query
from tidemill.store.settlement.obligations import Unpayable

LINES_MAX = 10_000
PIECE_MAX = 65_536
ROW_BYTES = 200
"""What a piece of output takes in the database besides its text."""

RANKS = (0, 1, 2)


class Signer(NamedTuple):
    """A node, the key that must have signed its batches, and its owner. The pool itself owns what a house node
    computes."""

    node_id: UUID
    key: bytes
    owner_id: UUID
    house: bool


class HeardAttempt(NamedTuple):
    """An attempt of which its node told some progress, under which lease, and when: first, and at last."""

    attempt_id: UUID
    node_id: UUID
    lease: int
    first_at: Instant
    last_at: Instant


class PrintedOutput(NamedTuple):
    """What a node tells that its attempt prints, and since when the pool knows that the attempt runs."""

    node_id: UUID
    report: OutputReport
    begun_at: Instant


class _WaitingTask(NamedTuple):
    task_id: UUID
    rank: int
    failures: int
    tries: int


_KEYS = Query("jobs/node/keys", Signer)
_KEEP_BATCHES = Query("jobs/lease/keep_batches")
_GIVEN_UP = Query("jobs/late/find", Lease)
_WAITING = Query("jobs/late/waiting", _WaitingTask)
_HOLDERS = Query("jobs/late/holders", Lease)
_PRINT = Query("jobs/lease/print", by_key=True)
_HEAR = Query("jobs/lease/hear", by_key=True)


async def signers(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, Signer]:
    return {signer.node_id: signer for signer in await _KEYS.rows(connection, ids=list(node_ids))}


async def apply(
    transaction: Connection,
    batches: Sequence[SignedReceipts],
    reports: Sequence[AttemptHappening],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> WorkPlan:
    """Apply receipts, and what else nodes report of their attempts."""
    work = await _lock(transaction, batches, reports)
    try:
        async with transaction.transaction():
            return await _write(transaction, follow_deliveries(work, terms, ids, now), batches, terms, ids, now)
    except Unpayable:
        plan = follow_deliveries(work, terms, ids, now, is_payable=False)
        return await _write(transaction, plan, batches, terms, ids, now)


async def keep_output(
    transaction: Connection, printed: Sequence[PrintedOutput], bytes_max: int, ids: Ids, now: Instant
) -> None:
    """Store what nodes report that their attempts print, at most so many bytes of each."""
    pieces = [
        (output, text) for output in printed if output.report.first < LINES_MAX and (text := _text(output.report.lines))
    ]
    if pieces:
        await _PRINT.run(
            transaction,
            ids=[ids.new(now) for _ in pieces],
            attempt_ids=[output.report.of.attempt_id for output, _ in pieces],
            node_ids=[output.node_id for output, _ in pieces],
            leases=[output.report.of.lease for output, _ in pieces],
            texts=[text for _, text in pieces],
            begun_ats=[output.begun_at for output, _ in pieces],
            row_bytes=ROW_BYTES,
            bytes_max=bytes_max,
            now=now,
        )


async def hear(transaction: Connection, heard: Sequence[HeardAttempt]) -> None:
    """Note when the pool first and last heard of attempts."""
    await _HEAR.run(
        transaction,
        attempt_ids=[attempt.attempt_id for attempt in heard],
        node_ids=[attempt.node_id for attempt in heard],
        leases=[attempt.lease for attempt in heard],
        first_ats=[attempt.first_at for attempt in heard],
        last_ats=[attempt.last_at for attempt in heard],
    )


async def _lock(
    transaction: Connection, batches: Sequence[SignedReceipts], reports: Sequence[AttemptHappening]
) -> ReportedWork:
    """Lock what reports name, with all that a decision on it needs."""
    claimed = {(receipt.attempt_id, receipt.node_id) for batch in batches for receipt in batch.receipts}
    locked = await leases.lock(transaction, claimed.union((report.attempt_id, report.node_id) for report in reports))
    earlier = await leases.earlier_failures(transaction, leases.tried_before(locked.values()))
    given_up = await _given_up(transaction, {claim for claim in claimed if claim[0] not in locked})
    return ReportedWork(batches, reports, locked, earlier, given_up)


async def _given_up(transaction: Connection, claimed: set[tuple[UUID, UUID]]) -> list[GivenUpAttempt]:
    """The given-up ones of these attempts, with their tasks locked; without those whose task has been delivered."""
    if not claimed:
        return []
    found = await _GIVEN_UP.rows(transaction, attempt_ids=sorted({attempt_id for attempt_id, _ in claimed}))
    given_up = [lease for lease in found if (lease.attempt_id, lease.node_id) in claimed]
    if not given_up:
        return []
    task_ids = sorted({lease.task_id for lease in given_up})
    waiting = await _WAITING.rows(transaction, ranks=list(RANKS), task_ids=task_ids)
    holders = {lease.task_id: lease for lease in await _HOLDERS.rows(transaction, task_ids=task_ids)}
    tasks: dict[UUID, _WaitingTask | Lease] = {**{task.task_id: task for task in waiting}, **holders}
    return [
        GivenUpAttempt(lease, task.rank, task.failures, task.tries, holders.get(lease.task_id))
        for lease in given_up
        if (task := tasks.get(lease.task_id))
    ]


async def _write(
    transaction: Connection,
    plan: WorkPlan,
    batches: Sequence[SignedReceipts],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> WorkPlan:
    named = plan.batch_ids
    await _keep(transaction, [batch for batch in batches if batch.id in named], now)
    await work_plans.write(transaction, plan, terms, ids, now)
    return plan


async def _keep(transaction: Connection, batches: Sequence[SignedReceipts], now: Instant) -> None:
    """Store batches that an attempt refers to, and no others: a node cannot fill the disk with receipts of nothing."""
    if batches:
        await _KEEP_BATCHES.run(
            transaction,
            ids=[batch.id for batch in batches],
            node_ids=[batch.node_id for batch in batches],
            bodies=[batch.body for batch in batches],
            signatures=[batch.signature for batch in batches],
            now=now,
        )


def _text(lines: Sequence[str]) -> str:
    """The lines as PostgreSQL can store them: its text has no zero character."""
    return "\n".join(lines).replace("\0", "\N{REPLACEMENT CHARACTER}")[:PIECE_MAX]
