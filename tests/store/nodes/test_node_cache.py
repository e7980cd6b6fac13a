"""What nodes say of their caches: replaced as a whole, bounded, and nobody's word changes what others said."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.databases.node_rows import an_owner, nodes_of, now_of
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.bounded_json import Malformed
from tidemill.core.nodes.machine.cache_report import DIGESTS_MAX, cached_bytes, cached_of
from tidemill.store.database import Database
from tidemill.store.nodes import node_cache

A, B, C = (Digest(f"{number:064x}") for number in range(3))


async def test_a_report_replaces_what_the_node_had_and_nothing_of_others(database: Database) -> None:
    now = await now_of(database)
    one, other = (link.node_id for link in await nodes_of(database, await an_owner(database, now), 2, None, now))
    async with database.transaction() as transaction:
        await node_cache.apply(transaction, [(one, cached_bytes([A, B])), (other, cached_bytes([A]))])
    async with database.transaction() as transaction:
        await node_cache.apply(transaction, [(one, cached_bytes([A])), (one, cached_bytes([B, C]))])
        assert await node_cache.holders(transaction, [A, B, C]) == {A: [other], B: [one], C: [one]}
        await node_cache.apply(transaction, [(one, cached_bytes([]))])
        assert await node_cache.holders(transaction, [A, B, C]) == {A: [other]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b'{"digests": "a"}',
        b'{"digests": ["../../etc/passwd"]}',
        b'{"digests": ["\\u0000"]}',
        json.dumps({"digests": [A.text, A.text]}).encode(),
        json.dumps({"digests": [A.text.upper().replace("0", "A")]}).encode(),
        json.dumps({"digests": [f"{number:064x}" for number in range(DIGESTS_MAX + 1)]}).encode(),
        b'{"digests": [' + b'"",' * 40_000 + b'""]}',
    ],
)
async def test_nonsense_changes_nothing(database: Database, body: bytes) -> None:
    now = await now_of(database)
    (link,) = await nodes_of(database, await an_owner(database, now), 1, None, now)
    async with database.transaction() as transaction:
        await node_cache.apply(transaction, [(link.node_id, cached_bytes([A]))])
        await node_cache.apply(transaction, [(link.node_id, body)])
        assert await node_cache.holders(transaction, [A]) == {A: [link.node_id]}


@given(st.lists(st.integers(0, 2**256 - 1), unique=True, max_size=300))
def test_the_newest_are_told_and_fit(numbers: list[int]) -> None:
    digests = [Digest(f"{number:064x}") for number in numbers]
    told = cached_of(cached_bytes(digests))
    assert not isinstance(told, Malformed)
    assert told == frozenset(digests[:DIGESTS_MAX])
    assert cached_bytes(reversed(digests[:DIGESTS_MAX])) == cached_bytes(digests[:DIGESTS_MAX])
