"""A process that rotates a pool's keys again and again, until it is killed.

Run as `python -m tests.worlds.databases.key_rotator OWNER_URL HOME TABLE COLUMN`. Each line it prints is a step that
was done.
"""

import asyncio
import secrets
import sys
from pathlib import Path

from tidemill.control.operations.rotation import Rotation
from tidemill.core.ids import Ids
from tidemill.core.settings import build
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.operations.keyring import SealedColumn


async def rotate(owner_url: str, home: Path, column: SealedColumn) -> None:
    settings = build(toml={}, toml_name="", environment={}, home=home).settings
    database = await Database.open(owner_url, DatabaseLimits(connections=3, statement_s=30, lock_s=10), "rotator")
    while True:
        async with database.connection() as connection:
            now = await read_clock(connection)
        rotation = Rotation(database, settings, Ids(secrets.randbits), now, by="rotator", columns=[column])
        rotation.patience_s = 0
        async for step in rotation.steps():
            sys.stdout.write(f"{step.name}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(rotate(sys.argv[1], Path(sys.argv[2]), SealedColumn(sys.argv[3], sys.argv[4])))
