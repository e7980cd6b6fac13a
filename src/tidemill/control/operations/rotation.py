"""A rotation of the pool's keys, from the first step to the last: a new master key, a new data key, every secret sealed
anew, the old keys gone.

The pool may be up or down. A rotation that dies between two steps leaves a pool that works, and the next rotation
completes it: several keys in the key file mean an unfinished rotation, whose new key is the first. The same holds for a
file that an operator has prepared on every machine of the pool.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tidemill.control.operations.keyring_loop import REFRESH_S
from tidemill.control.operations.master_key import key_file, new_master_key, open_keyring, replace_keys, set_aside
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import SecretsFault
from tidemill.core.ids import Ids
from tidemill.core.settings import Settings
from tidemill.store.database import Database
from tidemill.store.operations import processes
from tidemill.store.operations.keyring import SEALED, Keyring, SealedColumn, data_keys
from tidemill.store.operations.rotation import alone, delete_retired, renew_data_key, reseal, rewrap

_ROUNDS = 5
_BETWEEN_ROUNDS_S = 1.0
_PROCESSES_MAX = 500


class RotationStep(StrEnum):
    """What has been done, in this order."""

    BEGUN = "The new master key stands before the old ones."
    WRAPPED = "The data keys are wrapped by the new master key."
    RENEWED = "A new data key seals from now on."
    RESEALED = "What older data keys had sealed is sealed anew."
    FOLLOWED = "All processes of the pool have had time to follow."
    DELETED = "Data keys that seal nothing are deleted."
    DONE = "The old master keys are out of use."


@dataclass
class Rotation:
    """One run. `database` is used as the owner of the schema, who may change any row."""

    database: Database
    settings: Settings
    ids: Ids
    now: Instant
    by: str
    columns: Sequence[SealedColumn] = SEALED
    patience_s: float = 2 * REFRESH_S
    master_id: str = ""
    resealed: int = 0
    deleted: int = 0
    still_needed: int = 0
    unreadable: Sequence[str] = ()
    set_aside: Path | None = None
    _keyring: Keyring = field(init=False)

    async def steps(self) -> AsyncIterator[RotationStep]:
        """Do one step after another, and yield each when it is done."""
        async with alone(self.database):
            await self._begin()
            yield RotationStep.BEGUN
            async with self.database.connection() as connection:
                await rewrap(connection, self._keyring)
            yield RotationStep.WRAPPED
            await renew_data_key(self.database, self._keyring, self.by, self.ids, self.now)
            yield RotationStep.RENEWED
            await self._reseal()
            yield RotationStep.RESEALED
            await self._let_processes_follow()
            yield RotationStep.FOLLOWED
            await self._delete_old_data_keys()
            yield RotationStep.DELETED
            await self._put_old_master_keys_aside()
            yield RotationStep.DONE

    async def _begin(self) -> None:
        """Put a new master key first. Nothing is changed unless every data key opens."""
        file = key_file(self.settings)
        self._keyring = await self._open_keyring()
        if file and len(self._keyring.masters) == 1:
            await self._refuse_strange_machines(file)
            replace_keys(file, [new_master_key(), *self._keyring.masters])
            self._keyring = await self._open_keyring()
        self.master_id = self._keyring.masters[0].id

    async def _open_keyring(self) -> Keyring:
        return await open_keyring(self.database, self.settings, self.ids, self.now)

    async def _refuse_strange_machines(self, file: Path) -> None:
        """Refuse if processes run on other machines: the new key is on this machine only."""
        here = socket.gethostname()
        if strange := sorted({process.host for process in await self._running() if process.host != here}):
            raise SecretsFault(
                f"Processes of this pool run on other machines ({', '.join(strange)}): write a new key in front of the "
                f"old one in {file} and in the same file there, and run this again. It then uses the first key."
            )

    async def _running(self) -> Sequence[processes.Process]:
        """The processes seen lately: those killed together with the whole pool are never marked as lost."""
        heard_since = self.now - int(self.settings.loops.process_lost_s * SECOND)
        listed = await processes.listed(self.database, None, _PROCESSES_MAX)
        return [process for process in listed if process.is_running and process.seen_at >= heard_since]

    async def _reseal(self) -> None:
        async with self.database.connection() as connection:
            done = await reseal(connection, self._keyring, self.columns)
        self.resealed += done.count
        self.unreadable = done.unreadable

    async def _let_processes_follow(self) -> None:
        if await self._running():
            await asyncio.sleep(self.patience_s)

    async def _delete_old_data_keys(self) -> None:
        """Delete in rounds: values that were changed meanwhile, or sealed by a late process, take another round."""
        for _ in range(_ROUNDS):
            await self._reseal()
            async with self.database.connection() as connection:
                deleted, self.still_needed = await delete_retired(connection)
            self.deleted += deleted
            if not self.still_needed or self.unreadable:
                return
            await asyncio.sleep(_BETWEEN_ROUNDS_S)

    async def _put_old_master_keys_aside(self) -> None:
        file, (first, *old) = key_file(self.settings), self._keyring.masters
        async with self.database.connection() as connection:
            needed = {key.master_id for key in await data_keys(connection)}
        if file and old and needed == {first.id}:
            self.set_aside = set_aside(file, old)
            replace_keys(file, [first])
