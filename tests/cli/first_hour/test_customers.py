"""What a customer met in the first hour, one test a trap: quotes, output, checks, waiting, money."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.jobs.test_jobs import Customer
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.pool import until
from tests.worlds.pools.workplaces import Workplace, workplace

pytestmark = pytest.mark.needs("bubblewrap")

GREETS = """
import sys, time
from pathlib import Path
print("hello", *sys.argv[1:], flush=True)
time.sleep(1)
print("a remark", file=sys.stderr)
Path("out/answer.txt").write_text("42")
"""
DRAWS = "import os; open('out/drawn', 'w').write(os.urandom(8).hex())"
SLEEPS = "import time; print('begun', flush=True); time.sleep(60)"
COLUMNS = 80


@pytest.fixture(scope="module")
def work() -> Iterator[Workplace]:
    with workplace() as made:
        yield made


@pytest.fixture
def ann(work: Workplace, tmp_path: Path) -> tuple[Customer, Desk]:
    return work.customer(tmp_path / "ann")


def program(desk: Desk, text: str) -> str:
    file = desk.config / "program.py"
    file.write_text(text)
    return str(file)


def job_file(desk: Desk, text: str, seconds: int = 5) -> str:
    file = desk.config / "job.yaml"
    file.write_text(f"kind: script\nparameters:\n  seconds: {seconds}\n  program: |\n    {text}\n")
    return str(file)


def only_job(desk: Desk) -> str:
    (job,) = desk.json("jobs", "list")
    return str(job["id"])


def test_a_quote_is_one_line_and_its_numbers_are_as_people_write_them(ann: tuple[Customer, Desk]) -> None:
    _, desk = ann
    sizes = ("--m", "64", "--n", "64", "--k", "64", "--seed", "3")
    shown = desk.run("run", "matmul", *sizes)
    assert shown.returncode == 0, shown.stderr
    quote, *_ = shown.stderr.splitlines()
    assert re.fullmatch(r"At most 0\.\d{1,6} credits, about \d+ s, \d( of \d)? nodes? fits?\.", quote), quote
    assert (len(quote) <= COLUMNS, shown.stdout) == (True, "")
    assert re.search(r"^It cost 0\.\d+ credits; [\w-]+ got 0\.\d+\.$", shown.stderr, re.MULTILINE), shown.stderr
    explained = desk.run("jobs", "quote", only_job(desk), "--explain").stdout
    assert "verification" in explained
    assert not re.search(r"\de[+-]\d|\b1 cores|(\b[\d.]+) to \1\b", explained), explained


def test_what_a_program_prints_is_shown_as_it_comes_and_can_stand_in_a_pipe(ann: tuple[Customer, Desk]) -> None:
    _, desk = ann
    running = desk.start("run", "script", program(desk, GREETS), "--", "you", "--there")
    assert running.stdout
    assert running.stderr
    assert running.stdout.readline() == "hello you --there\n"
    assert running.poll() is None, "it is shown before the job is over"
    rest, said = running.stdout.read(), running.stderr.read()
    assert (running.wait(60), rest) == (0, "a remark\n"), said
    [fetch] = re.findall(r"`tidemill (jobs result \S+ --out) FOLDER` fetches it", said)
    kept = desk.config / "kept"
    assert desk.run(*fetch.split(), str(kept)).returncode == 0
    assert (kept / "task-0" / "answer.txt").read_text() == "42"


def test_lines_of_several_tasks_tell_whose_they_are(ann: tuple[Customer, Desk]) -> None:
    _, desk = ann
    folder = desk.config / "kept"
    text = "import sys; print('I am', sys.argv[1])"
    shown = desk.run("run", "script", program(desk, text), "{task}", "--tasks", "2", "--out", str(folder))
    assert shown.returncode == 0, shown.stderr
    assert sorted(shown.stdout.splitlines()) == ["[0] I am 0", "[1] I am 1"]
    assert "2 of 2 done." in shown.stderr


def test_a_program_with_random_output_is_warned_before_and_told_the_truth_after(ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    before_uc = customer.available_uc
    shown = desk.run("run", "script", program(desk, DRAWS))
    assert shown.returncode == 1
    warning, ending = shown.stderr.split("Confirmed as job", 1)
    assert warning.count("The same input must give the same bytes") == 1
    assert "differs from what a house node made: drawn" in ending
    assert "Two runs on a house node differed from each other, too" in ending
    assert "There is nothing to fetch: only results that passed are kept." in ending
    spent_uc = before_uc - customer.available_uc
    assert ("It cost" if spent_uc else "Nothing was charged.") in ending
    assert "nobody is at fault" not in ending


def test_a_program_that_used_up_its_own_seconds_is_told_so(ann: tuple[Customer, Desk]) -> None:
    _, desk = ann
    shown = desk.run("run", "script", program(desk, SLEEPS), "--seconds", "1")
    assert (shown.returncode, "It was stopped after 1 s, the time that it was ordered with" in shown.stderr) == (
        1,
        True,
    ), shown.stderr


def test_waiting_for_a_job_that_fails_exits_with_one(ann: tuple[Customer, Desk]) -> None:
    _, desk = ann
    file = job_file(desk, "raise SystemExit(3)")
    submitted = desk.run("jobs", "submit", file, "--yes", "--wait")
    assert (submitted.returncode, "It failed." in submitted.stderr) == (1, True), submitted.stderr
    assert desk.run("jobs", "submit", file).returncode == 0
    job = desk.json("jobs", "list")[0]["id"]
    assert desk.run("jobs", "confirm", job, "--yes", "--wait").returncode == 1


def test_work_that_nobody_there_can_check_is_told_before_and_while_it_waits(
    work: Workplace, ann: tuple[Customer, Desk]
) -> None:
    _, desk = ann
    file = program(desk, GREETS)
    work.rule(work.house, work="drain")
    work.until_selling(1)
    try:
        shown = desk.run("run", "script", file)
        assert (shown.returncode, "No house node that is online can check such work" in shown.stderr) == (1, True)
        job = only_job(desk)
        assert f"`tidemill jobs confirm {job[-8:]} --wait`" in shown.stderr
        assert desk.run("jobs", "confirm", job, "--yes").returncode == 0
        until(lambda: "waits for a house node" in desk.run("jobs", "show", job).stdout, "it waits for the house", 30)
        why = desk.run("jobs", "why", job).stdout
        assert ("is submitted" in why, "none is online that can" in why) == (False, True), why
    finally:
        work.rule(work.house, work="run")
        work.until_selling(2)
    until(
        lambda: desk.json("jobs", "show", job)["state"] == "completed", lambda: desk.run("jobs", "why", job).stdout, 30
    )


def test_a_stopped_placement_is_told_wherever_somebody_looks(work: Workplace, ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    stopped = re.compile(r"An operator has stopped placement since [\d: -]+ UTC.*moving racks")
    work.throw("stop")
    try:
        running = desk.start("run", "script", program(desk, "print(1)"))
        assert running.stderr
        said = ""
        while not (confirmed := re.search(r"Confirmed as job", said)):
            said += running.stderr.readline()
        assert (bool(stopped.search(said)), bool(confirmed)) == (True, True), "it is said with the quote"
        job = only_job(desk)
        for command in (("jobs", "show", job), ("jobs", "why", job), ("jobs", "quote", job), ("top", "--once")):
            assert stopped.search(desk.run(*command).stdout), command
        node = work.running.get(f"/api/v1/nodes/{work.owner.node_id}", headers=work.running.operator).json()
        assert stopped.search(node["no_work"][0]["sentence"])
        assert stopped.search(customer.get(f"/{job}").json()["waits_for"])
        assert stopped.search(running.stderr.readline()), "and again while the job waits"
    finally:
        work.throw("start")
    assert running.communicate(timeout=60)[0] == "1\n"


def test_refusals_about_money_have_the_amounts_and_what_to_do(work: Workplace, tmp_path: Path) -> None:
    poor, desk = work.customer(tmp_path / "bob", balance=0)
    file = job_file(desk, "pass", seconds=3600)
    shown = desk.run("jobs", "submit", file, "--yes")
    short = (
        r"This job would hold ([\d.]+) credits, and 0 are available: order less, .* ask the pool's operator to add \1\."
    )
    assert (shown.returncode, bool(re.search(short, shown.stderr))) == (1, True), shown.stderr
    problem = poor.post(f"/{only_job(desk)}/confirm").json()
    assert (problem["code"], problem["amounts"]["available"]) == ("insufficient_funds", "0")
    shown = desk.run("run", "script", program(desk, "pass"), "--seconds", "3600")
    assert re.search(r"can cost up to (\S+) credits, and its budget is 1: .* --max-budget \1,", shown.stderr)
    rich, desk = work.customer(tmp_path / "cleo")
    key = desk.json("keys", "create", "capped", "--scope", "jobs:write", "--spending-cap", "0.5")["key"]
    shown = desk.run("jobs", "submit", file, "--yes", TIDEMILL_API_KEY=key)
    assert "may spend 0.5 credits in all, and has spent 0; this job counts 22, the most" in shown.stderr, shown.stderr
    job = rich.order()
    refused = (
        rich.post(f"/{job['id']}/extend", {"max_budget": 1}).status_code,
        desk.run("jobs", "extend", job["id"], "--max-budget", "0.5"),
    )
    assert (refused[0], "The budget is 1 credit already" in refused[1].stderr) == (200, True), refused[1].stderr


def test_cancelling_a_job_that_runs_pays_its_owner_for_the_time(ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    assert desk.run("jobs", "submit", job_file(desk, SLEEPS, seconds=60), "--yes").returncode == 0
    job = only_job(desk)
    until(lambda: "begun" in desk.run("jobs", "logs", job).stdout, "it runs", 30)
    cancelled = desk.run("jobs", "cancel", job)
    assert cancelled.returncode == 0, cancelled.stderr
    until(lambda: customer.get(f"/{job}").json()["ended_at"] is not None, "it is over", 30)
    [attempt] = customer.get(f"/{job}/resources").json()["items"]
    assert float(attempt["paid"]) > 0
    assert float(customer.get(f"/{job}").json()["spent"]) > float(attempt["paid"])


def test_a_deadline_that_is_too_far_away_is_refused_in_a_sentence(ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    job = customer.order()["id"]
    assert customer.post(f"/{job}/confirm").status_code == 200
    shown = desk.run("jobs", "extend", job, "--hours", "3000")
    assert (shown.returncode, "A deadline is at most 90 days away, and this one would be 1" in shown.stderr) == (
        1,
        True,
    )


def test_a_container_is_ordered_in_one_line(ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    shown = desk.run("run", "container", "--seconds", "5", "--env", "A=1", "python:3.12", "python", "-c", "print(1)")
    [job] = customer.get("").json()["items"]
    assert job["asked"]["parameters"]["command"] == ["python", "-c", "print(1)"]
    assert job["asked"]["parameters"]["environment"] == [{"name": "A", "value": "1"}]
    assert (shown.returncode, "no node fits" in shown.stderr) == (1, True), shown.stderr


def test_views_of_jobs_fit_a_terminal_and_break_no_id(ann: tuple[Customer, Desk]) -> None:
    customer, desk = ann
    job = customer.order(name="a name that is rather long, as names are")["id"]
    for command in (("jobs", "list"), ("jobs", "show", job), ("jobs", "quote", job), ("jobs", "why", job)):
        terminal = desk.at_terminal(*command)
        assert terminal.end() == 0, terminal.shown
        lines = re.sub(r"\x1b\[[\d;]*m", "", terminal.shown).splitlines()
        assert max(map(len, lines)) <= COLUMNS, terminal.shown
    assert job[-8:] in desk.run("jobs", "list").stdout
    assert job in desk.run("jobs", "show", job).stdout
