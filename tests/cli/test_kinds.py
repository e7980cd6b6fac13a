"""`tidemill kinds`, its examples as somebody orders them, and the errors of a job file with their lines."""

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest

from tests.cli.test_job_commands import Office
from tests.worlds.pools.people import people_of
from tests.worlds.pools.pool import Running
from tidemill.core.jobs.kinds import KINDS

BAD = """\
kind: script
name: squares
sedonds: 60
policy: fastest of all
parameters:
  cores: 0
  arguments:
    - one
    - 2
gpu_models: RTX 4090
"""


@pytest.fixture(scope="module")
def office(shared_pool: Running) -> Iterator[Office]:
    with people_of(shared_pool) as people:
        yield Office(shared_pool, people)


def test_every_example_is_ordered_as_it_stands(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    assert {row["kind"] for row in desk.json("kinds")} == {*KINDS, "training"}
    for kind in (*KINDS, "training"):
        file = tmp_path / f"{kind}.yaml"
        file.write_text(desk.run("kinds", kind, "--example").stdout)
        ordered = desk.json("jobs", "submit", str(file))
        assert (ordered["kind"], ordered["state"]) == (kind, "quoted")


def test_a_kind_shows_its_parameters_and_what_it_may_ask_of_nodes(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    shown = desk.run("kinds", "container").stdout
    assert all(word in shown for word in ("seconds", "command", "1 to 604,800", "gpu_models", "must be there"))
    assert "gpu_models" not in desk.run("kinds", "render").stdout
    refused = desk.run("kinds", "magic")
    assert (refused.returncode, "the kinds are matmul" in refused.stderr) == (1, True)


def test_the_schema_of_the_command_is_the_pools(office: Office, tmp_path: Path) -> None:
    schema = json.loads(office.desk(tmp_path / "ann").run("kinds", "--schema").stdout)
    customer = office.people.session(office.people.person()).bearer
    assert office.running.get("/api/v1/marketplace/jobs/schema", headers=customer).json() == schema
    assert not jsonschema_rs.is_valid(schema, {"kind": "matmul"})


def test_all_errors_of_a_job_file_are_told_with_their_lines(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "bad.yaml"
    file.write_text(BAD)
    refused = desk.run("jobs", "submit", str(file))
    assert refused.returncode == 1
    told = {
        line.removeprefix(f"{file}:").partition(":")[0] for line in refused.stderr.splitlines() if str(file) in line
    }
    assert told == {"3", "4", "5", "6", "9", "10"}, refused.stderr
    assert "seconds must be there" in refused.stderr


def test_options_choose_nodes_before_what_the_file_says(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.yaml"
    file.write_text(desk.run("kinds", "matmul", "--example").stdout + "policy: fast\n")
    options = ("--policy", "trusted", "--gpu-model", "RTX 4090", "--reputation", "10", "--hourly", "3")
    asked = desk.json("jobs", "submit", str(file), *options)["asked"]
    assert (asked["policy"], asked["gpu_models"], asked["hourly"]) == ("trusted", ["RTX 4090"], "3")
    refused = desk.run("run", "matmul", "--policy", "fastest")
    assert (refused.returncode, "there are fast, packed, trusted, value" in refused.stderr) == (1, True), refused.stderr
