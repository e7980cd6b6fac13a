"""Pools whose nodes are agents at the wire: quick to find somebody silent or gone, and ready for work at once."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from tests.worlds.pools.agents import join_token
from tests.worlds.pools.people import MANY, People
from tests.worlds.pools.pool import READY_S, Running, until
from tests.worlds.pools.wire_agents import Crowd, Door, WireAgent
from tidemill.core.accounts.roles import Role
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.wire.messages import Assignment, Cancel

T = TypeVar("T")

QUICK: Mapping[str, str] = {
    **MANY,
    "TIDEMILL_LINK_HEARTBEAT_S": "1s",
    "TIDEMILL_LINK_OFFLINE_AFTER_S": "3s",
    "TIDEMILL_LOOPS_PROCESS_HEARTBEAT_S": "500ms",
    "TIDEMILL_LOOPS_PROCESS_LOST_S": "3s",
    "TIDEMILL_LOOPS_BACKOFF_MOST_S": "1s",
}
"""Settings of a pool that does not wait long for anybody."""

OPS_PER_S = 10**12


def door_of(processes: Sequence[Running], people: People, uses: int) -> Door:
    """What so many machines of one owner need to join."""
    token = join_token(processes[0], people, people.person(Role.PROVIDER), uses)
    _, secret, known_by = token.split(".")
    return Door([one.port for one in processes], known_by, secret)


async def activate(home: Path, nodes: int) -> None:
    """Agents at the wire hold no hardware, so nobody can challenge it: as if each showed what it claims all day, also
    when it was away."""
    owner = await connect(attach(home).owner)
    try:
        while await owner.fetchval("SELECT count(*) FROM device") < nodes:
            await asyncio.sleep(0.05)
        await owner.execute(
            "INSERT INTO node_challenge (node_id, due_at, begun_at, passed_at) "
            "SELECT id, later, later, later FROM node, (SELECT now() + interval '1 day' AS later) AS l "
            "ON CONFLICT (node_id) DO UPDATE SET due_at = excluded.due_at, begun_at = excluded.begun_at, "
            "passed_at = excluded.passed_at, refused = NULL"
        )
        await owner.execute("DELETE FROM challenge_round")
        await owner.execute(
            "UPDATE node SET life = 'active', measured_cores = (machine->>'cores')::integer, "
            "measured_mib = (machine->>'memory_mib')::bigint"
        )
        await owner.execute(
            "UPDATE device SET measured_mib = memory_mib, measured_ops_per_s = $1, measured_at = now()", OPS_PER_S
        )
    finally:
        await owner.close()


@dataclass
class Hands:
    """Agents in a thread of the test, which does with their offers what it likes, and when."""

    crowd: Crowd
    loop: asyncio.AbstractEventLoop
    offers: list[tuple[WireAgent, Assignment]] = field(default_factory=list)
    stops: list[tuple[WireAgent, Cancel]] = field(default_factory=list)

    def do(self, act: Callable[[], T]) -> T:
        """Something in the agents' thread."""

        async def acting() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(acting(), self.loop).result(10)

    def offer(
        self, seed: int, *, but: Sequence[WireAgent] = (), within_s: float = READY_S
    ) -> tuple[WireAgent, Assignment]:
        """Who is offered the product of this seed, other than those."""
        wanted = b'"seed":%d}' % seed
        found: list[tuple[WireAgent, Assignment]] = []

        def is_offered() -> bool:
            found[:] = [(who, one) for who, one in self.offers if wanted in one.task and who not in but]
            return bool(found)

        until(is_offered, f"seed {seed} is offered", within_s)
        return found[-1]

    def is_stopped(self, who: WireAgent, offer: Assignment) -> bool:
        return any((agent, stop.attempt_id) == (who, offer.attempt_id) for agent, stop in self.stops)

    def deliver(self, who: WireAgent, offer: Assignment) -> None:
        self.do(lambda: who.deliver(who.receipt(offer)))


@contextmanager
def hands(home: Path, door: Door, numbers: Sequence[int], **more: Any) -> Iterator[Hands]:
    """Agents that wait for the test's word; gone at its end. `more` says what they claim, and what they have."""
    loop = asyncio.new_event_loop()
    crowd = Crowd(home, door, numbers, Random(7), lambda who, offer: made.offers.append((who, offer)), **more)
    crowd.called_off = lambda who, stop: made.stops.append((who, stop))
    made = Hands(crowd, loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(crowd.run(), loop)
    try:
        until(lambda: bool(crowd.agents) and all(one.is_linked for one in crowd.agents), "all agents are linked")
        yield made
    finally:
        running.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def attempt_of(offer: Assignment) -> UUID:
    return UUID(bytes=offer.attempt_id)
