"""Tasks that have ended, with their jobs, attempts and receipts, written straight into the tables of a pool.

They look as if they had been done in the last hour, so they lie in the same partitions and indexes as what is measured.
What they paid is not in the ledger: how the ledger bears its history is measured by `ledger.py`.
"""

from pathlib import Path
from uuid import UUID

from tidemill.store.database import connect
from tidemill.store.embedded.attachment import attach

JOB_TASKS = 1_000
BATCH_RECEIPTS = 64

_ID = "(left(first_id_at({at})::text, 24) || '{kind}' || lpad(to_hex({number}), 11, '0'))::uuid"
_AT = "(now() - interval '1 hour' + {number} * interval '3 milliseconds')"


def _id(kind: str, number: str) -> str:
    """An id in the order of time. `kind` is a hexadecimal digit that tells those of one moment apart."""
    return _ID.format(at=_AT.format(number=number), kind=kind, number=number)


_TASK, _ATTEMPT = _id("1", "n"), _id("2", "n")
_JOB = _id("3", f"(n / {JOB_TASKS} * {JOB_TASKS})")
_BATCH = _id("4", f"(n / {BATCH_RECEIPTS} * {BATCH_RECEIPTS})")
_THEN = _AT.format(number="n")

_STATEMENTS = (
    f"""INSERT INTO job (id, account_id, state, kind, asked, tasks, completed, spent_uc, made_at, confirmed_at,
                         ended_at)
        SELECT {_JOB}, $2, 'completed', 'matmul', '{{}}', {JOB_TASKS}, {JOB_TASKS}, 1, {_THEN}, {_THEN}, {_THEN}
        FROM generate_series(0, $1::bigint - 1, {JOB_TASKS}) AS n WHERE $3::bytea IS NOT NULL""",
    f"""INSERT INTO receipt_batch (id, node_id, body, signature, at)
        SELECT {_BATCH}, (SELECT id FROM node LIMIT 1), decode(repeat(md5(n::text), 800), 'hex'), ''::bytea, {_THEN}
        FROM generate_series(0, $1::bigint - 1, {BATCH_RECEIPTS}) AS n
        WHERE $2::uuid IS NOT NULL AND $3::bytea IS NOT NULL""",
    f"""INSERT INTO task (id, job_id, number, body, demand_id, expected, cost_max_uc, ended, attempt_id, ended_at)
        SELECT {_TASK}, {_JOB}, n % {JOB_TASKS}, $3, md5($3)::uuid, sha256(n::text::bytea), 1, 'completed', {_ATTEMPT},
               {_THEN}
        FROM generate_series(0, $1::bigint - 1) AS n WHERE $2::uuid IS NOT NULL""",
    f"""INSERT INTO attempt (id, task_id, job_id, node_id, owner_id, lease, state, verdict, reason, paid_uc, batch_id,
                             place, offered_at, ended_at)
        SELECT {_ATTEMPT}, {_TASK}, {_JOB}, o.nodes[1 + n % cardinality(o.nodes)], o.owner_id, 1, 'judged', 'pass', '',
               1, {_BATCH}, n % {BATCH_RECEIPTS}, {_THEN}, {_THEN}
        FROM generate_series(0, $1::bigint - 1) AS n,
             (SELECT array_agg(id) AS nodes, min(account_id::text)::uuid AS owner_id FROM node) AS o
        WHERE $2::uuid IS NOT NULL AND $3::bytea IS NOT NULL""",
)


async def fill(home: Path, tasks: int, customer_id: UUID, body: bytes) -> None:
    """So many tasks that this customer had done, each told a node in these bytes."""
    assert tasks % JOB_TASKS == 0, f"a history has jobs of {JOB_TASKS} tasks"
    owner = await connect(attach(home).owner)
    try:
        for statement in _STATEMENTS:
            await owner.execute(statement, tasks, customer_id, body)
        await owner.execute("VACUUM (ANALYZE) job, task, attempt, receipt_batch")  # as a history has long been
    finally:
        await owner.close()
