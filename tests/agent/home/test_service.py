"""What keeps an agent from working is found and said; the agent as a service is a unit that systemd understands."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.worlds.agents.agent_machine import OwnersMachine, machine_in, until
from tests.worlds.agents.pool_end import PoolEnd
from tidemill.agent.home.unit import unit_text
from tidemill.cli.agent.agent_service import FINAL


async def findings(machine: OwnersMachine) -> tuple[int, dict[str, tuple[bool, str]]]:
    done = await machine.do("doctor", "--json")
    return done.code, {one["check"]: (one["ok"], one["detail"]) for one in json.loads(done.out)}


@pytest.mark.needs("bubblewrap")
async def test_a_machine_that_works_is_well_and_looking_does_not_disturb_it(pool: PoolEnd, place: Path) -> None:
    async with machine_in(place) as machine:
        await machine.join(pool.url, pool.token)
        await until(lambda: bool(pool.nodes and pool.node.beats), "it works")
        await until(lambda: machine.shown().get("link", {}).get("state") == "linked", "it has written that down")
        code, found = await findings(machine)
        assert (code, [detail for ok, detail in found.values() if not ok]) == (0, [])
        in_words = (await machine.do("doctor")).out
        assert "note    service" in in_words, "what it does without is no failure, and not well either"
        assert re.search(r"spool .* waits? for the pool; the file of reports takes", in_words)
        assert {"home", "rights", "identity", "agent", "link", "disk", "spool", "device 0"} <= found.keys()
        assert {"DNS", "TCP", "pool", "clock", "service"} <= found.keys()
        assert pool.node.generation == 1, "its link is still the first"
        assert len(pool.hellos) == 1


async def test_each_thing_that_is_wrong_is_named_with_what_to_do(pool: PoolEnd, tmp_path: Path) -> None:
    async with machine_in(tmp_path) as machine:
        code, found = await findings(machine)
        assert code == 1
        assert "tidemill agent join" in found["home"][1]

        assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0
        code, found = await findings(machine)
        assert code == 1
        assert found["agent"] == (False, "No agent runs: start it with `tidemill agent run`, or the service.")
        assert found["pool"][0]

        pool.identity = PoolEnd().identity
        assert "another pool" in (await findings(machine))[1]["pool"][1]

        await pool.go()
        (machine.home / "rules.json").write_text("nonsense")
        code, found = await findings(machine)
        assert "Nobody listens at 127.0.0.1" in found["TCP"][1]
        assert "damaged" in found["rules"][1]
        assert "pool" not in found, "what rests upon the connection is not looked at"
        await pool.come()

        machine.home.chmod(0o755)
        assert "chmod 700" in (await findings(machine))[1]["home"][1]
        machine.home.chmod(0o700)


async def test_a_server_that_is_no_pool_is_told_apart(tmp_path: Path, pool: PoolEnd) -> None:
    async with machine_in(tmp_path) as machine:
        assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0
        kept = json.loads((machine.home / "membership.json").read_text())
        kept["urls"] = [pool.url + "/elsewhere"]
        (machine.home / "membership.json").write_text(json.dumps(kept))
        ok, detail = (await findings(machine))[1]["pool"]
        assert not ok
        assert "does not speak the link" in detail or "no link" in detail


def unit(**changed: object) -> str:
    parts = {
        "program": Path("/opt/tidemill/.venv/bin/tidemill"),
        "home": Path("/var/lib/tidemill-agent"),
        "user": "tidemill-agent",
        "groups": ["video", "render"],
        "final": FINAL,
    }
    return unit_text(**{**parts, **changed})  # type: ignore[arg-type]


def test_a_service_is_started_again_unless_its_end_was_final() -> None:
    lines = unit().splitlines()
    assert "User=tidemill-agent" in lines
    assert "Restart=always" in lines
    assert "RestartPreventExitStatus=1 2 3 6" in lines
    assert "KillMode=mixed" in lines, "its tasks are not ended before it has heard of it"
    assert "NoNewPrivileges=yes" in lines
    assert "SupplementaryGroups=video render" in lines
    assert not any(line.startswith(("PrivateDevices", "DeviceAllow")) for line in lines), "GPUs must be readable"


def test_a_home_of_ones_own_and_an_authority_of_ones_own_are_named() -> None:
    text = unit(home=Path("/srv/gpu node"), ca_file=Path("/etc/ssl/100%.pem"), groups=[])
    assert 'ReadWritePaths="/srv/gpu node"' in text
    assert "TIDEMILL_AGENT_CA_FILE=/etc/ssl/100%%.pem" in text
    assert "StateDirectory" not in text
    assert "SupplementaryGroups" not in text


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("home", ["/var/lib/tidemill-agent", "/srv/gpu node"])
def test_systemd_understands_the_unit(home: str, tmp_path: Path) -> None:
    file = tmp_path / "tidemill-agent.service"
    file.write_text(unit(home=Path(home), program=Path("/bin/true"), user="root", groups=[]))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    about_ours = [line for line in checked.stderr.splitlines() if "tidemill-agent" in line]
    assert not about_ours


async def test_installing_shows_what_it_would_do(tmp_path: Path) -> None:
    async with machine_in(tmp_path) as machine:
        done = await machine.do("install", "--dry-run", "--user", "gpu")
        assert done.code == 0
        assert "User=gpu" in done.out
        assert str(machine.home) in done.out
        assert not machine.home.exists()
