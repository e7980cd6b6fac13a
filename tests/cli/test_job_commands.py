"""`tidemill jobs`, `tidemill run` and `tidemill top`, as somebody uses them at their desk."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.control.jobs.test_jobs import SEED, Shop
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import Running
from tidemill.cli.jobs.job_files import read_job
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.jobs.refusals import JobRefusal

JOB = """
# A product of matrices
kind: matmul
name: from a file
parameters:
  m: 512
  n: 512
  k: 512
  element: int8
  seed: 3
memory: 1GB..
hourly: ..2.5
tasks: 1..4
priority: high
deadline: 2h
max_budget: 5
"""


@dataclass
class Office:
    """A pool, and desks of people with money."""

    running: Running
    people: People

    def desk(self, place: Path, balance: int = 10) -> Desk:
        place.mkdir(exist_ok=True)
        desk = Desk(place / "home", self.running.port, place)
        customer = Shop(self.running, self.people).customer(balance)
        desk.keep(customer.person, self.people.session(customer.person))
        return desk


@pytest.fixture(scope="module")
def office(shared_pool: Running) -> Iterator[Office]:
    with people_of(shared_pool) as people:
        yield Office(shared_pool, people)


def test_a_job_file_is_quoted_confirmed_extended_and_called_off(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.yaml"
    file.write_text(JOB)
    shown = desk.run("jobs", "submit", str(file))
    assert shown.returncode == 0, shown.stderr
    assert "Nothing is held yet" in shown.stderr
    (job,) = desk.json("jobs", "list")
    assert (job["state"], job["name"], job["priority"]) == ("quoted", "from a file", "high")
    assert "verification" in desk.run("jobs", "quote", job["id"], "--explain").stdout
    unasked = desk.run("jobs", "confirm", job["id"])
    assert (unasked.returncode, "Nobody is here to ask" in unasked.stderr) == (1, True)
    assert desk.json("jobs", "confirm", job["id"], "--yes")["state"] == "queued"
    assert "deadline" in desk.run("jobs", "extend", job["id"], "--hours", "1").stderr
    assert "not over" in desk.run("jobs", "result", job["id"]).stderr
    assert desk.run("jobs", "logs", job["id"]).stdout == ""
    assert "0 of 1 done" in desk.run("jobs", "show", job["id"]).stdout
    assert desk.run("jobs", "cancel", job["id"]).returncode == 0
    assert "The job is over" in desk.run("jobs", "cancel", job["id"]).stderr
    top = desk.run("top", "--once")
    assert (top.returncode, "0 nodes" in top.stdout, "from a file" in top.stdout) == (0, True, True)


def test_a_plan_is_shown_and_asked_about_at_a_terminal(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.yaml"
    file.write_text(JOB)
    terminal = desk.at_terminal("jobs", "submit", str(file), "--confirm")
    terminal.answer("Confirm, and hold", "n")
    assert terminal.end() == 1
    assert "No node that is online can do it" in terminal.shown
    (job,) = desk.json("jobs", "list")
    assert job["state"] == "quoted"


def test_the_example_of_the_marketplace_is_quoted_from_a_file(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.json"
    file.write_text(json.dumps(SEED))
    shown = desk.run("jobs", "submit", str(file), "--yes")
    assert (shown.returncode, "No node carries out this kind" in shown.stderr) == (1, True)


def test_what_could_cost_more_than_its_budget_is_not_run(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    shown = desk.run("run", "matmul", "--m", "64", "--n", "64", "--k", "64", "--max-budget", "0.000001")
    assert (shown.returncode, shown.stderr.count("its budget is 0.000001")) == (1, 1)
    (job,) = desk.json("jobs", "list")
    assert f"kept as job {job['id'][-8:]}" in shown.stderr
    poor, file = office.desk(tmp_path / "bob", balance=0), tmp_path / "job.yaml"
    file.write_text(JOB)
    shown = poor.run("jobs", "submit", str(file), "--yes")
    assert (shown.returncode, "0 are available" in shown.stderr) == (1, True)


def test_what_nobody_can_do_is_not_confirmed_by_one_line(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    shown = desk.run("run", "matmul", "--m", "64", "--n", "64", "--k", "64")
    (job,) = desk.json("jobs", "list")
    assert (shown.returncode, job["state"]) == (1, "quoted")
    assert f"`tidemill jobs confirm {job['id'][-8:]} --wait`" in shown.stderr


def test_what_nobody_could_ever_check_is_told_and_kept_as_an_order(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    shown = desk.run("run", "embed", "a text", "another")
    (job,) = desk.json("jobs", "list")
    assert (shown.returncode, job["state"]) == (1, "quoted")
    said = " ".join(shown.stderr.split())
    assert JobRefusal.UNCHECKABLE.sentence in said
    assert f"kept as job {job['id'][-8:]}" in said


def test_a_mistyped_field_of_a_job_is_named(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.yaml"
    file.write_text(JOB.replace("parameters:", "paramters:"))
    assert "'paramters'" in desk.run("jobs", "submit", str(file)).stderr


@pytest.mark.parametrize(
    "content",
    [
        "just a text",
        "- a\n- list",
        "a: &x [1, 2]\nb: *x",
        "kind: !!python/object/apply:os.system ['true']",
        "1: 2",
        "a: " + "[" * 2000,
        "kind: matmul\nkind: [",
        "",
    ],
)
def test_what_is_no_job_file_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(content)
    with pytest.raises(CommandRefused):
        read_job(file)


def test_a_job_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("kind: script\nname: 2026-01-01\nmemory: 24GB..\nparameters: {seconds: 5}")
    assert read_job(file) == {
        "kind": "script",
        "name": "2026-01-01",
        "memory": "24GB..",
        "parameters": {"seconds": 5},
    }
    file.write_bytes(b"#" * 2_000_000)
    with pytest.raises(CommandRefused, match="more than"):
        read_job(file)
