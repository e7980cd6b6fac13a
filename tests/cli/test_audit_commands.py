"""`tidemill audit` on a pool that is up: what operators did, who it was, and whether that still stands as written."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tidemill.core.accounts.roles import HOME_OPERATOR
from tidemill.core.events.trail_lines import act_of, tip_of
from tidemill.store.database import connect
from tidemill.store.embedded import attach


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home, TIDEMILL_TRAIL_PUBLISH_EVERY_S="1s") as started:
        started.up().set_up()
        yield started


def chained(pool: Pool, kind: str) -> list[dict[str, object]]:
    lines = pool.run("audit", "show", "--kind", kind, "--json").stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_an_act_is_in_the_trail_within_seconds_and_says_who_did_it(pool: Pool) -> None:
    started = time.monotonic()
    pool.run("admin", "stop", "payouts", "--reason", "moving racks")
    until(lambda: bool(chained(pool, "pool.switch_thrown")), "the act is chained")
    assert time.monotonic() - started < 10
    (act,) = chained(pool, "pool.switch_thrown")
    body = json.loads(str(act["body"]))
    assert (body["reason"], body["by"]) == ("moving racks", HOME_OPERATOR.name)
    shown = pool.run("audit", "show", "--limit", "2").stdout
    assert "moving racks" in shown
    assert len(shown.splitlines()) == 3


def test_the_head_is_the_same_by_command_and_over_http(pool: Pool) -> None:
    up = pool.running[0]

    def same() -> bool:
        """It may move between two looks: refusals are acts, too."""
        told, shown = pool.json("audit", "head"), pool.run("audit", "head").stdout
        over_http = up.get("/api/v1/audit/head")
        assert over_http.status_code == 200, "anybody may keep it"
        return over_http.json()["sha256"] == told["sha256"] and shown == f"{told['number']}:{told['sha256']}\n"

    until(same, "all say the same")


def test_operators_read_the_trail_page_by_page_and_others_do_not(pool: Pool) -> None:
    up = pool.running[0]
    assert up.get("/api/v1/audit").status_code == 401
    first = up.get("/api/v1/audit?limit=1", headers=up.operator).json()
    rest = up.get(f"/api/v1/audit?after={first['after']}", headers=up.operator).json()
    assert (first["has_more"], rest["has_more"], len(first["items"])) == (True, False, 1)
    numbers = [item["number"] for item in (*first["items"], *rest["items"])]
    assert numbers == list(range(len(numbers), 0, -1))
    assert rest["items"][-1]["kind"] == "pool.created"
    assert rest["items"][-1]["previous"] == "00" * 32
    of_kind = up.get("/api/v1/audit?kind=process.started", headers=up.operator).json()["items"]
    assert {item["kind"] for item in of_kind} == {"process.started"}
    about = up.get(f"/api/v1/audit?subject={of_kind[0]['subject']}", headers=up.operator).json()["items"]
    assert [item["number"] for item in about] == [of_kind[0]["number"]]


@pytest.mark.parametrize("query", ["limit=0", "after=0", "after=9223372036854775808", "after=x", "kind=%00", "kind="])
def test_a_question_that_makes_no_sense_is_refused(pool: Pool, query: str) -> None:
    up = pool.running[0]
    assert up.get(f"/api/v1/audit?{query}", headers=up.operator).status_code == 422


def test_the_head_is_published_to_everybody_and_into_the_home(pool: Pool) -> None:
    up = pool.running[0]
    file = pool.home / "audit-heads.txt"

    def published() -> bool:
        """In the file, and among the events that a stranger sees."""
        as_page = {"Accept": "application/json"}
        public = up.get("/api/v1/events?limit=500&after=start", headers=as_page).json()["items"]
        heads = [event["body"]["sha256"] for event in public if event["kind"] == "audit.head_published"]
        kept = file.read_text().split()[-2]
        return bool(heads) and pool.json("audit", "head")["sha256"] == heads[-1] == kept

    until(published, "the newest head is published")
    told = pool.json("audit", "verify", "--heads", str(file))
    assert (told["whole"], told["lost_heads"]) == (True, [])


def test_an_exported_trail_is_verified_without_a_pool(pool: Pool, tmp_path: Path) -> None:
    exported, elsewhere = tmp_path / "trail.jsonl", tmp_path / "nowhere"
    assert pool.run("audit", "export", "--file", str(exported)).returncode == 0
    assert pool.run("audit", "export").stdout.startswith(exported.read_text())
    again = pool.run("audit", "export", "--file", str(exported))
    assert (again.returncode, "already" in again.stderr) == (1, True)
    last = act_of(exported.read_text().splitlines()[-1])
    assert last
    head = str(last.tip)
    offline = Pool(elsewhere)
    assert offline.run("audit", "verify", "--file", str(exported), "--head", head).returncode == 0
    assert not elsewhere.exists()

    lines = exported.read_text().splitlines(keepends=True)
    for spoilt, told in (
        ("".join(lines).replace("moving racks", "moving money"), "edited"),
        ("".join([*lines[:1], *lines[2:]]), "removed"),
        ("".join([lines[1], lines[0], *lines[2:]]), "reordered"),
        ("".join(lines[:-1]), "tail cut"),
        ("".join(lines)[:-20], "edited"),
        ("", "tail cut"),
    ):
        exported.write_text(spoilt)
        done = offline.run("audit", "verify", "--file", str(exported), "--head", head)
        assert (done.returncode, told in done.stderr) == (1, True), (told, done.stderr)
    exported.write_bytes(b"\xff\x00" * 100)
    assert offline.run("audit", "verify", "--file", str(exported)).returncode == 1


def test_a_part_of_the_trail_is_exported_and_verified(pool: Pool, tmp_path: Path) -> None:
    whole = [act for line in pool.run("audit", "export").stdout.splitlines() if (act := act_of(line))]
    part = tmp_path / "part.jsonl"
    second = json.loads(pool.run("audit", "export").stdout.splitlines()[1])["at"][:19]
    assert pool.run("audit", "export", "--until", "2020-01-01", "--file", str(part)).returncode == 0
    assert part.read_text() == ""
    part.unlink()
    assert pool.run("audit", "export", "--since", second, "--file", str(part)).returncode == 0
    assert whole[-1] in map(act_of, part.read_text().splitlines())
    assert pool.run("audit", "verify", "--file", str(part)).returncode == 0


@pytest.mark.parametrize("head", ["", "7", "7:abc", f"0:{'00' * 32}", f"1:{'zz' * 32}"])
def test_what_is_no_head_is_refused(pool: Pool, head: str) -> None:
    done = pool.run("audit", "verify", "--head", head)
    assert (done.returncode, "is no head" in done.stderr) == (1, True)


def test_a_head_that_never_was_is_told(pool: Pool) -> None:
    done = pool.run("audit", "verify", "--head", f"1:{'00' * 32}", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["whole"], told["damage"], told["number"]) == (1, False, "rewritten", 1)


@pytest.mark.timeout(180)
async def test_a_restored_pool_verifies_and_tells_what_is_gone(place: Path) -> None:
    with pool_in(place, TIDEMILL_TRAIL_PUBLISH_EVERY_S="1s") as pool:
        up = _ready(pool)
        dump = place / "before.dump"
        assert pool.run("db", "backup", str(dump)).returncode == 0
        pool.run("admin", "stop", "all", "--reason", "this will be gone")
        until(lambda: bool(chained(pool, "pool.switch_thrown")), "it is chained")
        head = pool.json("audit", "head")
        until(lambda: head["sha256"] in (place / "audit-heads.txt").read_text(), "it is published")
        up.end()
        assert pool.run("db", "restore", str(dump), "--yes").returncode == 0
        _ready(pool)
        until(lambda: bool(chained(pool, "pool.restored")), "the restore is chained")
        assert chained(pool, "pool.switch_thrown") == []
        told = pool.json("audit", "verify")
        assert told["whole"]
        assert f"{head['number']}:{head['sha256']}" in told["lost_heads"]
        demanded = pool.run("audit", "verify", "--head", f"{head['number']}:{head['sha256']}")
        assert (demanded.returncode, "a backup was restored" in demanded.stderr) == (1, True)
        owner = await connect(attach(place).owner)
        await owner.execute("ALTER TABLE audit_trail DISABLE TRIGGER ALL")
        await owner.execute("DELETE FROM audit_trail WHERE number = 2")
        await owner.close()
        done = pool.run("audit", "verify")
        assert (done.returncode, "Act 2 is missing." in done.stderr) == (1, True)
        assert tip_of((place / "audit-heads.txt").read_text().splitlines()[-1])


def _ready(pool: Pool) -> Running:
    pool.running.clear()
    up = pool.up()
    up.until_ready()
    return up
