"""What attempts print is kept up to a number of bytes, which the database counts."""

from tests.store.jobs.test_work_plans import IDS, Pool
from tidemill.core.jobs.attempt_reports import AttemptLease, OutputReport
from tidemill.store.database import Database
from tidemill.store.jobs import deliveries
from tidemill.store.jobs.deliveries import HeardAttempt, PrintedOutput

BYTES_MAX = 256 * 1024


async def test_a_node_that_tells_the_same_lines_again_and_again_fills_no_disk(database: Database) -> None:
    """62 MB went into the database in 15 s from one attempt, with `first` always 0."""
    pool = await Pool.make(database)
    await pool.job(2)
    flooding, quiet = await pool.place()
    for lines in (("x" * 4_000,) * 15, ("y",)):
        report = OutputReport(AttemptLease(flooding.attempt_id, 1), 0, lines)
        for _ in range(40):
            async with database.transaction() as transaction:
                sent = [PrintedOutput(flooding.node_id, report, pool.now)] * 40
                await deliveries.keep_output(transaction, sent, BYTES_MAX, IDS, pool.now)
    said = OutputReport(AttemptLease(quiet.attempt_id, 1), 0, ("done",))
    foreign = OutputReport(AttemptLease(quiet.attempt_id, 1), 0, ("not mine",))
    async with database.transaction() as transaction:
        printed = [
            PrintedOutput(quiet.node_id, said, pool.now),
            PrintedOutput(flooding.node_id, foreign, pool.now),
        ]
        await deliveries.keep_output(transaction, printed, BYTES_MAX, IDS, pool.now)
    async with database.connection() as connection:
        kept = "SELECT sum(octet_length(text) + 200) FROM attempt_log WHERE attempt_id = $1"
        assert BYTES_MAX * 0.7 < await connection.fetchval(kept, flooding.attempt_id) <= BYTES_MAX
        texts = await connection.fetch("SELECT text FROM attempt_log WHERE attempt_id = $1", quiet.attempt_id)
        assert [row["text"] for row in texts] == ["done"]


async def test_the_pool_notes_when_it_last_heard_of_an_attempt_from_its_own_node_only(database: Database) -> None:
    pool = await Pool.make(database)
    await pool.job(2)
    first, second = await pool.place()
    heard = [HeardAttempt(one.attempt_id, first.node_id, 1, pool.now, pool.now) for one in (first, second)]
    async with database.transaction() as transaction:
        await deliveries.hear(transaction, heard)
    async with database.connection() as connection:
        rows = await connection.fetch("SELECT attempt_id FROM lease WHERE heard_at IS NOT NULL")
    assert [row["attempt_id"] for row in rows] == [first.attempt_id]
