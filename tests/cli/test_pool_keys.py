"""The master key and `tidemill keys rotate` on real pools: up, down, killed, restored, moved."""

import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import TIDEMILL, Pool, clean_environment, free_port, pool_in, until
from tidemill.core.operations.master_keys import MasterKey, master_keys_of, text_of


def keys_of(file: Path) -> tuple[MasterKey, ...]:
    keys = master_keys_of(file.read_text())
    assert keys
    return keys


def start_rotation(pool: Pool) -> "subprocess.Popen[str]":
    environment = clean_environment(pool.home, free_port(), pool.settings)
    return subprocess.Popen([TIDEMILL, "keys", "rotate"], env=environment, text=True, stderr=subprocess.PIPE)


@pytest.mark.timeout(120)
def test_keys_are_rotated_under_a_running_pool_and_again_after_a_kill(place: Path) -> None:
    with pool_in(place) as pool:
        up = pool.up()
        up.until_ready()
        file = place / "master.key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        (first,) = keys_of(file)

        rotating = start_rotation(pool)
        until(lambda: len(keys_of(file)) == 2, "the new master key is written")
        rotating.kill()
        rotating.communicate()
        second = keys_of(file)[0]
        other = pool.control()
        other.until_ready()

        done = pool.run("keys", "rotate", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["master_key"] == second.id, "what was begun is completed"
        assert (keys_of(file), keys_of(place / "master.key.old")) == ((second,), (first,))
        assert "backups" in done.stderr
        for key in (first, second):
            assert text_of(key) not in done.stdout + done.stderr + up.said() + pool.run("config").stdout
        rotated = [event["body"] for event in up.events() if event["kind"] == "pool.keys_rotated"]
        assert {one["master_key"] for one in rotated} == {second.id}
        assert other.end() == 0
        for running in (up, other):
            assert "loop failed" not in running.said()
        up.until_ready()
        assert up.end() == 0


def test_keys_are_rotated_while_the_pool_is_down(place: Path) -> None:
    with pool_in(place) as pool:
        early = pool.run("keys", "rotate")
        assert (early.returncode, "tidemill up" in early.stderr) == (4, True), early.stderr
        up = pool.up()
        up.until_ready()
        assert up.end() == 0
        before = keys_of(place / "master.key")
        done = pool.run("keys", "rotate")
        assert done.returncode == 0, done.stderr
        assert keys_of(place / "master.key") != before
        again = pool.up()
        again.until_ready()
        assert again.end() == 0


@pytest.mark.timeout(120)
def test_a_restored_pool_works_with_its_master_key_and_is_refused_without(place: Path) -> None:
    with pool_in(place) as pool, reachable_directory() as elsewhere, pool_in(elsewhere) as moved:
        up = pool.up()
        up.until_ready()
        assert pool.run("db", "backup", str(place / "pool.dump")).returncode == 0
        assert up.end() == 0
        restored = moved.run("db", "restore", "--yes", str(place / "pool.dump"))
        assert (restored.returncode, "It needs the master key" in restored.stderr) == (0, True), restored.stderr
        assert f"There is no {elsewhere / 'master.key'}" in restored.stderr

        without = moved.up()
        assert without.process.wait(30) == 5
        assert "Backups of the database do not contain it" in without.said()
        assert not (elsewhere / "master.key").exists()
        wrong = moved.up(TIDEMILL_SECRETS_MASTER_KEY=text_of(MasterKey(b"w" * 32)))
        assert wrong.process.wait(30) == 5
        assert "Bring the pool's own master key" in wrong.said()
        assert "Traceback" not in without.said() + wrong.said()

        shutil.copy(place / "master.key", elsewhere / "master.key")
        (elsewhere / "master.key").chmod(0o640)
        readable = moved.up()
        assert readable.process.wait(30) == 5
        assert "chmod 600" in readable.said()
        (elsewhere / "master.key").chmod(0o600)
        works = moved.up()
        works.until_ready()
        assert works.end() == 0
