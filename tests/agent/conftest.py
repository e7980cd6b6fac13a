"""What the agent's tests share: the pool's end of a link, and a machine that is a member there."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from tests.worlds.agents.agent_machine import OwnersMachine, machine_in
from tests.worlds.agents.pool_end import Node, PoolEnd
from tidemill.agent.home.identity import make_membership, new_membership
from tidemill.core.signatures import Identity, fingerprint

SEED = bytes(range(32))


@pytest.fixture
async def pool() -> AsyncIterator[PoolEnd]:
    pool = PoolEnd()
    await pool.come()
    yield pool
    await pool.go()


@pytest.fixture
async def machine(place: Path, pool: PoolEnd) -> AsyncIterator[OwnersMachine]:
    """A machine that has joined the pool, and has not run since."""
    node = Node(uuid4(), Identity(SEED).key, generation=1)
    pool.nodes[node.key] = node
    async with machine_in(place) as machine:
        machine.home.mkdir(mode=0o700)
        newcomer = new_membership(SEED, fingerprint(pool.identity.key), [pool.url])
        make_membership(machine.home / "membership.json", replace(newcomer, node_id=node.node_id))
        yield machine
