"""The registry as a world for the simulator: what is online, with its prices and hours, and without anybody's name."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worlds.databases.dispatch_world import World, make_world
from tidemill.cli.sim.sim_export import members_of
from tidemill.core.settings.tree import Settings
from tidemill.sim.days.worlds.world import World as SimulatedWorld
from tidemill.sim.days.worlds.world_files import lines_of, read_world
from tidemill.store.database import Database
from tidemill.store.nodes import nodes

SETTINGS = Settings(home=Path())


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


async def exported(world: World) -> tuple[SimulatedWorld, dict[str, str]]:
    async with world.parts.loop_database.connection() as connection:
        members, names = await members_of(connection, SETTINGS)
    return SimulatedWorld(tuple(members)), {name: str(owner_id) for owner_id, name in names.items()}


async def test_whatever_is_online_is_in_the_file_and_nobody_is_named(world: World, tmp_path: Path) -> None:
    small, large = await world.node(price_uc=3_000_000), await world.node()
    await world.node(owner_id=large.owner_id)
    found, who = await exported(world)
    assert who == {"provider-1": str(large.owner_id), "provider-2": str(small.owner_id)}
    assert found.owners == {"provider-1": 2, "provider-2": 1}
    text = "\n".join(lines_of(found))
    for hidden in (*world.nodes.values(), small, large):
        assert str(hidden.id) not in text
        assert str(hidden.owner_id) not in text
    (tmp_path / "world").write_text(text)
    read = read_world(tmp_path / "world")
    prices = {member.owner: member.seller.candidate.price_uc for member in read.members}
    assert prices == {"provider-1": 1_000_000, "provider-2": 3_000_000}


async def test_a_node_whose_hours_have_not_begun_is_exported_with_its_hours(world: World) -> None:
    node = await world.node()
    hours = [{"days": [day], "from": "00:00", "until": "00:01"} for day in ("mon",)]
    async with world.parts.loop_database.transaction() as connection:
        await nodes.change_rules(
            connection, node.id, {"windows": hours}, owner=None, by="test", ids=world.parts.ids, now=world.now
        )
    (member,) = (await exported(world))[0].members
    assert [(one.begins, one.ends, one.days) for one in member.windows] == [(0, 1, (0,))]
    assert member.seller.candidate.available_until is None
    assert json.loads(list(lines_of(SimulatedWorld((member,))))[1])["windows"] == [
        {"begins": 0, "ends": 1, "days": [0]}
    ]
