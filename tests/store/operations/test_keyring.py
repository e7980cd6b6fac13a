"""The keyring on a real database: several processes, a changing master key, rotations that are cut short."""

import asyncio
import os
import secrets
import socket
import stat
import sys
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.keyrings import keyring_of
from tests.worlds.forks import module
from tidemill.control.operations.master_key import key_file, master_keys, open_keyring
from tidemill.control.operations.rotation import Rotation, RotationStep
from tidemill.core.clock import DAY, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.faults import AlreadyRunning, DatabaseFault, SecretsFault, SettingsFault
from tidemill.core.ids import Ids
from tidemill.core.operations.master_keys import MasterKey, master_keys_of, text_of
from tidemill.core.operations.sealed_values import sealed_by
from tidemill.core.settings import Settings, build, rows
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.events import events, trail
from tidemill.store.operations.keyring import SEALED, Keyring, SealedColumn, data_keys
from tidemill.store.operations.processes import Process, register
from tidemill.store.operations.rotation import alone, renew_data_key, reseal

VAULT = SealedColumn("vault", "secret")
CREATE = """
CREATE TABLE vault (
    id uuid PRIMARY KEY,
    secret bytea,
    secret_key uuid GENERATED ALWAYS AS (data_key_of(secret)) STORED REFERENCES data_key
);
CREATE INDEX vault_secret_key ON vault (secret_key);
GRANT SELECT, INSERT, UPDATE ON vault TO tidemill;
"""
FIRST, SECOND = MasterKey(b"1" * 32), MasterKey(b"2" * 32)


@pytest.fixture
async def owner(urls: DatabaseUrls) -> AsyncIterator[Database]:
    """The database as the owner of the schema, with one table of secrets."""
    opened = await Database.open(urls.owner, DatabaseLimits(connections=6, statement_s=30, lock_s=10), "test")
    async with opened.connection() as connection:
        await connection.execute(CREATE)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
async def now(database: Database) -> Instant:
    async with database.connection() as connection:
        return await read_clock(connection)


def settings_of(home: Path, **environment: str) -> Settings:
    return build(toml={}, toml_name="", environment=environment, home=home).settings


def secret_of(number: int) -> bytes:
    return b"secret %d" % number


async def fill(database: Database, keyring: Keyring, numbers: range) -> None:
    async with database.connection() as connection:
        await connection.executemany(
            "INSERT INTO vault (id, secret) VALUES ($1, $2)",
            [(UUID(int=one), keyring.seal(secret_of(one), row=VAULT.row(UUID(int=one)))) for one in numbers],
        )


async def expect(database: Database, keyring: Keyring, numbers: range) -> None:
    """Every secret is there, and opens."""
    async with database.connection() as connection:
        found = {row["id"].int: row["secret"] for row in await connection.fetch("SELECT id, secret FROM vault")}
    opened = {one: keyring.unseal(sealed, row=VAULT.row(UUID(int=one))) for one, sealed in found.items()}
    assert opened == {one: secret_of(one) for one in numbers}


async def sealing_keys(database: Database) -> set[UUID | None]:
    async with database.connection() as connection:
        return {sealed_by(row["secret"]) for row in await connection.fetch("SELECT secret FROM vault")}


async def keys_in(database: Database) -> list[tuple[UUID, str]]:
    async with database.connection() as connection:
        return [(one.id, one.master_id) for one in await data_keys(connection)]


def rotation(database: Database, settings: Settings, ids: Ids, now: Instant) -> Rotation:
    return Rotation(database, settings, ids, now, by="anna", columns=[VAULT], patience_s=0)


async def whole(one: Rotation) -> list[RotationStep]:
    return [step async for step in one.steps()]


async def test_processes_that_start_at_once_share_one_data_key(database: Database, ids: Ids, now: Instant) -> None:
    crowd = await asyncio.gather(*(keyring_of(database, ids, now, FIRST) for _ in range(8)))
    assert len({keyring.current for keyring in crowd}) == len(await keys_in(database)) == 1
    for one, other in pairwise(crowd):
        assert other.unseal(one.seal(b"x", row="r"), row="r") == b"x"


async def test_the_database_never_sees_a_key_or_a_secret(database: Database, ids: Ids, now: Instant) -> None:
    keyring = await keyring_of(database, ids, now, FIRST)
    async with database.connection() as connection:
        (key,) = await data_keys(connection)
    for visible in (key.wrapped, key.master_id.encode(), keyring.seal(b"a secret", row="r")):
        for hidden in (FIRST.key, keyring.current.key, b"a secret"):
            assert hidden not in visible
    assert len({keyring.seal(b"same", row="r") for _ in range(1000)}) == 1000, "a nonce was used twice"


async def test_a_data_key_made_elsewhere_is_loaded_when_it_is_needed(
    database: Database, owner: Database, ids: Ids, now: Instant
) -> None:
    late, early = [await keyring_of(database, ids, now, FIRST) for _ in range(2)]
    await renew_data_key(owner, early, "anna", ids, now)
    sealed = early.seal(b"new", row="r")
    with pytest.raises(SecretsFault, match="try again"):
        late.unseal(sealed, row="r")
    assert await late.unseal_fresh(sealed, row="r") == b"new"
    assert late.unseal(sealed, row="r") == b"new"
    assert late.current == early.current


async def test_a_value_of_an_unknown_key_is_a_fault_also_after_a_look(
    database: Database, ids: Ids, now: Instant
) -> None:
    keyring = await keyring_of(database, ids, now, FIRST)
    sealed = keyring.seal(b"x", row="r")
    foreign = sealed[:1] + UUID(int=7).bytes + sealed[17:]
    for call in (keyring.unseal_fresh(foreign, row="r"), keyring.unseal_fresh(b"", row="r")):
        with pytest.raises(SecretsFault):
            await call


async def test_a_pool_with_another_master_key_is_refused_and_told_what_to_bring(
    database: Database, ids: Ids, now: Instant
) -> None:
    await keyring_of(database, ids, now, FIRST)
    with pytest.raises(SecretsFault, match=FIRST.id) as caught:
        await keyring_of(database, ids, now, SECOND)
    assert "master.key" in str(caught.value)
    assert text_of(SECOND) not in str(caught.value)
    assert len(await keys_in(database)) == 1
    await keyring_of(database, ids, now, SECOND, FIRST)


async def test_a_data_key_that_was_tampered_with_is_refused(
    database: Database, owner: Database, ids: Ids, now: Instant
) -> None:
    await keyring_of(database, ids, now, FIRST)
    async with owner.connection() as connection:
        await connection.execute("UPDATE data_key SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1)")
    with pytest.raises(SecretsFault, match="was changed"):
        await keyring_of(database, ids, now, FIRST)


async def test_the_program_may_only_read_and_add_data_keys(database: Database, ids: Ids, now: Instant) -> None:
    await keyring_of(database, ids, now, FIRST)
    for attempt in (
        "UPDATE data_key SET wrapped = ''",
        "UPDATE data_key SET retired_at = made_at",
        "DELETE FROM data_key",
        "TRUNCATE data_key CASCADE",
    ):
        async with database.connection() as connection:
            with pytest.raises(Exception, match="permission denied"):
                await connection.execute(attempt)


async def test_a_key_that_seals_something_cannot_be_deleted_and_a_deleted_one_seals_nothing(
    database: Database, owner: Database, ids: Ids, now: Instant
) -> None:
    late, early = [await keyring_of(database, ids, now, FIRST) for _ in range(2)]
    await fill(database, late, range(1))
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with owner.connection() as connection:
            await connection.execute("DELETE FROM data_key")
    await renew_data_key(owner, early, "anna", ids, now)
    async with owner.connection() as connection:
        await reseal(connection, early, [VAULT])
        await connection.execute("DELETE FROM data_key WHERE retired_at IS NOT NULL")
    with pytest.raises(DatabaseFault, match="try again"):
        await fill(database, late, range(1, 2))
    await late.refresh()
    await fill(database, late, range(1, 2))
    await expect(database, early, range(2))


async def test_every_sealed_column_is_tied_to_its_data_key(owner: Database) -> None:
    """Without the foreign key, a rotation could delete a data key that some value still needs."""
    async with owner.connection() as connection:
        for column in (*SEALED, VAULT):
            tied = await connection.fetchval(
                "SELECT count(*) FROM pg_constraint AS c JOIN pg_attribute AS a ON a.attrelid = c.conrelid "
                "AND a.attnum = c.conkey[1] AND a.attgenerated = 's' WHERE c.contype = 'f' "
                "AND c.conrelid = $1::text::regclass AND c.confrelid = 'data_key'::regclass AND a.attname = $2",
                column.table,
                f"{column.column}_key",
            )
            assert tied == 1, f"{column}: see src/tidemill/store/migrations/0004_secrets.sql"


async def test_every_sealed_column_of_the_schema_can_be_sealed_anew(
    owner: Database, database: Database, ids: Ids, now: Instant
) -> None:
    keyring = await keyring_of(database, ids, now, FIRST)
    async with owner.connection() as connection:
        assert (await reseal(connection, keyring)).count == 0


async def test_a_rotation_changes_every_key_and_keeps_every_secret(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    keyring = await open_keyring(database, settings, ids, now)
    await fill(database, keyring, range(1200))
    (old,) = keyring.masters
    one = rotation(owner, settings, ids, now)
    assert await whole(one) == list(RotationStep)
    assert (one.resealed, one.deleted, one.still_needed, one.unreadable) == (1200, 1, 0, [])
    after = await open_keyring(database, settings, ids, now)
    assert await keys_in(database) == [(after.current.id, one.master_id)]
    assert await sealing_keys(database) == {after.current.id} != {keyring.current.id}
    await expect(database, after, range(1200))
    (new,) = after.masters
    assert new != old
    assert master_keys_of((tmp_path / "master.key.old").read_text()) == (old,)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)} == {0o600}
    async with database.connection() as connection:
        told = [event for event in await events.read(connection, LOG_START, 100) if "keys" in event.kind]
    assert [event.body for event in told] == [{"master_key": new.id, "by": "anna"}]


@pytest.mark.parametrize("last", list(RotationStep))
async def test_a_rotation_that_dies_after_a_step_leaves_a_working_pool_and_is_completed_by_the_next(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path, last: RotationStep
) -> None:
    settings = settings_of(tmp_path)
    running = await open_keyring(database, settings, ids, now)
    await fill(database, running, range(700))
    steps = rotation(owner, settings, ids, now).steps()
    async for step in steps:
        if step is last:
            break
    await steps.aclose()
    started = await open_keyring(database, settings, ids, now)
    await running.refresh()
    await expect(database, started, range(700))
    await expect(database, running, range(700))
    await fill(database, running, range(700, 710))
    await fill(database, started, range(710, 720))
    assert (await whole(rotation(owner, settings, ids, now)))[-1] is RotationStep.DONE
    after = await open_keyring(database, settings, ids, now)
    await expect(database, after, range(720))
    assert await keys_in(database) == [(after.current.id, after.masters[0].id)]
    assert len(after.masters) == 1
    await running.refresh()
    await expect(database, running, range(720))


async def test_keys_are_changed_while_the_audit_trail_is_continued(owner: Database, database: Database) -> None:
    async with database.transaction() as transaction:
        assert await trail._LOCK.only(transaction)
        async with alone(owner):
            pass


async def test_processes_go_on_sealing_through_rotations(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    processes = [await open_keyring(database, settings, ids, now) for _ in range(3)]
    written, stopping = 0, False

    async def seal_and_open(keyring: Keyring) -> None:
        nonlocal written
        while not stopping:
            number, written = written, written + 1
            place = VAULT.row(UUID(int=number))
            try:
                await fill(database, keyring, range(number, number + 1))
            except DatabaseFault:  # the key was deleted under a process that was late: it tries again, as it is told
                await keyring.refresh()
                await fill(database, keyring, range(number, number + 1))
            async with database.connection() as connection:
                sealed = await connection.fetchval("SELECT secret FROM vault WHERE id = $1", UUID(int=number))
            assert await keyring.unseal_fresh(sealed, row=place) == secret_of(number)
            if number % 50 == 0:
                await keyring.refresh()
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for keyring in processes:
            group.create_task(seal_and_open(keyring))
        for _ in range(4):
            assert (await whole(rotation(owner, settings, ids, now)))[-1] is RotationStep.DONE
        stopping = True
    await expect(database, await open_keyring(database, settings, ids, now), range(written))
    assert written > 20


@pytest.mark.timeout(180)
async def test_a_rotating_process_killed_again_and_again_loses_nothing(
    owner: Database, database: Database, urls: DatabaseUrls, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    running = await open_keyring(database, settings, ids, now)
    await fill(database, running, range(800))
    seed = secrets.randbits(32)
    random, steps = Random(seed), set[str]()
    for life in range(10):
        said = tmp_path / f"said-{life}"
        with said.open("wb") as out:
            process = module(
                *("tests.worlds.databases.key_rotator", urls.owner, str(tmp_path), "vault", "secret"), said=out.fileno()
            )
        while not said.stat().st_size:
            await asyncio.sleep(0.01)
        await asyncio.sleep(random.random() * 0.25)
        process.kill()
        await process.wait()
        steps |= set(said.read_text().split())
        await running.refresh()
        await fill(database, running, range(800 + life, 801 + life))
        await expect(database, running, range(801 + life))
        await expect(database, await open_keyring(database, settings, ids, now), range(801 + life))
    assert {"WRAPPED", "RENEWED"} <= steps, f"seed {seed}"
    await whole(rotation(owner, settings, ids, now))
    after = await open_keyring(database, settings, ids, now)
    assert await keys_in(database) == [(after.current.id, after.masters[0].id)]
    assert len(after.masters) == 1
    await expect(database, after, range(810))


async def test_a_change_made_during_a_rotation_wins(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    keyring = await open_keyring(database, settings, ids, now)
    await fill(database, keyring, range(10))
    place = VAULT.row(UUID(int=3))
    async with database.transaction() as transaction:
        await transaction.execute(
            "UPDATE vault SET secret = $2 WHERE id = $1", UUID(int=3), keyring.seal(b"changed", row=place)
        )
        rotating = asyncio.create_task(whole(rotation(owner, settings, ids, now)))
        await asyncio.sleep(0.5)
        assert not rotating.done()
    assert (await rotating)[-1] is RotationStep.DONE
    after = await open_keyring(database, settings, ids, now)
    async with database.connection() as connection:
        sealed = await connection.fetchval("SELECT secret FROM vault WHERE id = $1", UUID(int=3))
    assert after.unseal(sealed, row=place) == b"changed"
    assert await sealing_keys(database) == {after.current.id}


async def test_values_that_do_not_open_are_named_left_alone_and_keep_their_data_key(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    keyring = await open_keyring(database, settings, ids, now)
    await fill(database, keyring, range(600))
    async with owner.connection() as connection:  # somebody moved a secret from one row to another
        await connection.execute(
            "UPDATE vault SET secret = (SELECT secret FROM vault WHERE id = $1) WHERE id = $2", UUID(int=5), UUID(int=6)
        )
        await connection.execute("UPDATE vault SET secret = NULL WHERE id = $1", UUID(int=7))
    one = rotation(owner, settings, ids, now)
    await whole(one)
    assert (one.unreadable, one.resealed, one.deleted) == ([VAULT.row(UUID(int=6))], 598, 0)
    after = await open_keyring(database, settings, ids, now)
    assert {master for _, master in await keys_in(database)} == {after.masters[0].id}
    assert await sealing_keys_of(database, 6) == keyring.current.id


async def sealing_keys_of(database: Database, number: int) -> UUID | None:
    async with database.connection() as connection:
        return sealed_by(await connection.fetchval("SELECT secret FROM vault WHERE id = $1", UUID(int=number)))


async def test_two_rotations_at_once_are_one(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    async with alone(owner):
        with pytest.raises(AlreadyRunning):
            await whole(rotation(owner, settings, ids, now))
    assert os.listdir(tmp_path) == []
    await whole(rotation(owner, settings, ids, now))


async def test_a_rotation_that_cannot_open_everything_changes_nothing(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    await keyring_of(database, ids, now, FIRST)
    settings = settings_of(tmp_path)
    (tmp_path / "master.key").write_text(text_of(SECOND))
    (tmp_path / "master.key").chmod(0o600)
    with pytest.raises(SecretsFault, match=FIRST.id):
        await whole(rotation(owner, settings, ids, now))
    assert (tmp_path / "master.key").read_text() == text_of(SECOND)


async def test_keys_from_the_settings_are_used_and_no_file_is_made(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    before = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY=text_of(FIRST))
    keyring = await open_keyring(database, before, ids, now)
    await fill(database, keyring, range(5))
    both = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY=f" {text_of(SECOND)}\n{text_of(FIRST)}= ")
    one = rotation(owner, both, ids, now)
    await whole(one)
    assert (one.master_id, one.resealed) == (SECOND.id, 5)
    after = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY=text_of(SECOND))
    await expect(database, await open_keyring(database, after, ids, now), range(5))
    with pytest.raises(SecretsFault):
        await open_keyring(database, before, ids, now)
    assert os.listdir(tmp_path) == []


async def test_a_running_process_asks_the_source_again_when_the_master_key_has_changed(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    script, key = tmp_path / "print.py", tmp_path / "vault"
    script.write_text(f"print(open({str(key)!r}).read())")
    settings = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY_COMMAND=f"'{sys.executable}' '{script}'")
    key.write_text(text_of(FIRST))
    running = await open_keyring(database, settings, ids, now)
    key.write_text(f"{text_of(SECOND)}\n{text_of(FIRST)}\n")
    await whole(rotation(owner, settings, ids, now))
    key.write_text(text_of(SECOND))
    sealed = (await open_keyring(database, settings, ids, now)).seal(b"new", row="r")
    assert await running.unseal_fresh(sealed, row="r") == b"new"
    assert not (tmp_path / "master.key").exists()


async def test_other_machines_must_have_a_new_key_before_it_is_used(
    owner: Database, database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    await open_keyring(database, settings, ids, now)
    long_ago = Instant(now - DAY)
    for host, at in ((socket.gethostname(), now), ("elsewhere", now), ("killed", long_ago)):
        await register(database, Process(ids.new(at), host, 1, "1", "f", at, at), ids)
    file = tmp_path / "master.key"
    before = file.read_text()
    with pytest.raises(SecretsFault, match=r"other machines \(elsewhere\)"):
        await whole(rotation(owner, settings, ids, now))
    assert file.read_text() == before
    file.write_text(text_of(SECOND) + "\n" + before)
    one = rotation(owner, settings, ids, now)
    await whole(one)
    assert (one.master_id, file.read_text()) == (SECOND.id, text_of(SECOND) + "\n")


async def test_a_key_file_is_made_once_private_and_only_for_a_pool_without_secrets(
    database: Database, ids: Ids, now: Instant, tmp_path: Path
) -> None:
    settings = settings_of(tmp_path)
    old_mask = os.umask(0)
    try:
        crowd = await asyncio.gather(*(open_keyring(database, settings, ids, now) for _ in range(5)))
    finally:
        os.umask(old_mask)
    assert len({keyring.current for keyring in crowd}) == 1
    (file,) = tmp_path.iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode)) == ("master.key", 0o600)
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(SecretsFault, match="Backups of the database do not contain it"):
        await open_keyring(database, settings, ids, now)
    assert not file.exists(), "a new key would open nothing"
    (tmp_path / "elsewhere").rename(file)
    assert (await open_keyring(database, settings, ids, now)).current == crowd[0].current


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o644, 0o602])
async def test_a_key_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "keys"
    file.write_text(text_of(FIRST))
    file.chmod(mode)
    settings = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY_FILE=str(file))
    with pytest.raises(SecretsFault, match=f"chmod 600 {file}"):
        await master_keys(settings)
    file.chmod(0o400)
    assert await master_keys(settings) == (FIRST,)


@pytest.mark.parametrize("content", ["", "not a key", text_of(FIRST)[:-1], f"{text_of(FIRST)} x", "ключ"])
async def test_a_damaged_key_file_is_refused_without_repeating_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "master.key"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(SecretsFault, match="base64url") as caught:
        await master_keys(settings_of(tmp_path))
    assert not content or content not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/nowhere/at-all", "cannot be run"),
        ("unclosed 'quotation", "cannot be run"),
        ("false", "exit code 1"),
        ("echo leaked-word", "base64url"),
        ("true", "base64url"),
    ],
)
async def test_a_command_that_gives_no_key_is_refused(tmp_path: Path, command: str, words: str) -> None:
    with pytest.raises(SecretsFault, match=words) as caught:
        await master_keys(settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY_COMMAND=command))
    assert "leaked-word" not in str(caught.value)


async def test_a_command_is_run_without_a_shell_and_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    settings = settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY_COMMAND=f"echo {text_of(FIRST)}; touch {trap}")
    with pytest.raises(SecretsFault):
        await master_keys(settings)
    assert not trap.exists()
    monkeypatch.setattr("tidemill.control.operations.master_key._COMMAND_S", 0.2)
    with pytest.raises(SecretsFault, match="no key"):
        await master_keys(settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY_COMMAND="sleep 60"))


def test_two_sources_are_refused_and_the_key_is_never_shown(tmp_path: Path) -> None:
    key = text_of(FIRST)
    with pytest.raises(SettingsFault, match="Only one of") as caught:
        settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY=key, TIDEMILL_SECRETS_MASTER_KEY_FILE="/k")
    assert key not in str(caught.value)
    with pytest.raises(SettingsFault, match="cannot be used") as caught:
        settings_of(tmp_path, TIDEMILL_SECRETS_MASTER_KEY=key + "x")
    assert key not in str(caught.value)
    built = build(toml={}, toml_name="", environment={"TIDEMILL_SECRETS_MASTER_KEY": key}, home=tmp_path)
    assert key not in repr(built) + repr(rows(built))
    assert key_file(built.settings) is None
