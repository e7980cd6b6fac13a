"""A critical setting that is changed in the file of a real pool."""

import json
import secrets
from pathlib import Path

import pytest

from tests.worlds.pools.pool import Pool, Running, pool_in
from tidemill.cli.client.local_pool import operator_name
from tidemill.core.ids import Ids
from tidemill.core.settings.critical import SettingChangeRefusal
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.operations import critical_settings


def restarted(pool: Pool, up: Running | None = None, **settings: str) -> Running:
    if up:
        up.end()
    pool.running.clear()
    again = pool.up(**settings)
    again.until_ready()
    return again


def fingerprint(up: Running) -> str:
    listed = up.get("/api/v1/admin/processes", headers=up.operator).json()["items"]
    found: str = next(one["settings"] for one in listed if one["state"] == "running")
    return found


async def approve_as(name: str, home: Path) -> None:
    connection = await connect(attach(home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        await critical_settings.settle_change(
            connection, "money.commission", approve=True, reason="agreed", by=name, ids=Ids(secrets.randbits), now=now
        )
    await connection.close()


@pytest.mark.timeout(180)
async def test_a_change_waits_for_a_second_operator_and_then_takes_effect(place: Path) -> None:
    changed = {"TIDEMILL_MONEY_COMMISSION": "15%"}
    with pool_in(place) as pool:
        up = restarted(pool)
        before = fingerprint(up)
        assert pool.json("admin", "settings") == []
        assert "No change" in pool.run("admin", "settings").stderr

        up = restarted(pool, up, **changed)
        assert "critical setting waits" in up.said()
        assert fingerprint(up) == before, "it works with what was accepted"
        (waiting,) = pool.json("admin", "settings")
        assert (waiting["name"], waiting["in_force"], waiting["value"]) == ("money.commission", "10%", "15%")
        assert (waiting["state"], waiting["proposed_by"]) == ("pending", operator_name())
        assert "money.commission" in pool.run("admin", "settings").stdout
        alone = pool.run("admin", "settings", "approve", "money.commission", "--reason", "I want it")
        assert (alone.returncode, alone.stderr) == (1, SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED.sentence + "\n")
        unknown = pool.run("admin", "settings", "reject", "stake.small", "--reason", "x")
        assert (unknown.returncode, unknown.stderr) == (1, SettingChangeRefusal.NO_SUCH_CHANGE.sentence + "\n")
        assert pool.run("config", "money.commission", **changed).stdout.split()[5] == "15%"

        await approve_as("another operator", place)
        up = restarted(pool, up, **changed)
        assert fingerprint(up) != before
        assert pool.json("admin", "settings") == []
        acts = [json.loads(line) for line in pool.run("audit", "show", "--json").stdout.splitlines()]
        assert {act["kind"] for act in acts} >= {
            "settings.remembered",
            "settings.change_proposed",
            "settings.change_decided",
            "settings.accepted",
        }

        up = restarted(pool, up)
        rejected = pool.run("admin", "settings", "reject", "money.commission", "--reason", "it stays")
        assert (rejected.returncode, "stays as it is" in rejected.stderr) == (0, True)
        (listed,) = pool.json("admin", "settings")
        assert (listed["state"], listed["takes_effect_after"]) == ("rejected", None)
