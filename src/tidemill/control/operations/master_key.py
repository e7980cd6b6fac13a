"""Where the master key comes from: a command, the settings (so also the environment), or a file. Exactly one of them.

Only the file is ours to write. It is made when a pool without any sealed secret starts, and never when the database
holds secrets already: a new key could not open them. A file that others may read is refused.
"""

import asyncio
import os
import secrets
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tidemill.core.clock import Instant
from tidemill.core.faults import SecretsFault
from tidemill.core.ids import Ids
from tidemill.core.operations.master_keys import MasterKey, master_keys_of, text_of
from tidemill.core.operations.sealed_values import KEY_BYTES
from tidemill.core.settings import Settings
from tidemill.host.private_files import make_private_file_once
from tidemill.store.database import Database
from tidemill.store.embedded.layout import write_file
from tidemill.store.operations.keyring import Keyring, data_keys, missing_words
from tidemill.store.query import Connection

NAME = "master.key"
_COMMAND_S = 30.0


async def open_keyring(database: Database, settings: Settings, ids: Ids, now: Instant) -> Keyring:
    """The keyring of a pool. The first process of a new pool makes its master key."""
    file = key_file(settings)
    async with database.connection() as connection:
        is_new = not await data_keys(connection)
    if is_new and file and not file.exists():
        make_private_file_once(file, _lines([new_master_key()]))
    masters = partial(master_keys, settings)
    return await Keyring.open(database, masters, ids=ids, now=now, random_bytes=secrets.token_bytes)


async def master_keys(settings: Settings) -> Sequence[MasterKey]:
    """Ask the source. The first key wraps, the others only unwrap."""
    chosen = settings.secrets
    if chosen.master_key:
        return _parse(chosen.master_key, "secrets.master_key")
    if chosen.master_key_command:
        return _parse(await _command_output(chosen.master_key_command), "What secrets.master_key_command printed")
    file = key_file(settings)
    assert file
    return _parse(_content(file), str(file))


async def missing_keys(connection: Connection, settings: Settings) -> str | None:
    """Why the master keys that are there do not open a database's secrets; None if they do, or if it has none."""
    needed = {key.master_id for key in await data_keys(connection)}
    if not needed:
        return None
    try:
        lacking = needed - {key.id for key in await master_keys(settings)}
    except SecretsFault as fault:
        return f"It needs the master key {' and '.join(sorted(needed))}. {fault}"
    return missing_words(sorted(lacking)) if lacking else None


def key_file(settings: Settings) -> Path | None:
    """The file of the master key; None if it comes from elsewhere."""
    chosen = settings.secrets
    if chosen.master_key or chosen.master_key_command:
        return None
    return chosen.master_key_file or settings.home / NAME


def new_master_key() -> MasterKey:
    return MasterKey(secrets.token_bytes(KEY_BYTES))


def replace_keys(file: Path, keys: Sequence[MasterKey]) -> None:
    """Replace the content of a key file at once. Its owner must be able to read it afterwards."""
    file = file.resolve()
    if file.stat().st_uid != os.geteuid():
        raise SecretsFault(f"{file} belongs to another user: run this command as the user who runs the pool.")
    write_file(file, _lines(keys))


def set_aside(file: Path, keys: Sequence[MasterKey]) -> Path:
    """Keep keys that are no longer used beside the file: backups made before still need them."""
    aside = file.with_name(file.name + ".old")
    earlier = _parse(_content(aside), str(aside)) if aside.exists() else ()
    write_file(aside, _lines([*keys, *(key for key in earlier if key not in keys)]))
    return aside


def _lines(keys: Sequence[MasterKey]) -> str:
    return "".join(f"{text_of(key)}\n" for key in keys)


def _parse(text: str, source: str) -> Sequence[MasterKey]:
    keys = master_keys_of(text)
    if keys is None:
        raise SecretsFault(
            f"{source} must hold one or more master keys, each of 32 bytes written as base64url, and nothing else: "
            "put the pool's own key there."
        )
    return keys


def _content(file: Path) -> str:
    try:
        with file.open(encoding="ascii", errors="replace") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if mode & 0o077:
                raise SecretsFault(
                    f"Others than its owner may use {file}: run `chmod 600 {file}`, and if somebody may have read it, "
                    "`tidemill keys rotate` after that."
                )
            return opened.read()
    except FileNotFoundError:
        raise SecretsFault(
            f"There is no {file}, and this database holds secrets that only the pool's own master key opens: put that "
            "file there. Backups of the database do not contain it."
        ) from None
    except OSError as error:
        raise SecretsFault(
            f"{file} cannot be read ({error.strerror}): run this as the user who runs the pool."
        ) from None


async def _command_output(command: str) -> str:
    """The output of the command. Its stderr goes to ours; its output never appears in a sentence."""
    try:
        process = await asyncio.create_subprocess_exec(
            *shlex.split(command), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
    except (OSError, ValueError) as error:
        raise SecretsFault(f"secrets.master_key_command cannot be run: {error}.") from error
    try:
        async with asyncio.timeout(_COMMAND_S):
            output, _ = await process.communicate()
    except TimeoutError:
        raise SecretsFault(f"secrets.master_key_command has printed no key for {_COMMAND_S:.0f} s: try it.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise SecretsFault(f"secrets.master_key_command failed with exit code {process.returncode}: try it yourself.")
    return output.decode("ascii", errors="replace")
