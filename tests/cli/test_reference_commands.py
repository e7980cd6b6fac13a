"""Commands take what people write for an id: short ids, names, `last` and `-1`; and tables show what they take."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_job_commands import JOB, Office
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import people_of
from tests.worlds.pools.pool import Running
from tidemill.cli.terminal.command_group import places_in_words
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.ids import short_id

WORDS = [
    (["-1"], ["last"]),
    (["-2", "--json"], ["last-1", "--json"]),
    (["--json", "-12"], ["--json", "last-11"]),
    (["--hours", "-1", "-1"], ["--hours", "-1", "last"]),
    (["--hours=-1", "-1"], ["--hours=-1", "last"]),
    (["-9", "-1"], ["-9", "last"]),  # an option that is called so
    (["--", "-1"], ["--", "-1"]),
    (["-0", "-01", "-1x", "-", "-12345"], ["-0", "-01", "-1x", "-", "-12345"]),
    (["--hours"], ["--hours"]),
]

WHOLE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@pytest.mark.parametrize(("typed", "meant"), WORDS)
def test_a_number_with_a_minus_is_a_place_unless_it_is_a_value(typed: list[str], meant: list[str]) -> None:
    assert list(places_in_words(typed, options={"--hours", "--json", "-9"}, with_values={"--hours"})) == meant


@pytest.fixture(scope="module")
def office(shared_pool: Running) -> Iterator[Office]:
    with people_of(shared_pool) as people:
        yield Office(shared_pool, people)


def test_a_job_is_named_in_each_way(office: Office, tmp_path: Path) -> None:
    desk, file = office.desk(tmp_path / "ann"), tmp_path / "job.yaml"
    for name in ("first", "second"):
        file.write_text(JOB.replace("from a file", name))
        said = desk.run("jobs", "submit", str(file)).stderr
    second, first = (job["id"] for job in desk.json("jobs", "list"))
    assert f"`tidemill jobs confirm {short_id(second)}`" in said
    forms = {
        first: (first, short_id(first), "first", "last-1", "-2"),
        second: ("second", "last", "-1", second.replace("-", "")[-13:]),
    }
    for meant, texts in forms.items():
        for text in texts:
            assert desk.json("jobs", "show", text)["id"] == meant, text
    table = desk.run("jobs", "list").stdout
    assert short_id(first) in table
    assert not WHOLE_ID.search(table)
    assert desk.run("jobs", "show", "-1").stdout.count(second) == 1
    assert desk.json("jobs", "extend", "-1", "--max-budget", "7")["max_budget"] == "7"
    assert desk.run("jobs", "cancel", "-2").returncode == 0
    assert desk.json("jobs", "show", "first")["state"] == "cancelled"


REFUSED = {
    "00000000": "There is no such job",
    "nothing of this name": "There is no such job",
    "last-999": "There is no such job",
    "last-999999999": "This names nothing",
    "-5000": "This names nothing",
    "..": "This names nothing",
    "../../admin/accounts": "This names nothing",
    "a/b": "This names nothing",
    "": "This names nothing",
    "x" * 3_000: "This names nothing",
    "01a1e457-0baf-7960-a23e": "There is no such job",
    "%2e%2e%2fadmin": "There is no such job",
    "?limit=1": "There is no such job",
    "#": "There is no such job",
}


def test_what_means_nothing_gets_a_sentence(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "bo")
    assert "There is no such job" in desk.run("jobs", "show", "last").stderr
    assert desk.run("jobs", "submit", str(_job_file(tmp_path))).returncode == 0
    for text, sentence in REFUSED.items():
        done = desk.run("jobs", "show", text)
        assert (done.returncode, done.stdout) == (1, ""), text
        assert sentence in done.stderr, (text, done.stderr)
        assert "group" not in done.stderr


def test_nodes_tokens_and_keys_are_named(office: Office, tmp_path: Path) -> None:
    place = tmp_path / "cy"
    place.mkdir()
    desk, owner = Desk(place / "home", office.running.port, place), office.people.person(Role.CUSTOMER, Role.PROVIDER)
    desk.keep(owner, office.people.session(owner))
    node_id = str(office.people.node(owner))
    for text in ("rack", short_id(node_id), "-1", "last", node_id):
        assert desk.json("nodes", "show", text)["id"] == node_id, text
    assert desk.run("nodes", "rename", "-1", "attic").returncode == 0
    assert desk.json("nodes", "show", "attic")["id"] == node_id
    refused = desk.run("nodes", "rename", "attic", "9fc8e31a")
    assert (refused.returncode, "would be read as an id" in refused.stderr) == (1, True)
    assert desk.run("nodes", "tokens", "make", "cellar").returncode == 0
    assert "cellar is revoked" in desk.run("nodes", "tokens", "revoke", "-1").stderr
    key = office.people.key(owner, Role.CUSTOMER, Scope.ACCOUNT_READ, name="ci")
    assert desk.json("keys", "revoke", short_id(key.id))["revoked"] == str(key.id)
    assert "no such API key" in desk.run("keys", "revoke", "ci").stderr


def _job_file(folder: Path) -> Path:
    file = folder / "job.yaml"
    file.write_text(JOB)
    return file
