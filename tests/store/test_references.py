"""References find what their caller may see: two accounts, ids that end alike, and names that are everything else."""

import re
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
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, connect

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


async def test_every_kind_is_found_by_the_end_of_its_id_and_by_place(database: Database, urls: DatabaseUrls) -> None:
    now = await now_of(database)
    ada = await an_owner(database, now)
    made = {kind: IDS.new(now) for kind in INSERTS}
    connection = await connect(urls.owner)
    try:
        for kind, insert in INSERTS.items():
            places = sorted({int(place) for place in re.findall(r"\$(\d)", insert)})
            values = [made[kind], ada, now, made.get(ObjectKind.ARTEFACT)]
            await connection.execute(insert, *values[: places[-1]])
    finally:
        await connection.close()
    for kind, identifier in made.items():
        for text in (short_id(identifier), identifier.hex[-17:], str(identifier), "last"):
            assert await found_id(database, kind, text, ada) == identifier, (kind, text)
    named = {ObjectKind.ARTEFACT: "data.npy", ObjectKind.KEY: "ci", ObjectKind.MODEL: "Tiny"}
    for kind, name in named.items():
        assert await found_id(database, kind, name, ada) == made[kind]
    assert await found_id(database, ObjectKind.ACCOUNT, f"{ada}@EXAMPLE.org".upper(), None) == ada


INSERTS = {
    ObjectKind.ARTEFACT: """
        WITH content AS (
            INSERT INTO artefact_content (digest, size_bytes, refers) VALUES (repeat('a', 64), 1, 1) RETURNING digest
        )
        INSERT INTO artefact (id, account_id, digest, size_bytes, purpose, name, made_at)
        SELECT $1, $2, digest, 1, 'model', 'data.npy', $3 FROM content""",
    ObjectKind.MODEL: """
        INSERT INTO model (id, name, source, licence, artefact_id, memory_mib, gpu_memory_mib, added_by, added_at)
        SELECT $1, 'tiny', $2::uuid::text, 'MIT', $4, 0, 0, 'test', $3""",
    ObjectKind.KEY: """
        INSERT INTO api_key (id, account_id, name, role, scopes, prefix, sha256, networks, made_at, first_id)
        VALUES ($1, $2, 'ci', 'customer', '{account:read}', 'tm_ci', '\\x00', '{}', $3, $1)""",
    ObjectKind.SESSION: """
        INSERT INTO session (id, account_id, began_at, seen_at, fresh_at, expires_at, address, user_agent, remember,
                             second_factor)
        VALUES ($1, $2, $3, $3, $3, $3::timestamptz + interval '1 day', '', '', false, false)""",
    ObjectKind.LEDGER_ACCOUNT: """
        INSERT INTO ledger_account (id, kind, owner_id, name, currency, floored, opened_at)
        VALUES ($1, 'customer', $2, '', 'credit', true, $3)""",
    ObjectKind.LETTER: """
        INSERT INTO mail (id, recipient, kind, language, made_at, state, tries, next_at, tried_since, sent_at,
                          last_error)
        VALUES ($1, $2::uuid::text, 'test', 'en', $3, 'sent', 0, $3, $3, $3, '')""",
    ObjectKind.REVIEW: """
        INSERT INTO audit (id, of_task_id, owner_id, account_id, claimed, task_id, begun_at, asked_at, doubt)
        VALUES ($1, $1, $2, $2, '', $1, $3, $3, 'too fast')""",
}
