"""Backups of a pool: one after the other in one folder."""

import asyncio
from pathlib import Path

from tidemill.artefacts.backup_contents import keeping
from tidemill.control.operations.pool_backup import LOOK_S, back_up
from tidemill.core.settings import build
from tidemill.store.address import DatabaseUrls


async def test_a_backup_waits_for_the_one_that_is_being_made(urls: DatabaseUrls, tmp_path: Path) -> None:
    settings = build(toml={}, toml_name="", environment={}, home=tmp_path).settings
    with keeping(tmp_path):
        second = asyncio.create_task(back_up(urls.owner, tmp_path / "second.dump", settings))
        await asyncio.sleep(2 * LOOK_S)
        assert not second.done()
    assert (await second).size_bytes > 0
    assert (tmp_path / "second.dump").is_file()
