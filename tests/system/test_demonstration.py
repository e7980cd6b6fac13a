"""A demonstration as a newcomer meets it: nodes join by themselves, what is printed works, and nothing outlives it."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tidemill.cli.operations.local_nodes import LocalNode, local_nodes, waves

ROOT = Path(__file__).parent.parent.parent
JOINED_S = 180.0
NODES = 5

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.timeout(400)]


@dataclass
class Demonstration:
    pool: Pool
    running: Running
    newcomer: Path
    """Where the newcomer's own files would be: nobody has logged in from there."""

    def announced(self, beginning: str) -> dict[str, str]:
        lines = [json.loads(line) for line in self.running.said().splitlines() if line.startswith("{")]
        return next((line for line in lines if line["event"].startswith(beginning)), {})

    def until_all_nodes(self) -> None:
        self.running.until_ready()
        until(lambda: bool(self.announced("All 5 nodes")), self.running.said, JOINED_S)

    def nodes(self) -> dict[str, dict[str, Any]]:
        listed = self.running.get("/api/v1/nodes", headers=self.running.operator).json()["items"]
        paths = [f"/api/v1/nodes/{one['id']}" for one in listed]
        shown = [self.running.get(path, headers=self.running.operator).json() for path in paths]
        return {one["name"]: one for one in shown}

    def typed(self, text: str, **variables: str) -> str:
        """What a shell in the clone prints, where no variable of ours is set."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        own = {"HOME": str(self.newcomer), "XDG_CONFIG_HOME": str(self.newcomer)}
        done = subprocess.run(
            ["sh", "-eu", "-c", text],
            cwd=ROOT,
            env={**kept, **own, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    with reachable_directory() as home, pool_in(home, **LIGHT) as pool:
        running = pool.up("--demo")
        shown = Demonstration(pool, running, tmp_path_factory.mktemp("newcomer"))
        shown.until_all_nodes()
        yield shown


def test_five_nodes_of_five_owners_differ_in_size_and_price(demonstration: Demonstration) -> None:
    found = demonstration.nodes()
    assert [one["life"] for one in found.values()] == ["active"] * NODES
    assert [one["no_work"] for one in found.values()] == [[]] * NODES
    assert len({one["account_id"] for one in found.values()}) == NODES
    assert [name.partition("-")[0] for name, one in found.items() if one["house"]] == ["house"]
    assert len({one["rules"]["price"]["value"] for one in found.values()}) == NODES
    for name, one in found.items():
        assert name.split("-")[1] == str(one["machine"]["cores"]), "a node is as large as its name says"
    if len(os.sched_getaffinity(0)) > 1:
        assert len({one["machine"]["cores"] for one in found.values()}) > 1


def test_what_it_says_to_try_works_exactly_as_printed(demonstration: Demonstration) -> None:
    to_try = demonstration.announced("The first node")
    ordered = demonstration.typed(to_try["order"])
    assert re.search(r"^Done\. ", ordered, re.MULTILINE), ordered
    (node,) = re.findall(r"^It cost 0\.0\d+ credits; (\w+)-\d+-cores? got 0\.0\d+\.$", ordered, re.MULTILINE)
    assert demonstration.typed(to_try["nodes"]).count("active online") == NODES
    owner = "operator" if node == "house" else node
    assert re.search(rf"provider_locked +{owner}@demo\.example +0\.0\d+", demonstration.typed(to_try["pay"]))


def test_the_readme_orders_a_job_with_curl_alone(demonstration: Demonstration) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [one for one in blocks if "ask marketplace/jobs" in one]
    running = demonstration.running
    here = {"TIDEMILL_HOME": str(running.home), "TIDEMILL_PORT": str(running.port)}
    said = demonstration.typed(block, **here)
    assert '"can_confirm":true' in said
    assert '"verdict":"pass"' in said
    (paid,) = re.findall(r'"paid":"([\d.]+)"', said)
    assert float(paid) > 0
    assert '"kind":"provider_locked"' in said


def test_a_newcomer_is_the_customer_here_and_nobody_at_another_pool(demonstration: Demonstration) -> None:
    own = {"HOME": str(demonstration.newcomer), "XDG_CONFIG_HOME": str(demonstration.newcomer)}
    assert "customer@demo.example" in demonstration.pool.run("whoami", **own).stdout
    elsewhere = demonstration.pool.run("whoami", **own, TIDEMILL_URL="http://127.0.0.1:9")
    assert (elsewhere.returncode, "Nothing answers at http://127.0.0.1:9" in elsewhere.stderr) == (4, True)


def test_a_second_start_brings_the_same_nodes_back_and_a_kill_leaves_none(demonstration: Demonstration) -> None:
    """On another port, and first in order, then with -9: only the database server waits for its next owner. A home in
    which a demonstration began needs no word to go on as one."""
    before = {name: one["id"] for name, one in demonstration.nodes().items()}
    home = demonstration.running.home
    assert demonstration.running.end() == 0
    assert left_in(home) == []
    demonstration.running = demonstration.pool.up()
    demonstration.until_all_nodes()
    assert {name: one["id"] for name, one in demonstration.nodes().items()} == before
    assert len([one for one in left_in(home) if "agent" in one.cmdline()]) == NODES
    demonstration.running.end(signal.SIGKILL)
    until(lambda: not [one for one in left_in(home) if one.name() != "postgres"], lambda: str(left_in(home)))


def test_nodes_are_measured_together_only_if_they_share_no_processor() -> None:
    for count in (1, 2, 3, 4, 7, 64):
        nodes = local_nodes(range(count))
        assert [len(one.processors) for one in nodes] == [max(1, round(count * s)) for s in (1, 0.5, 0.5, 0.25, 0.5)]
        found = waves(nodes)
        assert sorted(one.owner for wave in found for one in wave) == sorted(one.owner for one in nodes)
        for wave in found:
            used = [number for one in wave for number in one.processors]
            assert len(used) == len(set(used))
    assert waves([]) == []
    assert LocalNode("ada", "1", (3,)).name == "ada-1-core"


def left_in(home: Path) -> list[psutil.Process]:
    """Living processes that were started for this home."""
    found = []
    for process in psutil.process_iter():
        try:
            theirs = process.environ().get("TIDEMILL_HOME") == str(home) or str(home) in " ".join(process.cmdline())
            if theirs and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
