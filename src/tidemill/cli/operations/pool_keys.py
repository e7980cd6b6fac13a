"""`tidemill keys rotate` without a key: new keys for the secrets that the pool's database holds."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tidemill.cli.client.local_pool import connected, database_urls, load_configuration, operator_name
from tidemill.cli.terminal.output import CommandRefused, report
from tidemill.core.ids import Ids
from tidemill.core.settings import Settings
from tidemill.host.standard_error import say
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.migrate import pending

if TYPE_CHECKING:
    from tidemill.control.operations.rotation import Rotation

_LIMITS = DatabaseLimits(connections=2, statement_s=600, lock_s=60)


def rotate_pool_keys(as_json: bool) -> None:
    """Change the keys under a pool that is up or down, and tell what was done."""
    done = asyncio.run(_rotate(load_configuration().settings))
    fields = {
        "master_key": done.master_id,
        "resealed": done.resealed,
        "deleted_data_keys": done.deleted,
        "unreadable": list(done.unreadable),
        "old_master_keys": str(done.set_aside) if done.set_aside else None,
    }
    if done.set_aside:
        say(f"The old master key is in {done.set_aside}: backups made before now need it. Save the new one, too.")
    report(f"{done.resealed} secrets are sealed anew; the master key is {done.master_id}.", fields, as_json=as_json)
    if done.unreadable:
        raise CommandRefused(f"These do not open and were left as they are: {', '.join(done.unreadable)}.")
    if done.still_needed:
        raise CommandRefused(
            "Some secrets were being changed all the time and keep their old data key: run this again."
        )


async def _rotate(settings: Settings) -> "Rotation":
    from tidemill.control.operations.rotation import Rotation

    async with database_urls(settings) as urls:
        async with connected(urls.owner) as connection:
            if await pending(connection):
                raise CommandRefused(
                    "This database is not of this version yet: start the pool once with `tidemill up`."
                )
            now = await read_clock(connection)
        async with _opened(urls.owner) as database:
            rotation = Rotation(database, settings, Ids(secrets.randbits), now, by=operator_name())
            async for step in rotation.steps():
                say(step)
            return rotation


@asynccontextmanager
async def _opened(owner_url: str) -> AsyncIterator[Database]:
    database = await Database.open(owner_url, _LIMITS, "tidemill keys")
    try:
        yield database
    finally:
        await database.close()
