"""What owners met in their first hour, one row each, and that it is mended."""

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.control.nodes.test_link_attacks import Door as Doorstep
from tests.control.nodes.test_link_attacks import refused
from tests.worlds.places import reachable_directory
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, People, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tests.worlds.pools.wire_agents import Door
from tests.worlds.pools.work_pools import door_of, hands
from tidemill.cli.nodes.node_view import print_nodes
from tidemill.core.accounts.roles import Role
from tidemill.core.signatures import Identity
from tidemill.wire.handshake import CallingAgent

MACHINES = 6

# The link of one's machines


def test_after_kill_9_of_the_pool_its_nodes_are_let_in_at_once_and_a_clone_is_not() -> None:
    """Two processes hold the links of machines behind one address. All are killed, the machines, too: as when the power
    fails. A beat takes 30 s and a process is lost after 30 s, so whoever waits for either is late; nobody is."""
    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        first = pool.up()
        first.set_up()
        second = pool.control()
        second.until_ready()
        with people_of(first) as people:
            door = door_of([first, second], people, MACHINES)
            with hands(home, door, range(MACHINES)):
                until(lambda: _holders(people) == 2, "both processes hold links")
                for killed in (first, second):
                    killed.end(9)
            again = pool.up(port=first.port)
            again.until_ready()
            with hands(home, Door([again.port], door.known_by, door.token), range(MACHINES)):
                assert _generations(people) == [2] * MACHINES, "each came in with its first call"
                assert "node.cloned" not in again.kinds()
                _lists_say_whose(again)
                doorstep = Doorstep(again, people, people.person(Role.PROVIDER))
                assert refused(doorstep, _clone_of(home, 0, door)) == "identity_in_use"
                until(lambda: "node.cloned" in again.kinds(), "its owner is told of the clone")
                assert _generations(people) == [2] * MACHINES


def _holders(people: People) -> int:
    held = people.rows("SELECT DISTINCT process_id FROM presence WHERE process_id IS NOT NULL")
    return len(held)


def _generations(people: People) -> Sequence[int]:
    return [row[0] for row in people.rows("SELECT generation FROM presence ORDER BY node_id")]


def _clone_of(home: Path, number: int, door: Door) -> CallingAgent:
    """A copy of a machine's home, which runs while that machine is there."""
    identity = Identity(hashlib.sha256(b"wire agent %d" % number).digest())
    node_id = bytes.fromhex((home / f"node-{number}").read_text())
    return CallingAgent(identity, door.known_by, "tidemill/0.1.0", secrets.token_bytes(16), node_id)


# Whose rules


def test_rules_of_this_machine_are_written_into_the_home_that_is_named_and_nowhere_else(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "pool", 1, tmp_path / "user")
    desk.config.mkdir()
    assert desk.run("agent", "rules", "set", "price=1.5").returncode == 0
    assert [file.name for file in tmp_path.rglob("rules.json")] == ["rules.json"]
    assert (desk.home / "agent" / "rules.json").exists()
    assert not list(desk.config.rglob("*"))


def test_a_node_of_a_demonstration_is_named_and_no_other_rules_are_set_by_mistake(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "pool", 1, tmp_path / "user")
    for owner in ("ada", "operator"):
        (desk.home / "nodes" / owner).mkdir(parents=True, mode=0o700)
    unnamed = desk.run("agent", "rules", "set", "price=1.5")
    assert (unnamed.returncode, "`tidemill agent --node ada …`" in unnamed.stderr) == (1, True), unnamed.stderr
    unknown = desk.run("agent", "--node", "eve", "rules", "show")
    assert (unknown.returncode, "it has ada, house" in unknown.stderr) == (1, True)
    (desk.home / "nodes" / "ada" / "membership.json").write_text("{}")
    assert desk.run("agent", "--node", "ada", "rules", "set", "price=1.5").returncode == 0
    assert [file.parent.name for file in tmp_path.rglob("rules.json")] == ["ada"]


# Whose a node is


def _lists_say_whose(running: Running) -> None:
    """An operator reads each node's owner, by the address that people know."""
    items = running.get("/api/v1/nodes", headers=running.operator).json()["items"]
    assert [one["owner"].partition("@")[2] for one in items] == ["people.example"] * MACHINES
    shown = running.get(f"/api/v1/nodes/{items[0]['id']}", headers=running.operator).json()
    assert shown["owner"] == items[0]["owner"]


def test_a_list_of_several_owners_names_them_and_the_house(capsys: pytest.CaptureFixture[str]) -> None:
    def node(name: str, account_id: str, owner: str | None, *, house: bool = False) -> dict[str, Any]:
        empty = {"heard_at": None, "removed_at": None, "devices": [], "conditions": ["online"]}
        whose = {"account_id": account_id, "owner": owner, "house": house}
        return {"name": name, "life": "active", "agent": "tidemill/0.1.0", "id": name, **whose, **empty}

    print_nodes([node("attic", "1", "ada@people.example"), node("rack", "2", None, house=True)], as_json=False)
    header, attic, rack = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["name", "owner"]
    assert "ada@people.example" in attic
    assert "the house" in rack
    assert max(map(len, (header, attic, rack))) <= 80
    print_nodes([node("attic", "1", "ada@people.example")], as_json=False)
    assert "owner" not in capsys.readouterr().out, "one's own list need not say so"
