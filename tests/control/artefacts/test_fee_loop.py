"""Whoever keeps more than is free pays by the day; whoever cannot is told, and loses the oldest after some days."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.artefacts.test_loops import MIB, Storage
from tests.control.test_loops import parts_of
from tests.worlds.databases.deposits import deposit
from tests.worlds.databases.node_rows import an_owner
from tidemill.artefacts.local import LocalStore
from tidemill.control.artefacts.fee_loop import StorageFeeDuty
from tidemill.core.artefacts.artefact import Purpose
from tidemill.core.clock import DAY, HOUR
from tidemill.core.ids import Ids
from tidemill.core.settlement.rewards import customer_account
from tidemill.store.artefacts import artefacts, storage_fees
from tidemill.store.artefacts.artefacts import ArtefactFilter
from tidemill.store.database import Database
from tidemill.store.ledger import ledger

KEPT = MIB // 4
DAY_UC = 1_000
"""What a day of what `fill` keeps beyond the free part costs, with the price below."""


@pytest.fixture
async def storage(database: Database, ids: Ids, tmp_path: Path) -> AsyncIterator[Storage]:
    parts = await parts_of(database, ids, tmp_path)
    rules = replace(parts.settings.artefacts, free_bytes=KEPT, price_uc=DAY_UC * 30 * 1024 * 4 // 3)
    parts.settings = replace(parts.settings, artefacts=rules)
    store = LocalStore(tmp_path / "artefacts", 2, 0)
    yield Storage(parts, store, await an_owner(database, parts.clock.now()))
    await store.close()
    await parts.poster.close()


async def fill(storage: Storage) -> list[UUID]:
    """Four artefacts, of which one is free."""
    return [await storage.kept(bytes([number]) * KEPT) for number in range(4)]


async def kept(storage: Storage) -> list[UUID]:
    """Oldest first."""
    async with storage.parts.loop_database.connection() as connection:
        listed = await artefacts.listed(connection, ArtefactFilter(storage.owner), None, 10)
    return [artefact.id for artefact in reversed(listed)]


async def balance_uc(storage: Storage) -> int:
    async with storage.parts.loop_database.connection() as connection:
        return await ledger.available_uc(connection, customer_account(storage.owner))


async def letters(storage: Storage) -> int:
    async with storage.parts.loop_database.connection() as connection:
        count = await connection.fetchval("SELECT count(*) FROM mail WHERE kind = 'storage_unpaid'")
    assert isinstance(count, int)
    return count


async def test_a_fee_is_taken_once_a_day_for_what_is_not_free(storage: Storage, ids: Ids) -> None:
    duty = StorageFeeDuty(storage.parts)
    await deposit(storage.parts.loop_database, ids, storage.owner, 10 * DAY_UC, storage.now)
    made = await fill(storage)
    await duty.perform(storage.now)
    assert await balance_uc(storage) == 10 * DAY_UC, "the first day is free"
    for day in range(1, 4):
        await duty.perform(storage.later(DAY))
        await duty.perform(storage.now)
        assert await balance_uc(storage) == (10 - day) * DAY_UC
    for artefact_id in made[1:]:
        await storage.deleted(artefact_id)
    await duty.perform(storage.later(DAY))
    assert await balance_uc(storage) == 7 * DAY_UC, "one is free"


async def test_whoever_cannot_pay_gets_a_letter_and_loses_the_oldest_a_week_later(storage: Storage) -> None:
    duty = StorageFeeDuty(storage.parts)
    made = await fill(storage)
    await duty.perform(storage.now)
    await duty.perform(storage.later(DAY))
    assert await letters(storage) == 1
    async with storage.parts.loop_database.connection() as connection:
        assert (await storage_fees.usage(connection, storage.owner)).unpaid_since == storage.now
    for _ in range(6):
        await duty.perform(storage.later(DAY))
    assert (await letters(storage), await kept(storage)) == (1, made)
    await duty.perform(storage.later(DAY))
    assert await kept(storage) == made[3:], "the youngest is free"
    async with storage.parts.loop_database.connection() as connection:
        kinds = [row["kind"] for row in await connection.fetch("SELECT kind FROM event ORDER BY number")]
    assert (kinds.count("storage.unpaid"), kinds.count("artefact.expired")) == (1, 3)


async def test_whoever_pays_in_time_keeps_everything_and_is_told_anew_the_next_time(storage: Storage, ids: Ids) -> None:
    duty = StorageFeeDuty(storage.parts)
    made = await fill(storage)
    await duty.perform(storage.now)
    await duty.perform(storage.later(DAY))
    await deposit(storage.parts.loop_database, ids, storage.owner, DAY_UC, storage.now)
    await duty.perform(storage.later(DAY))
    assert (await balance_uc(storage), await letters(storage)) == (0, 1)
    await duty.perform(storage.later(DAY))
    assert (await letters(storage), await kept(storage)) == (2, made)
    await duty.perform(storage.later(6 * DAY))
    assert await kept(storage) == made, "the days count from the second letter"


async def test_whoever_deletes_in_time_owes_nothing(storage: Storage) -> None:
    duty = StorageFeeDuty(storage.parts)
    made = await fill(storage)
    await duty.perform(storage.now)
    await duty.perform(storage.later(DAY))
    for artefact_id in made[1:]:
        await storage.deleted(artefact_id)
    await duty.perform(storage.later(DAY + HOUR))
    async with storage.parts.loop_database.connection() as connection:
        assert (await storage_fees.usage(connection, storage.owner)).unpaid_since is None


async def test_young_results_and_what_work_needs_are_not_touched(storage: Storage) -> None:
    duty = StorageFeeDuty(storage.parts)
    result, needed = await storage.kept(b"r" * KEPT, Purpose.RESULT), await storage.kept(b"n" * KEPT)
    made = await fill(storage)
    async with storage.parts.loop_database.connection() as connection:
        await connection.execute("INSERT INTO artefact_use (task_id, artefact_id) VALUES ($1, $1)", needed)
    await duty.perform(storage.now)
    for _ in range(10):
        await duty.perform(storage.later(DAY))
    assert not set(made) & set(await kept(storage)), "what is needed takes all that is free"
    assert await kept(storage) == [result, needed]
    for _ in range(30):
        await duty.perform(storage.later(DAY))
    assert await kept(storage) == [needed], "results are not young for ever"
