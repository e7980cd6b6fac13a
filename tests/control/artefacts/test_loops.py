"""Storage is kept in order: what is overdue, unreferenced or unknown goes, and nothing else."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.test_loops import parts_of
from tests.worlds.clocks import HandClock
from tests.worlds.databases.node_rows import an_owner
from tidemill.artefacts.local import LocalStore
from tidemill.control.artefacts.loops import SWEEP_OLDER_US, ArtefactDuty, SweepDuty
from tidemill.control.parts import Parts
from tidemill.core.artefacts.access import AccountCaller
from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose
from tidemill.core.artefacts.grants import Access, Grant
from tidemill.core.artefacts.uploads import Upload
from tidemill.core.clock import DAY, HOUR, Instant
from tidemill.core.ids import Ids
from tidemill.store.artefacts import artefact_grants, artefacts, uploads
from tidemill.store.artefacts.artefacts import ArtefactFilter, Deletion
from tidemill.store.artefacts.uploads import SizeRules
from tidemill.store.database import Database

MIB = 1024 * 1024
RULES = SizeRules(MIB, 4 * MIB)


class Storage:
    """A storage with the database that knows of it."""

    def __init__(self, parts: Parts, store: LocalStore, owner: UUID) -> None:
        self.parts, self.store, self.owner = parts, store, owner

    @property
    def now(self) -> Instant:
        return self.parts.clock.now()

    async def begun(self, content: bytes, purpose: Purpose = Purpose.INPUT) -> Upload:
        upload = Upload(
            self.parts.ids.new(self.now),
            self.owner,
            self.owner,
            purpose,
            "a",
            len(content),
            None,
            Instant(self.now + HOUR),
            self.parts.ids.new(self.now) if purpose is Purpose.RESULT else None,
        )
        async with self.parts.loop_database.transaction() as transaction:
            assert await uploads.begin(transaction, upload, RULES) is None
        await self.filled(upload.id, content)
        return upload

    async def filled(self, upload_id: UUID, content: bytes) -> None:
        await self.store.begin(upload_id, len(content))

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        assert await self.store.append(upload_id, 0, chunks()) == len(content)

    async def kept(self, content: bytes, purpose: Purpose = Purpose.INPUT) -> UUID:
        upload = await self.begun(content, purpose)
        digest = await self.store.finish(upload.id, None, self.now)
        assert isinstance(digest, Digest)
        async with self.parts.loop_database.transaction() as transaction:
            artefact_id = await artefacts.keep(transaction, upload, digest, self.parts.ids, self.now)
        await self.store.abandon(upload.id)
        assert isinstance(artefact_id, UUID)
        return artefact_id

    async def deleted(self, artefact_id: UUID) -> None:
        async with self.parts.loop_database.transaction() as transaction:
            deleting = Deletion(AccountCaller(self.owner), "owner")
            gone = await artefacts.delete(transaction, artefact_id, deleting, self.parts.ids, self.now)
            assert isinstance(gone, Artefact)

    async def has(self, content: bytes) -> bool:
        return await self.store.size(digest_of(content)) is not None

    def later(self, by_us: int) -> Instant:
        assert isinstance(self.parts.clock, HandClock)
        self.parts.clock.at = Instant(self.now + by_us)
        return self.now


def digest_of(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest())


@pytest.fixture
async def storage(database: Database, ids: Ids, tmp_path: Path) -> AsyncIterator[Storage]:
    parts = await parts_of(database, ids, tmp_path)
    store = LocalStore(tmp_path / "artefacts", 2, 0)
    yield Storage(parts, store, await an_owner(database, parts.clock.now()))
    await store.close()
    await parts.poster.close()


async def test_bytes_go_some_time_after_the_last_artefact_that_refers_to_them(storage: Storage) -> None:
    duty = ArtefactDuty(storage.parts, storage.store)
    first, second = await storage.kept(b"same"), await storage.kept(b"same")
    await storage.deleted(first)
    await duty.perform(storage.later(2 * DAY))
    assert await storage.has(b"same"), "one still refers to them"
    await storage.deleted(second)
    await duty.perform(storage.later(HOUR))
    assert await storage.has(b"same"), "not yet"
    await duty.perform(storage.later(DAY))
    assert not await storage.has(b"same")
    async with storage.parts.loop_database.connection() as connection:
        assert await artefacts.known(connection, [digest_of(b"same")]) == []


async def test_bytes_that_are_being_finished_again_are_not_deleted(storage: Storage) -> None:
    duty = ArtefactDuty(storage.parts, storage.store)
    await storage.deleted(await storage.kept(b"same"))
    storage.later(2 * DAY)
    upload = await storage.begun(b"same")
    digest = await storage.store.finish(upload.id, None, storage.now)
    assert isinstance(digest, Digest)
    await duty.perform(storage.now)
    assert await storage.has(b"same"), "its row is about to be written"
    async with storage.parts.loop_database.transaction() as transaction:
        await artefacts.keep(transaction, upload, digest, storage.parts.ids, storage.now)
    await duty.perform(storage.later(30 * DAY))
    assert await storage.has(b"same")


async def test_an_upload_that_waited_too_long_is_given_up_with_its_room(storage: Storage) -> None:
    duty = ArtefactDuty(storage.parts, storage.store)
    upload = await storage.begun(b"half")
    await duty.perform(storage.later(HOUR - 1))
    assert await storage.store.offset(upload.id) == 4
    await duty.perform(storage.later(1))
    assert await storage.store.offset(upload.id) != 4
    async with storage.parts.loop_database.connection() as connection:
        assert await uploads.get(connection, upload.id) is None
        usage = await connection.fetchrow("SELECT used_bytes, reserved_bytes FROM artefact_usage")
        assert usage
        assert tuple(usage) == (0, 0)


async def test_a_sweep_removes_what_nobody_knows_and_nothing_younger(storage: Storage) -> None:
    duty = SweepDuty(storage.parts, storage.store)
    await storage.kept(b"known")
    under_way = await storage.begun(b"under way")
    stray, unwritten = storage.parts.ids.new(storage.now), storage.parts.ids.new(storage.now)
    await storage.filled(stray, b"stray")
    await storage.filled(unwritten, b"killed before its row was written")
    await storage.store.finish(unwritten, None, storage.now)
    assert await duty.perform(storage.later(SWEEP_OLDER_US - HOUR)) == 0
    assert await duty.perform(storage.later(2 * HOUR)) == 3
    assert await storage.has(b"known")
    assert await storage.store.offset(under_way.id) == 9
    assert not await storage.has(b"killed before its row was written")


async def test_what_a_deleted_account_kept_is_deleted_unless_a_task_needs_it(storage: Storage) -> None:
    duty = ArtefactDuty(storage.parts, storage.store)
    await storage.kept(b"left")
    needed = await storage.kept(b"needed")
    async with storage.parts.loop_database.transaction() as transaction:
        task_id = storage.parts.ids.new(storage.now)
        await artefacts.use(transaction, [(task_id, needed)])
        await transaction.execute(
            "UPDATE account SET deleted_at = $2, address = '', address_key = id::text WHERE id = $1",
            storage.owner,
            storage.now,
        )
    await duty.perform(storage.now)
    async with storage.parts.loop_database.connection() as connection:
        assert [one.id for one in await artefacts.listed(connection, ArtefactFilter(storage.owner), None, 10)] == [
            needed
        ]
        await artefacts.release(connection, [task_id])
    await duty.perform(storage.now)
    async with storage.parts.loop_database.connection() as connection:
        assert await artefacts.listed(connection, ArtefactFilter(storage.owner), None, 10) == []


async def test_grants_that_are_over_go(storage: Storage) -> None:
    duty, ids, now = ArtefactDuty(storage.parts, storage.store), storage.parts.ids, storage.now
    over = Grant(ids.new(now), ids.new(now), storage.owner, Access.READ, 1, Instant(now - 1), digest_of(b"x"))
    good = replace(over, attempt_id=ids.new(now), until=Instant(now + HOUR))
    async with storage.parts.loop_database.connection() as connection:
        await artefact_grants.give(connection, [over, good])
        await duty.perform(now)
        assert await artefact_grants.of_digest(connection, over.node_id, digest_of(b"x")) == [good]
