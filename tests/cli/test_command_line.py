"""The command line as people and scripts meet it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, pool_in, until
from tidemill.core.events.log import LOG_START
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.events import events

ESCAPE = re.compile(r"\x1b\[")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home) as started:
        started.up().until_ready()
        yield started


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "words"),
    [
        (["nonsense"], {}, 2, "nonsense"),
        (["status", "--nonsense"], {}, 2, "--nonsense"),
        (["admin", "stop", "everything", "--reason", "x"], {}, 2, "everything"),
        (["admin", "stop", "all"], {}, 2, "--reason"),
        (["admin", "stop", "all", "--reason", " "], {}, 1, "reason"),
        (["admin", "start", "all", "--reason", "x"], {}, 1, "already"),
        (["status"], {"TIDEMILL_PORT": "1"}, 4, "tidemill up"),
        (["events"], {"TIDEMILL_HOME": "/nowhere"}, 4, "tidemill up"),
        (["status"], {"TIDEMILL_PORT": "eighty"}, 3, "TIDEMILL_PORT"),
        (["status"], {"TIDEMILL_PROT": "80"}, 3, "TIDEMILL_PORT"),
        (["status"], {"TIDEMILL_CONFIG": "/does/not/exist.toml"}, 3, "does not exist"),
        (["status"], {"TIDEMILL_PROT": "80"}, 3, "is running (process"),
        (["whoami"], {"TIDEMILL_API_KEY": ""}, 1, "is empty"),
        (["mail"], {"TIDEMILL_HOME": "/nowhere"}, 4, "There is no pool in /nowhere"),
        (["down"], {"TIDEMILL_HOME": "/nowhere", "TIDEMILL_PROT": "80"}, 4, "nothing to stop"),
        (["config", "nothing"], {}, 1, "tidemill config"),
        (["events", "--after", "rubbish"], {}, 1, "cursor"),
        (["db", "restore", "/does/not/exist"], {}, 1, "no file"),
        (["up"], {"TIDEMILL_HOME": "/proc/nothing"}, 5, "/proc/nothing"),
    ],
)
def test_an_error_is_a_sentence_that_says_what_to_do(
    pool: Pool, arguments: list[str], settings: dict[str, str], code: int, words: str
) -> None:
    done = pool.run(*arguments, **settings)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_explains_every_command(pool: Pool) -> None:
    whole = pool.run("--help")
    assert whole.returncode == 0
    for command in ("up", "down", "control", "status", "events", "config", "db", "admin"):
        assert command in whole.stdout
        assert pool.run(command, "--help").returncode == 0
    assert pool.run().returncode == 0
    assert pool.run("--version").stdout.startswith("tidemill ")


def test_debug_shows_where_an_error_came_from(pool: Pool) -> None:
    done = pool.run("--debug", "status", TIDEMILL_PORT="1")
    assert "Traceback" in done.stderr
    assert done.returncode == 4


@pytest.mark.parametrize(
    "arguments", [["status"], ["config"], ["admin", "switches"], ["db", "check"], ["config", "http", "--changed"]]
)
def test_json_is_json_and_nothing_else(pool: Pool, arguments: list[str]) -> None:
    assert isinstance(pool.json(*arguments), dict | list)


def test_off_a_terminal_there_is_no_colour(pool: Pool) -> None:
    for arguments in (["status"], ["config"], ["--help"], ["nonsense"], ["events"], ["admin", "switches"]):
        done = pool.run(*arguments)
        assert not ESCAPE.search(done.stdout + done.stderr), arguments


def test_config_says_where_each_value_came_from(pool: Pool) -> None:
    file = pool.home / "other.toml"
    file.write_text('port = 9000\n[link]\nheartbeat_s = "45s"\n')
    shown = pool.run("config", "--json", TIDEMILL_CONFIG=str(file), TIDEMILL_LOG_LEVEL="error")
    rows = {row["name"]: row for row in json.loads(shown.stdout)}
    assert rows["link.heartbeat_s"]["source"] == f"file {file}"
    assert rows["log.level"]["source"] == "environment TIDEMILL_LOG_LEVEL"
    assert rows["port"]["source"] == "environment TIDEMILL_PORT"
    assert rows["host"]["source"] == "default"


def test_events_are_listed_and_followed(pool: Pool) -> None:
    listed = [json.loads(line) for line in pool.run("events", "--json").stdout.splitlines()]
    assert listed[0]["kind"] == "pool.created"
    followed = pool.run("events", "--follow", "--json", "--limit", str(len(listed)))
    assert [json.loads(line) for line in followed.stdout.splitlines()] == listed
    assert "The pool began, with Tidemill" in pool.run("events", "--limit", "1").stdout


def test_the_shell_speaks_sql_as_the_program_or_the_owner(pool: Pool) -> None:
    asked = pool.run("db", "shell", "--", "-Atc", "SELECT current_user")
    assert asked.stdout == "tidemill\n", asked.stderr
    assert pool.run("db", "shell", "--owner", "--", "-Atc", "SELECT current_user").stdout == "tidemill_owner\n"


async def log_of(home: Path) -> list[str]:
    connection = await connect(attach(home).program)
    try:
        return [event.kind for event in await events.read(connection, LOG_START, 1000)]
    finally:
        await connection.close()


async def test_a_backup_is_restored_and_readers_learn_of_it(place: Path) -> None:
    with pool_in(place) as pool:
        up = pool.up()
        up.until_ready()
        pool.run("admin", "stop", "payouts", "--reason", "kept")
        file = Path(pool.json("db", "backup")["file"])
        assert file.parent == place / "backups"
        cursor = up.events()[-1]["cursor"]
        pool.run("admin", "stop", "placement", "--reason", "forgotten")
        running = pool.run("db", "restore", str(file), "--yes")
        assert (running.returncode, "tidemill down" in running.stderr) == (4, True)
        assert up.end() == 0

        broken = place / "broken.dump"
        broken.write_bytes(file.read_bytes()[:-2000])
        failed = pool.run("db", "restore", str(broken), "--yes")
        assert (failed.returncode, "pg_restore" in failed.stderr) == (5, True)
        assert pool.run("db", "restore", str(file)).returncode == 1, "without a word of consent nothing happens"
        assert pool.run("db", "check").returncode == 0, "also on a pool that is down"
        assert pool.run("db", "restore", str(file), "--yes").returncode == 0

        again = pool.up()
        again.until_ready()
        pool.running.insert(0, again)
        reasons = [event["body"].get("reason") for event in again.events()]
        assert "kept" in reasons
        assert "forgotten" not in reasons
        later = again.get(f"/api/v1/events?after={cursor}", headers={"Accept": "application/json", **again.operator})
        kinds = [event["kind"] for event in later.json()["items"]]
        assert kinds[0] == "pool.restored"
        assert "process.started" in kinds
        states = {state["name"]: state["stopped"] for state in pool.json("admin", "switches")}
        assert states == {"orders": False, "placement": False, "payouts": True, "all": False}
        assert pool.run("db", "check").returncode == 0
        assert await log_of(place) == again.kinds()


def test_the_daily_backup_is_made_kept_and_limited(place: Path) -> None:
    backups = place / "backups"
    backups.mkdir()
    for day in range(1, 29):
        (backups / f"tidemill-202001{day:02}T000000Z.dump").touch()
    (backups / "precious.txt").touch()
    with pool_in(place, TIDEMILL_DATABASE_BACKUP_KEEP_DAILY="3", TIDEMILL_DATABASE_BACKUP_KEEP_WEEKLY="1") as pool:
        up = pool.up()
        up.until_ready()
        until(lambda: "pool.backup_made" in up.kinds(), "the backup is made")
        made = next(event for event in up.events() if event["kind"] == "pool.backup_made")
        up.end()
    names = sorted(entry.name for entry in backups.iterdir())
    assert names == [
        "artefacts",
        "precious.txt",
        "tidemill-20200127T000000Z.dump",
        "tidemill-20200128T000000Z.dump",
        made["body"]["file"],
        f"{made['body']['file']}.artefacts",
    ]
