"""Backups and restores below the command line: old dumps, broken dumps, foreign files."""

from pathlib import Path

import pytest

from tests.worlds.databases.embedded_server import running
from tidemill.core.events.log import LOG_START
from tidemill.core.faults import DatabaseFault, WrongVersion
from tidemill.core.ids import Ids
from tidemill.store.address import DatabaseUrls
from tidemill.store.checks import checks
from tidemill.store.database import connect
from tidemill.store.events import events
from tidemill.store.migrate import migrate
from tidemill.store.operations.backup import make_backup, restore


async def kinds(url: str) -> list[str]:
    connection = await connect(url)
    try:
        return [event.kind for event in await events.read(connection, LOG_START, 100)]
    finally:
        await connection.close()


async def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    place: Path, empty_urls: DatabaseUrls, ids: Ids
) -> None:
    size_bytes = await make_backup(empty_urls.owner, place / "old.dump")
    assert size_bytes == (place / "old.dump").stat().st_size
    async with running(place) as server:
        await restore(server.superuser_url, server.urls, place / "old.dump", ids, "1.0")
        assert await kinds(server.urls.program) == ["pool.created", "pool.restored"]
        assert [check for check in await checks(server.urls) if not check.ok] == []


async def test_a_backup_that_cannot_be_used_changes_nothing(place: Path, urls: DatabaseUrls, ids: Ids) -> None:
    await make_backup(urls.owner, place / "good.dump")
    owner = await connect(urls.owner)
    await owner.execute("INSERT INTO migration VALUES (9999, 'later', 'x', '99.0', clock_timestamp())")
    await owner.close()
    await make_backup(urls.owner, place / "newer.dump")
    (place / "cut.dump").write_bytes((place / "good.dump").read_bytes()[:-3000])
    (place / "foreign.dump").write_text("not a dump")
    async with running(place) as server:
        await migrate(server.urls, ids, "1.0")
        before = await kinds(server.urls.program)
        for name, fault in (("newer", WrongVersion), ("cut", DatabaseFault), ("foreign", DatabaseFault)):
            with pytest.raises(fault):
                await restore(server.superuser_url, server.urls, place / f"{name}.dump", ids, "1.0")
            assert await kinds(server.urls.program) == before
        for _ in range(2):
            await restore(server.superuser_url, server.urls, place / "good.dump", ids, "1.0")
        assert [check for check in await checks(server.urls) if not check.ok] == []


async def test_a_failed_backup_leaves_the_last_one_and_no_rest(place: Path, urls: DatabaseUrls) -> None:
    target = place / "daily.dump"
    await make_backup(urls.owner, target)
    kept = target.read_bytes()
    with pytest.raises(DatabaseFault):
        await make_backup(urls.owner.replace("test_", "missing_"), target)
    assert target.read_bytes() == kept
    assert [entry.name for entry in place.iterdir()] == ["daily.dump"]
