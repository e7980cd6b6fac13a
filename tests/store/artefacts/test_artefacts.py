"""Artefacts in the database: quotas under concurrency, what refers to what, grants of nodes, models."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from uuid import UUID

import pytest

from tests.worlds.databases.node_rows import IDS, an_owner, now_of
from tidemill.core.artefacts.access import AccountCaller
from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose
from tidemill.core.artefacts.grants import Access, Grant
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.retention import SMALLEST_BYTES, OverQuota
from tidemill.core.artefacts.uploads import UPLOADS_MAX, Upload
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.models.model import Model, ModelDescription, ModelRefusal
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.refusals import Refusal
from tidemill.store.artefacts import artefact_grants, artefacts, uploads
from tidemill.store.artefacts.artefacts import ArtefactFilter, Deletion
from tidemill.store.artefacts.uploads import BeginRefusal, SizeRules
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.models import models

MIB = 1024 * 1024
RULES = SizeRules(size_max_bytes=100 * MIB, quota_bytes=10 * MIB)
WANTED = ModelDescription("tiny-1.0", "https://example.com/tiny", "Apache-2.0", 500, 0)


def digest_of(content: bytes) -> Digest:
    return Digest(sha256(content).hexdigest())


def an_upload(owner: UUID, now: Instant, length_bytes: int = MIB, purpose: Purpose = Purpose.INPUT) -> Upload:
    return Upload(IDS.new(now), owner, owner, purpose, "numbers.bin", length_bytes, None, Instant(now + HOUR))


async def begin(database: Database, upload: Upload, rules: SizeRules = RULES) -> BeginRefusal | None:
    async with database.transaction() as transaction:
        return await uploads.begin(transaction, upload, rules)


async def keep(database: Database, upload: Upload, digest: Digest, now: Instant) -> UUID | UploadRefusal:
    async with database.transaction() as transaction:
        return await artefacts.keep(transaction, upload, digest, IDS, now)


async def made(database: Database, owner: UUID, now: Instant, content: bytes, **changed: object) -> UUID:
    upload = replace(an_upload(owner, now, len(content)), **changed)  # type: ignore[arg-type]
    assert await begin(database, upload) is None
    artefact_id = await keep(database, upload, digest_of(content), now)
    assert isinstance(artefact_id, UUID)
    return artefact_id


async def delete(database: Database, artefact_id: UUID, owner: UUID, now: Instant) -> Artefact | Refusal:
    async with database.transaction() as transaction:
        deleting = Deletion(AccountCaller(owner), f"account:{owner}")
        return await artefacts.delete(transaction, artefact_id, deleting, IDS, now)


async def begin_result(database: Database, upload: Upload, attempt_id: UUID, now: Instant) -> object:
    async with database.transaction() as transaction:
        return await uploads.begin_result(transaction, upload, attempt_id, now)


async def give(database: Database, *grants: Grant) -> None:
    async with database.connection() as connection:
        await artefact_grants.give(connection, grants)


async def rows(database: Database, sql: str) -> Sequence[dict[str, object]]:
    async with database.connection() as connection:
        return [dict(row) for row in await connection.fetch(sql)]


async def expect_sums(database: Database) -> None:
    """What is counted is what is there."""
    wrong = await rows(
        database,
        "SELECT u.account_id FROM artefact_usage u WHERE used_bytes <> "
        "(SELECT coalesce(sum(greatest(size_bytes, 4096)), 0) FROM artefact a "
        "WHERE a.account_id = u.account_id) OR reserved_bytes <> "
        "(SELECT coalesce(sum(greatest(length_bytes, 4096)), 0) FROM upload p "
        "WHERE p.account_id = u.account_id AND artefact_id IS NULL)",
    )
    unlike = await rows(
        database,
        "SELECT digest FROM artefact_content c WHERE refers <> "
        "(SELECT count(*) FROM artefact a WHERE a.digest = c.digest)",
    )
    assert (wrong, unlike) == ([], [])


@pytest.fixture
async def now(database: Database) -> Instant:
    return await now_of(database)


@pytest.fixture
async def owner(database: Database, now: Instant) -> UUID:
    return await an_owner(database, now)


async def test_a_hundred_uploads_at_once_do_not_pass_the_quota(database: Database, owner: UUID, now: Instant) -> None:
    answers = await asyncio.gather(*(begin(database, an_upload(owner, now)) for _ in range(100)))
    assert answers.count(None) == 10
    refused = next(answer for answer in answers if answer)
    assert isinstance(refused, OverQuota)
    assert refused.room.free_bytes == 0
    await expect_sums(database)


async def test_artefacts_without_bytes_fill_a_quota_too(database: Database, owner: UUID, now: Instant) -> None:
    """Each costs a file and rows: whoever makes millions of them fills a disk, and would be told of no quota."""
    rules = SizeRules(size_max_bytes=MIB, quota_bytes=3 * SMALLEST_BYTES)
    for _ in range(3):
        upload = an_upload(owner, now, 0)
        assert await begin(database, upload, rules) is None
        kept = await keep(database, upload, digest_of(b""), now)
        assert isinstance(kept, UUID)
    assert isinstance(await begin(database, an_upload(owner, now, 0), rules), OverQuota)
    await expect_sums(database)
    await delete(database, kept, owner, now)
    assert await begin(database, an_upload(owner, now, 0), rules) is None
    await expect_sums(database)


async def test_whoever_uploads_and_deletes_in_turns_fills_no_disk(
    database: Database, owner: UUID, now: Instant
) -> None:
    """Bytes stay in storage for a day after the last artefact of them went."""
    half = SizeRules(size_max_bytes=MIB, quota_bytes=MIB)
    for number in range(2):
        upload = an_upload(owner, now)
        assert await begin(database, upload, half) is None
        kept = await keep(database, upload, digest_of(b"%d" % number), now)
        assert isinstance(kept, UUID)
        await delete(database, kept, owner, now)
    assert isinstance(await begin(database, an_upload(owner, now), half), OverQuota)
    async with database.connection() as connection:
        await artefacts.forget(connection, digest_of(b"0"), Instant(now + 1))
    assert await begin(database, an_upload(owner, now), half) is None
    await expect_sums(database)


async def test_what_somebody_else_keeps_too_is_not_counted_when_one_deletes_it(
    database: Database, owner: UUID, now: Instant
) -> None:
    other = await an_owner(database, now)
    mine, theirs = await made(database, owner, now, b"same"), await made(database, other, now, b"same")
    await delete(database, mine, owner, now)
    assert await rows(database, "SELECT left_by FROM artefact_content") == [{"left_by": None}]
    await delete(database, theirs, other, now)
    assert await rows(database, "SELECT left_by FROM artefact_content") == [{"left_by": other}]
    await made(database, owner, now, b"same")
    assert await rows(database, "SELECT left_by FROM artefact_content") == [{"left_by": None}]


async def test_uploads_that_are_begun_finished_and_ended_at_once_leave_true_sums(
    database: Database, owner: UUID, now: Instant
) -> None:
    async def one(number: int) -> None:
        upload = an_upload(owner, now, 1000 + number)
        assert await begin(database, upload) is None
        if number % 3 == 0:
            async with database.transaction() as transaction:
                assert await uploads.end(transaction, upload)
            return
        found = await asyncio.gather(*(keep(database, upload, digest_of(b"same"), now) for _ in range(2)))
        assert found[0] == found[1], "finished twice at once, it is one artefact"
        if number % 3 == 1:
            assert isinstance(found[0], UUID)
            assert isinstance(await delete(database, found[0], owner, now), Artefact)

    await asyncio.gather(*(one(number) for number in range(30)))
    await expect_sums(database)
    assert await rows(database, "SELECT refers FROM artefact_content") == [{"refers": 10}]


async def test_room_comes_back_with_what_is_deleted_or_given_up(database: Database, owner: UUID, now: Instant) -> None:
    upload = an_upload(owner, now, 10 * MIB)
    assert await begin(database, upload) is None
    assert isinstance(await begin(database, an_upload(owner, now, 1)), OverQuota)
    async with database.transaction() as transaction:
        assert await uploads.end(transaction, upload)
        assert not await uploads.end(transaction, upload), "once"
    artefact_id = await made(database, owner, now, bytes(10 * MIB))
    assert isinstance(await begin(database, an_upload(owner, now, 1)), OverQuota)
    assert isinstance(await delete(database, artefact_id, owner, now), Artefact)
    assert await begin(database, an_upload(owner, now, 10 * MIB)) is None
    await expect_sums(database)


@pytest.mark.parametrize(
    ("length_bytes", "refusal"),
    [(-1, UploadRefusal.UPLOAD_LENGTH_MALFORMED), (100 * MIB + 1, ArtefactRefusal.ARTEFACT_TOO_LARGE)],
)
async def test_a_length_that_cannot_be_is_refused(
    database: Database, owner: UUID, now: Instant, length_bytes: int, refusal: Refusal
) -> None:
    assert await begin(database, an_upload(owner, now, length_bytes)) is refusal


async def test_empty_uploads_without_number_are_refused(database: Database, owner: UUID, now: Instant) -> None:
    async with database.transaction() as transaction:
        for _ in range(UPLOADS_MAX):
            assert await uploads.begin(transaction, an_upload(owner, now, 0), RULES) is None
        assert await uploads.begin(transaction, an_upload(owner, now, 0), RULES) is UploadRefusal.TOO_MANY_UPLOADS


async def test_a_finished_upload_is_remembered_and_costs_nothing_more(
    database: Database, owner: UUID, now: Instant
) -> None:
    upload = an_upload(owner, now)
    await begin(database, upload)
    artefact_id = await keep(database, upload, digest_of(b"x"), now)
    async with database.transaction() as transaction:
        found = await uploads.get(transaction, upload.id)
        assert found
        assert found.artefact_id == artefact_id
        assert await uploads.known(transaction, [upload.id]) == [], "storage may let go of it"
        assert await uploads.end(transaction, found)
    assert await keep(database, upload, digest_of(b"x"), now) is UploadRefusal.UNKNOWN_UPLOAD
    await expect_sums(database)


async def test_an_upload_that_is_overdue_becomes_nothing(database: Database, owner: UUID, now: Instant) -> None:
    upload = an_upload(owner, now)
    await begin(database, upload)
    late = upload.expires_at
    assert await keep(database, upload, digest_of(b"x"), late) is UploadRefusal.UNKNOWN_UPLOAD
    async with database.transaction() as transaction:
        assert [one.id for one in await uploads.overdue(transaction, late, 10)] == [upload.id]
        await uploads.touch(transaction, upload.id, Instant(late + HOUR), Instant(late - 1))
        assert not await uploads.end(transaction, upload, overdue_at=late), "bytes came at the last moment"
    await expect_sums(database)


async def test_the_same_bytes_are_idle_when_the_last_of_their_owners_has_gone(
    database: Database, owner: UUID, now: Instant
) -> None:
    other = await an_owner(database, now)
    first, second = await made(database, owner, now, b"same"), await made(database, other, now, b"same")
    later = Instant(now + 2 * HOUR)
    async with database.connection() as connection:
        await delete(database, first, owner, now)
        assert await artefacts.idle(connection, later, 10) == []
        await delete(database, second, other, now)
        (content,) = await artefacts.idle(connection, later, 10)
        assert (content.digest, content.references, content.idle_since) == (digest_of(b"same"), 0, now)
        assert await artefacts.known(connection, [content.digest, digest_of(b"else")]) == [content.digest]
        await made(database, other, now, b"same")
        await artefacts.forget(connection, content.digest, later)
        assert await artefacts.known(connection, [content.digest]) == [content.digest], "it is kept again"
    await expect_sums(database)


async def test_another_accounts_artefact_is_a_missing_one(database: Database, owner: UUID, now: Instant) -> None:
    other = await an_owner(database, now)
    artefact_id = await made(database, owner, now, b"mine")
    assert await delete(database, artefact_id, other, now) is ArtefactRefusal.UNKNOWN_ARTEFACT
    assert await delete(database, IDS.new(now), other, now) is ArtefactRefusal.UNKNOWN_ARTEFACT
    async with database.connection() as connection:
        assert await artefacts.listed(connection, ArtefactFilter(other), None, 10) == []
        assert [one.id for one in await artefacts.listed(connection, ArtefactFilter(owner), None, 10)] == [artefact_id]


async def test_an_operator_says_why_and_it_is_audited(database: Database, owner: UUID, now: Instant) -> None:
    artefact_id = await made(database, owner, now, b"mine")
    caller = AccountCaller(await an_owner(database, now), is_operator=True)
    async with database.transaction() as transaction:
        silent = Deletion(caller, "account:op")
        assert await artefacts.delete(transaction, artefact_id, silent, IDS, now) is ReasonRefusal.REASON_MISSING
        told = replace(silent, reason="copyright")
        assert isinstance(await artefacts.delete(transaction, artefact_id, told, IDS, now), Artefact)
    found = await rows(database, "SELECT kind, audited FROM event WHERE subject LIKE 'artefact:%' ORDER BY number")
    assert found == [{"kind": "artefact.made", "audited": False}, {"kind": "artefact.removed", "audited": True}]


async def test_an_artefact_that_a_task_needs_is_not_deleted_however_the_two_race(
    database: Database, owner: UUID, now: Instant
) -> None:
    for number in range(10):
        artefact_id, task_id = await made(database, owner, now, b"%d" % number), IDS.new(now)

        async def use(artefact_id: UUID = artefact_id, task_id: UUID = task_id) -> bool:
            async with database.transaction() as transaction:
                return artefact_id in await artefacts.use(transaction, [(task_id, artefact_id)])

        used, deleted = await asyncio.gather(use(), delete(database, artefact_id, owner, now))
        assert used == (deleted is ArtefactRefusal.ARTEFACT_IN_USE)
        async with database.connection() as connection:
            await artefacts.release(connection, [task_id])
        if used:
            assert isinstance(await delete(database, artefact_id, owner, now), Artefact)
    await expect_sums(database)


async def test_what_a_deleted_account_kept_is_found(database: Database, owner: UUID, now: Instant) -> None:
    artefact_id = await made(database, owner, now, b"left behind")
    async with database.connection() as connection:
        assert await artefacts.of_deleted_accounts(connection, 10) == []
        await connection.execute(
            "UPDATE account SET deleted_at = $2, address = '', address_key = id::text WHERE id = $1", owner, now
        )
        assert await artefacts.of_deleted_accounts(connection, 10) == [(artefact_id, owner)]


async def test_a_node_reads_what_its_attempts_need_and_nothing_else(
    database: Database, owner: UUID, now: Instant
) -> None:
    node, attempt, digest = IDS.new(now), IDS.new(now), digest_of(b"input")
    grant = Grant(attempt, node, owner, Access.READ, 5, Instant(now + HOUR), digest)
    await give(database, grant)
    async with database.transaction() as transaction:
        assert await artefact_grants.of_digest(transaction, node, digest) == [grant]
        assert await artefact_grants.of_digest(transaction, IDS.new(now), digest) == []
        assert await artefact_grants.of_digest(transaction, node, digest_of(b"else")) == []
        longer = replace(grant, until=Instant(now + 2 * HOUR))
        await artefact_grants.give(transaction, [longer])
        assert await artefact_grants.of_digest(transaction, node, digest) == [longer]
        await artefact_grants.take_back(transaction, [attempt], now)
        assert await artefact_grants.of_digest(transaction, node, digest) == []


async def test_a_node_uploads_one_result_for_an_attempt_and_it_is_the_customers(
    database: Database, owner: UUID, now: Instant
) -> None:
    node, attempt = IDS.new(now), IDS.new(now)
    result = an_upload(node, now, 20 * MIB, Purpose.RESULT)
    assert await begin_result(database, result, attempt, now) is UploadRefusal.UPLOAD_NOT_GRANTED
    await give(database, Grant(attempt, node, owner, Access.WRITE, 20 * MIB, Instant(now + HOUR)))
    assert await begin_result(database, result, IDS.new(now), now) is UploadRefusal.UPLOAD_NOT_GRANTED
    stranger = replace(result, id=IDS.new(now), begun_by=IDS.new(now))
    assert await begin_result(database, stranger, attempt, now) is UploadRefusal.UPLOAD_NOT_GRANTED
    larger = replace(result, length_bytes=20 * MIB + 1)
    assert await begin_result(database, larger, attempt, now) is ArtefactRefusal.ARTEFACT_TOO_LARGE
    late = Instant(now + HOUR)
    assert await begin_result(database, result, attempt, late) is UploadRefusal.UPLOAD_NOT_GRANTED
    lost = replace(result, id=IDS.new(now))
    assert await begin_result(database, lost, attempt, now) != UploadRefusal.UPLOAD_NOT_GRANTED
    begun = await begin_result(database, result, attempt, now)
    expected = replace(result, account_id=owner, attempt_id=attempt)
    assert begun == (expected, lost.id), "the one before it is over; beyond the quota or not"
    assert isinstance(await keep(database, expected, digest_of(b"result"), now), UUID)
    again = replace(result, id=IDS.new(now))
    assert await begin_result(database, again, attempt, now) is UploadRefusal.UPLOAD_NOT_GRANTED
    async with database.connection() as connection:
        (kept,) = await artefacts.listed(connection, ArtefactFilter(owner), None, 10)
    assert (kept.attempt_id, kept.purpose, kept.size_bytes) == (attempt, Purpose.RESULT, 20 * MIB)
    await expect_sums(database)


async def test_results_of_one_attempt_that_begin_at_once_leave_one(
    database: Database, owner: UUID, now: Instant
) -> None:
    node, attempt = IDS.new(now), IDS.new(now)
    await give(database, Grant(attempt, node, owner, Access.WRITE, MIB, Instant(now + HOUR)))
    several = [an_upload(node, now, MIB, Purpose.RESULT) for _ in range(10)]
    await asyncio.gather(*(begin_result(database, one, attempt, now) for one in several))
    assert await rows(database, "SELECT count(*) AS uploads FROM upload") == [{"uploads": 1}]
    await expect_sums(database)


async def test_an_upload_of_an_attempt_that_was_taken_back_becomes_nothing(
    database: Database, owner: UUID, now: Instant
) -> None:
    for _ in range(10):
        node, attempt = IDS.new(now), IDS.new(now)
        await give(database, Grant(attempt, node, owner, Access.WRITE, MIB, Instant(now + HOUR)))
        upload = an_upload(node, now, 1000, Purpose.RESULT)
        result = replace(upload, account_id=owner, attempt_id=attempt)

        async def take_back(attempt: UUID = attempt) -> None:
            async with database.transaction() as transaction:
                await artefact_grants.take_back(transaction, [attempt], now)

        _, begun = await asyncio.gather(take_back(), begin_result(database, upload, attempt, now))
        assert await keep(database, result, digest_of(b"late"), now) is UploadRefusal.UNKNOWN_UPLOAD, begun
    await expect_sums(database)


async def test_a_result_that_is_finished_while_its_attempt_is_taken_back_is_kept_or_not_and_nobody_waits_for_ever(
    database: Database, owner: UUID, now: Instant
) -> None:
    for _ in range(10):
        node, attempt = IDS.new(now), IDS.new(now)
        await give(database, Grant(attempt, node, owner, Access.WRITE, MIB, Instant(now + HOUR)))
        upload = an_upload(node, now, 1000, Purpose.RESULT)
        await begin_result(database, upload, attempt, now)
        result = replace(upload, account_id=owner, attempt_id=attempt)

        async def take_back(attempt: UUID = attempt) -> None:
            async with database.transaction() as transaction:
                await artefact_grants.take_back(transaction, [attempt], now)

        _, kept = await asyncio.gather(take_back(), keep(database, result, digest_of(b"r"), now))
        assert isinstance(kept, UUID) or kept is UploadRefusal.UNKNOWN_UPLOAD
    await expect_sums(database)


async def test_grants_that_are_over_are_forgotten(database: Database, owner: UUID, now: Instant) -> None:
    grants = [
        Grant(IDS.new(now), IDS.new(now), owner, Access.WRITE, 1, Instant(now + place * SECOND)) for place in range(10)
    ]
    await give(database, *grants)
    async with database.connection() as connection:
        assert await artefact_grants.forget(connection, Instant(now + 5 * SECOND), 3) == 3
        assert await artefact_grants.forget(connection, Instant(now + 5 * SECOND), 100) == 2


async def test_a_model_has_one_name_and_keeps_its_artefact(database: Database, owner: UUID, now: Instant) -> None:
    weights = await made(database, owner, now, b"weights", purpose=Purpose.MODEL)
    plain = await made(database, owner, now, b"input")

    async def add(artefact_id: UUID, **changed: object) -> Model | ModelRefusal:
        async with database.transaction() as transaction:
            wanted = replace(WANTED, **changed)  # type: ignore[arg-type]
            return await models.add(transaction, wanted, artefact_id, by="operator", ids=IDS, now=now)

    assert await add(plain) is ModelRefusal.MODEL_ARTEFACT_WRONG
    assert await add(IDS.new(now)) is ModelRefusal.MODEL_ARTEFACT_WRONG
    assert await add(weights, name="../etc") is ModelRefusal.MODEL_NAME_MALFORMED
    assert await add(weights, licence=" ") is ModelRefusal.MODEL_TEXT_MALFORMED
    assert await add(weights, gpu_memory_mib=-1) is ModelRefusal.MODEL_NEEDS_MALFORMED
    several = await asyncio.gather(add(weights), add(weights, name="TINY-1.0"), add(weights))
    assert sum(isinstance(one, Model) for one in several) == 1
    assert await delete(database, weights, owner, now) is ArtefactRefusal.ARTEFACT_IN_USE
    async with database.transaction() as transaction:
        (found,) = await models.listed(transaction, None, 10)
        assert await models.get(transaction, "Tiny-1.0") == found
        assert found.digest == digest_of(b"weights")
        assert await models.remove(transaction, "tiny-1.0", by="operator", ids=IDS, now=now) == found
        assert await models.get(transaction, "tiny-1.0") is None
    assert isinstance(await delete(database, weights, owner, now), Artefact)


async def test_events_of_an_artefact_are_its_owners_and_those_of_models_everybodys(
    database: Database, owner: UUID, now: Instant
) -> None:
    weights = await made(database, owner, now, b"weights", purpose=Purpose.MODEL)
    async with database.transaction() as transaction:
        await models.add(transaction, WANTED, weights, by="operator", ids=IDS, now=now)
    async with database.connection() as connection:
        found = [event for event in await events.read(connection, LOG_START, 100) if "pool" not in event.subject]
    assert [(event.kind, event.public, event.accounts) for event in found] == [
        ("artefact.made", False, [owner]),
        ("model.added", True, []),
    ]
