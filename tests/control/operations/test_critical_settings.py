"""A critical setting that is changed in the file of a real pool."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.pools.pool import Pool, Running, pool_in
from tests.worlds.pools.two_operators import second_account, two_operators
from tidemill.cli.client.local_pool import operator_name
from tidemill.core.settings.critical import SettingChangeRefusal


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


def approve(up: Running, **bearer: str) -> tuple[int, dict[str, Any]]:
    answer = up.post(
        "/api/v1/admin/settings/money.commission/approve",
        json={"reason": "agreed"},
        headers=bearer or up.operator,
    )
    return answer.status_code, answer.json()


@pytest.mark.timeout(180)
def test_a_change_waits_for_two_operators_and_then_takes_effect(place: Path) -> None:
    changed = {"TIDEMILL_MONEY_COMMISSION": "15%"}
    with pool_in(place) as pool:
        up = restarted(pool)
        up.set_up()
        ann, bob = two_operators(up)
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
        assert (alone.returncode, SettingChangeRefusal.OWN_LOGIN_NEEDED.sentence in alone.stderr) == (1, True)
        assert approve(up)[1]["code"] == "own_login_needed", "the home's token is nobody in particular"
        unknown = pool.run("admin", "settings", "reject", "stake.small", "--reason", "x")
        assert (unknown.returncode, unknown.stderr) == (1, SettingChangeRefusal.NO_SUCH_CHANGE.sentence + "\n")
        assert pool.run("config", "money.commission", **changed).stdout.split()[5] == "15%"

        logged_in = ann.log_in(up, place / "ann")
        first = pool.run("admin", "settings", "approve", "money.commission", "--reason", "yes", **logged_in)
        assert (first.returncode, "waits for another operator" in first.stderr) == (0, True)
        assert approve(up, **ann.bearer)[1]["code"] == "another_operator_needed"
        assert approve(up)[1]["code"] == "own_login_needed", "nor is it the second"
        assert approve(up, **ann.key.bearer)[0] == 403
        (waiting,) = pool.json("admin", "settings")
        assert (waiting["state"], waiting["vouched_by"]) == ("pending", ann.name)
        own = second_account(up, ann)
        assert approve(up, **own.bearer)[1]["code"] == "operator_too_new", "nobody knows that it is not hers, too"
        status, approved = approve(up, **bob.bearer)
        assert (status, approved["state"], approved["decided_by"]) == (200, "approved", bob.name)
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
