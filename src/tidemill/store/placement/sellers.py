"""The nodes that may get work, from the database; and which tasks they must not get again."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.nodes.node import Node
from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.seller import OwnerRecord, SellerDefaults, house_of, seller_of
from tidemill.core.placement.supply import Seller
from tidemill.core.trust.checks.judgement import NOBODY_LOOKED, UNEXPECTED
from tidemill.store.database import Database
from tidemill.store.nodes import node_views, nodes
from tidemill.store.query import Connection, Query

PAGE = 200
AGAIN_S = 30
"""A node that declined a task, or was lost with it, does not get it again for this long; four times as long after the
second time, nine times after the third. So it cannot fill the record of attempts by declining."""


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The nodes that a task must not go to, whether only house nodes may execute it, and how often it failed."""

    node_ids: frozenset[UUID] = frozenset()
    for_house: bool = False
    failures: int = 0


class _TriedTask(NamedTuple):
    task_id: UUID
    node_ids: list[UUID]
    for_house: bool
    failures: int


_OWNER_RECORDS = Query("placement/node/owner_records", OwnerRecord)
_TELLING = {"unexpected": UNEXPECTED, "nobody_looked": NOBODY_LOOKED}
"""Reasons of results that tell by their first sentence what follows from them."""

_TRIED = Query("placement/task/tried", _TriedTask)


async def every(
    database: Database, terms: SellerDefaults, agent_oldest: str, between: Callable[[], Awaitable[None]], now: Instant
) -> list[Seller]:
    """All nodes that may get work now. Between pages the caller does what cannot wait."""
    sellers: list[Seller] = []
    after: UUID | None = None
    while True:
        async with database.connection() as connection:
            page = await nodes.linked(connection, None, after, PAGE)
            sellers += [
                seller for seller in (await _sellers(connection, page, terms, agent_oldest, now)).values() if seller
            ]
        if len(page) < PAGE:
            return sellers
        after = page[-1].id
        await between()


async def some(
    database: Database, node_ids: Sequence[UUID], terms: SellerDefaults, agent_oldest: str, now: Instant
) -> Mapping[UUID, Seller | None]:
    """Each of these nodes; None if it may not get work now."""
    sellers: dict[UUID, Seller | None] = dict.fromkeys(node_ids)
    for start in range(0, len(node_ids), PAGE):
        async with database.connection() as connection:
            page = await nodes.linked(connection, node_ids[start : start + PAGE], None, PAGE)
            sellers.update(await _sellers(connection, page, terms, agent_oldest, now))
    return sellers


async def houses(database: Database, terms: SellerDefaults, agent_oldest: str, now: Instant) -> list[Candidate]:
    """The pool's house nodes as whole machines, also those that get no work now."""
    async with database.connection() as connection:
        page = await nodes.houses(connection, PAGE)
        devices = await nodes.devices(connection, [node.id for node in page])
        views = await node_views.views(connection, page, devices, terms.heat, agent_oldest)
    whole = (house_of(node, devices[node.id], views[node.id], terms, now) for node in page)
    return [candidate for candidate in whole if candidate is not None]


async def exclusions_of(connection: Connection, task_ids: Sequence[UUID], now: Instant) -> Mapping[UUID, Exclusions]:
    """The nodes that earlier attempts exclude for each of these tasks."""
    tried = await _TRIED.rows(connection, task_ids=list(task_ids), now=now, again_s=AGAIN_S, **_TELLING)
    return {task.task_id: Exclusions(frozenset(task.node_ids), task.for_house, task.failures) for task in tried}


async def owner_records(connection: Connection, of: Iterable[Node]) -> Mapping[UUID, OwnerRecord]:
    """What is known of the owners of these nodes."""
    records = await _OWNER_RECORDS.rows(connection, owner_ids=list({node.account_id for node in of}))
    return {record.owner_id: record for record in records}


async def _sellers(
    connection: Connection, page: Sequence[Node], terms: SellerDefaults, agent_oldest: str, now: Instant
) -> dict[UUID, Seller | None]:
    devices = await nodes.devices(connection, [node.id for node in page])
    views = await node_views.views(connection, page, devices, terms.heat, agent_oldest)
    records = await owner_records(connection, page)
    return {
        node.id: seller_of(node, devices[node.id], views[node.id], terms, now, records.get(node.account_id))
        for node in page
    }
