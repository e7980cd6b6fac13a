"""What operators met in their first hour, one row each, and that it is mended."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.cli.test_artefact_commands import Office
from tests.control.jobs.test_jobs import Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, people_of
from tests.worlds.pools.pool import Pool, Running, pool_in
from tests.worlds.pools.two_operators import two_operators
from tidemill.core.accounts.roles import Role

# What the kill switches stop


def test_stop_all_takes_no_order_and_says_exactly_what_stands_and_what_goes_on(shared_pool: Running) -> None:
    pool = Pool(shared_pool.home, running=[shared_pool])
    with people_of(shared_pool) as people:
        ann = Shop(shared_pool, people).customer(5)
        job_id, confirmed_id = ann.order()["id"], ann.order()["id"]
        assert ann.post(f"/{confirmed_id}/confirm").status_code == 200
        available_uc = ann.available_uc
        with _stopped(pool, "all", "racks are moved") as said:
            assert said.startswith("`all` is stopped.")
            for part in ("confirmations and extensions are refused", "No task is given", "does not pay out yet"):
                assert part in said
            assert "What goes on: tasks that nodes have are finished, checked and paid" in said
            assert "tidemill admin start all --reason" in said
            for refused in (
                ann.post("", {"kind": "matmul", "parameters": {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": 1}}),
                ann.post(f"/{job_id}/confirm"),
                ann.post(f"/{confirmed_id}/extend", {"hours": 5}),
            ):
                _is_refused(refused)
            assert ann.available_uc == available_uc, "no more money is held than before"
            assert ann.get(f"/{job_id}").json()["state"] == "quoted"
            assert ann.post(f"/{confirmed_id}/cancel").status_code == 200, "money can be had back"
        assert ann.post(f"/{job_id}/confirm").status_code == 200
        ann.post(f"/{job_id}/cancel")


def test_orders_stop_alone_and_a_start_says_what_still_stands(shared_pool: Running) -> None:
    pool = Pool(shared_pool.home, running=[shared_pool])
    with people_of(shared_pool) as people, _stopped(pool, "orders", "prices are wrong") as said:
        assert "confirmations and extensions are refused" in said
        assert "No task is given" not in said
        refused = Shop(shared_pool, people).customer(0).post("", {"kind": "nothing"})
        assert refused.status_code == 422, "what is wrong with an order is said first"
        with _stopped(pool, "all", "everything is wrong"):
            pass
        begun = pool.run("admin", "stop", "all", "--reason", "again")
        assert begun.returncode == 0
        again = pool.run("admin", "start", "all", "--reason", "right again")
        assert "But `orders` stands stopped." in again.stderr


def _is_refused(answer: httpx2.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "orders_stopped"), answer.text
    assert '("racks are moved")' in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) >= 30


@contextmanager
def _stopped(pool: Pool, switch: str, reason: str) -> Iterator[str]:
    """While a switch of the pool is stopped. Brings what the command said."""
    done = pool.run("admin", "stop", switch, "--reason", reason)
    assert done.returncode == 0, done.stderr
    try:
        yield done.stderr
    finally:
        assert pool.run("admin", "start", switch, "--reason", "it is over").returncode == 0


# The restore drill


def test_the_restore_drill_brings_the_artefacts_back_and_the_check_counts_what_is_missing(tmp_path: Path) -> None:
    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            desk = Office(running, people).desk(tmp_path / "ann", Role.CUSTOMER)
            (tmp_path / "input.bin").write_bytes(content := os.urandom(100_000))
            assert desk.run("artefacts", "put", str(tmp_path / "input.bin")).returncode == 0
            (found,) = desk.json("artefacts", "list")
        made = pool.json("db", "backup")
        assert (made["artefacts"], made["missing"], made["copied_bytes"]) == (1, 0, 0)
        said = pool.run("db", "backup", str(home / "backups" / "mine.dump")).stderr
        assert "With 1 artefact (97.7 KiB, as links, which take no space)" in said
        assert running.end() == 0
        shutil.rmtree(home / "artefacts")
        shutil.rmtree(home / "postgres")
        restored = pool.run("db", "restore", made["file"], "--yes")
        assert (restored.returncode, "1 artefacts are in storage again." in restored.stderr) == (0, True)
        again = pool.up(port=running.port)
        again.until_ready()
        assert pool.run("db", "check", "--digests").returncode == 0
        assert desk.run("artefacts", "get", found["id"], "-o", str(tmp_path / "back.bin")).returncode == 0
        assert (tmp_path / "back.bin").read_bytes() == content
        _artefact_file(home, found["digest"]).write_bytes(content[::-1])
        assert pool.run("db", "check").returncode == 0, "only --digests reads every byte"
        damaged = pool.run("db", "check", "--digests")
        assert (damaged.returncode, "0 are missing in storage and 1 are damaged" in damaged.stdout) == (1, True)
        _artefact_file(home, found["digest"]).unlink()
        missing = pool.run("db", "check")
        assert (missing.returncode, "Of 1 artefacts 1 are missing in storage" in missing.stdout) == (1, True)
        assert "1 artefact missing in storage" in pool.run("db", "backup", str(home / "other.dump")).stderr


def _artefact_file(home: Path, digest: str) -> Path:
    return home / "artefacts" / "content" / digest[:2] / digest[2:4] / digest


# Who acts


def test_one_person_cannot_propose_and_approve_with_the_token_of_the_home(shared_pool: Running, tmp_path: Path) -> None:
    pool = Pool(shared_pool.home, running=[shared_pool])
    first, second = two_operators(shared_pool)
    ann, bob = first.log_in(shared_pool, tmp_path / "ann"), second.log_in(shared_pool, tmp_path / "bob")
    nobody = {"XDG_CONFIG_HOME": str(tmp_path / "nobody")}
    sides = ("--debit", "external:bank", "--credit", "bonus_fund", "--amount", "250")
    proposed = pool.run("ledger", "post", *sides, "--reason", "opening the bonus fund", "--json", **ann)
    assert proposed.returncode == 0, proposed.stderr
    adjustment = json.loads(proposed.stdout)["id"]
    by_token = pool.run("ledger", "approve", adjustment, **nobody)
    assert by_token.returncode == 1
    assert "An adjustment takes two people" in by_token.stderr
    assert "You are the operator by the token of the home, and nobody's account" in by_token.stderr
    assert by_token.stderr.endswith("this needs the account of an operator: run `tidemill login`.\n")
    by_herself = pool.run("ledger", "approve", adjustment, **ann)
    assert by_herself.returncode == 1
    assert by_herself.stderr.endswith("this needs another operator: they run it after their own `tidemill login`.\n")
    assert pool.run("ledger", "approve", adjustment, **bob).returncode == 0


def test_what_reads_asks_the_pool_that_tidemill_url_names(shared_pool: Running, tmp_path: Path) -> None:
    """From a machine that has no pool: as an operator who is logged in, and as a stranger for what is public."""
    desk = Desk(tmp_path / "home", 1, tmp_path)
    there = {"TIDEMILL_URL": shared_pool.url}
    assert desk.json("status", **there)["ready"]
    assert "pool.created" in {
        json.loads(line)["kind"] for line in desk.run("events", "--json", **there).stdout.splitlines()
    }
    stranger = desk.run("ledger", "accounts", **there)
    assert (stranger.returncode, f"not logged in at {shared_pool.url}" in stranger.stderr) == (1, True)
    operator = two_operators(shared_pool)[0].log_in(shared_pool, tmp_path / "op")
    for arguments in (("accounts",), ("holds",), ("adjustments",)):
        assert desk.run("ledger", *arguments, **there, **operator).returncode == 0
