"""References find what their caller may see: two accounts, ids that end alike, and names that are everything else."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from tests.worlds.databases.node_rows import IDS, an_owner, nodes_of, now_of
from tidemill.core.clock import Instant
from tidemill.core.ids import short_id
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.nodes.node import NodeRefusal
from tidemill.core.references import ObjectKind, ReferenceObjection, ReferenceRefusal, Referent
from tidemill.core.refusals import Refusal
from tidemill.store import references
from tidemill.store.database import Database

ODD_NAMES = ["%", "_", "a%", "'; DROP TABLE job; --", '"', "\\", "чердак", "トレーン", "مرحبا", "$1", ":name", "NULL"]


async def a_job(database: Database, owner: UUID, now: Instant, name: str | None = None, ending: str = "") -> UUID:
    made = IDS.new(now)
    job_id = UUID(made.hex[: 32 - len(ending)] + ending)
    asked = {} if name is None else {"name": name}
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO job (id, account_id, state, kind, asked, made_at) VALUES ($1, $2, 'quoted', 'matmul', $3, $4)",
            job_id,
            owner,
            asked,
            now,
        )
    return job_id


async def found(
    database: Database, kind: ObjectKind, text: str, owner: UUID | None
) -> Referent | ReferenceObjection | Refusal:
    now = await now_of(database)
    async with database.connection() as connection:
        return await references.resolve(connection, kind, text, owner, now)


async def found_id(database: Database, kind: ObjectKind, text: str, owner: UUID | None) -> UUID | None:
    answer = await found(database, kind, text, owner)
    return answer.id if isinstance(answer, Referent) else None


async def called(database: Database, node_ids: Sequence[UUID], name: str) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE node SET name = $2 WHERE id = ANY ($1::uuid[])", list(node_ids), name)


async def test_a_job_is_found_by_each_form_of_reference_and_only_by_who_may_see_it(database: Database) -> None:
    now = await now_of(database)
    ada, ben = await an_owner(database, now), await an_owner(database, now)
    older, newer = await a_job(database, ada, now, "train"), await a_job(database, ada, now, "train")
    foreign = await a_job(database, ben, now, "train")
    for text, meant in {
        str(older): older,
        short_id(older): older,
        older.hex[-13:]: older,
        "train": newer,
        "last": newer,
        "last-1": older,
    }.items():
        assert await found_id(database, ObjectKind.JOB, text, ada) == meant, text
    for text in (str(foreign), short_id(foreign), foreign.hex[-20:], "last-2"):
        missing = await found(database, ObjectKind.JOB, "00000000", ada)
        assert await found(database, ObjectKind.JOB, text, ada) is missing is JobRefusal.UNKNOWN_JOB, text
    assert await found_id(database, ObjectKind.JOB, short_id(foreign), None) == foreign
    assert await found_id(database, ObjectKind.JOB, "last", None) == foreign
    assert isinstance(await found(database, ObjectKind.JOB, "train", None), ReferenceObjection)


async def test_ids_that_end_alike_are_told_apart_among_ones_own_and_tell_nothing_of_others(database: Database) -> None:
    now = await now_of(database)
    ada, ben = await an_owner(database, now), await an_owner(database, now)
    own = await a_job(database, ada, now, "mine", ending="a9fc8e31a")
    foreign = await a_job(database, ben, now, "theirs", ending="b9fc8e31a")
    assert await found_id(database, ObjectKind.JOB, "9fc8e31a", ada) == own
    assert await found_id(database, ObjectKind.JOB, "9fc8e31a", ben) == foreign
    said = await found(database, ObjectKind.JOB, "9fc8e31a", None)
    assert isinstance(said, ReferenceObjection)
    assert "a9fc8e31a (mine, quoted)" in said.sentence
    assert "b9fc8e31a (theirs, quoted)" in said.sentence
    assert await found_id(database, ObjectKind.JOB, "b9fc8e31a", None) == foreign
    assert await found(database, ObjectKind.JOB, "b9fc8e31a", ada) is JobRefusal.UNKNOWN_JOB


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_name_means_itself_whatever_is_written_in_it(database: Database, name: str) -> None:
    now = await now_of(database)
    ada = await an_owner(database, now)
    await a_job(database, ada, now, "another")
    job_id = await a_job(database, ada, now, name)
    await a_job(database, ada, now)
    assert await found_id(database, ObjectKind.JOB, name, ada) == job_id
    assert await found(database, ObjectKind.JOB, f"{name}x", ada) is JobRefusal.UNKNOWN_JOB


async def test_nothing_is_found_where_there_is_nothing(database: Database) -> None:
    now = await now_of(database)
    ada, ben = await an_owner(database, now), await an_owner(database, now)
    await a_job(database, ben, now, "train")
    for kind in ObjectKind:
        for text in ("last", "last-7", "last-999", "00000000", "0" * 31, str(UUID(int=0))):
            answer = await found(database, kind, text, ada if kind not in SEEN_BY_OPERATORS else None)
            assert isinstance(answer, Refusal) or kind in SEEN_BY_OPERATORS, (kind, text)
    assert await found(database, ObjectKind.JOB, "last-1000", ada) is ReferenceRefusal.REFERENCE_MALFORMED


SEEN_BY_OPERATORS = {ObjectKind.ACCOUNT, ObjectKind.LEDGER_ACCOUNT}


async def test_a_node_is_found_by_its_name_unless_it_is_removed_or_two_have_it(database: Database) -> None:
    now = await now_of(database)
    ada, ben = await an_owner(database, now), await an_owner(database, now)
    one, other, gone = [link.node_id for link in await nodes_of(database, ada, 3, None, now)]
    (foreign,) = [link.node_id for link in await nodes_of(database, ben, 1, None, now)]
    await called(database, [one, gone, foreign], "attic")
    await called(database, [other], "cellar")
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE node SET life = 'deregistered', removed_at = $2, removed_reason = '' WHERE id = $1", gone, now
        )
    assert await found_id(database, ObjectKind.NODE, "attic", ada) == one
    assert await found_id(database, ObjectKind.NODE, short_id(gone), ada) == gone
    assert await found_id(database, ObjectKind.NODE, "last", ada) == other
    assert await found_id(database, ObjectKind.NODE, "last-1", ada) == one
    assert await found(database, ObjectKind.NODE, "last-2", ada) is NodeRefusal.UNKNOWN_NODE
    assert await found(database, ObjectKind.NODE, "cellar", ben) is NodeRefusal.UNKNOWN_NODE
    said = await found(database, ObjectKind.NODE, "attic", None)
    assert isinstance(said, ReferenceObjection)
    assert short_id(foreign) in said.sentence
    assert short_id(gone) not in said.sentence
