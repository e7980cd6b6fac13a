"""Passes of nodes: whose they are, for which pool, and for how long."""

import secrets
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.passes import LIFETIME_MAX_US, NodePass, PassRefusal, is_of, read_pass, write_pass
from tidemill.core.signatures import Identity, fingerprint

NODE = UUID("0190a000-0000-7000-8000-000000000001")
KEY = Identity(bytes(range(32)))
POOL = fingerprint(b"the pool's key")
NOW = Instant(1_800_000_000 * SECOND)
SOON = Instant(NOW + 300 * SECOND)


def shown(text: str, now: Instant = NOW) -> NodePass:
    found = read_pass(text, now)
    assert isinstance(found, NodePass), found
    return found


def test_a_pass_is_read_as_it_was_written() -> None:
    found = shown(write_pass(KEY, POOL, NODE, SOON))
    assert (found.node_id, found.expires_at) == (NODE, SOON)
    assert is_of(found, KEY.key, POOL)


def test_a_pass_of_another_key_or_for_another_pool_is_worth_nothing() -> None:
    found = shown(write_pass(KEY, POOL, NODE, SOON))
    assert not is_of(found, Identity(secrets.token_bytes(32)).key, POOL)
    assert not is_of(found, KEY.key, fingerprint(b"another pool's key"))
    assert not is_of(found, b"", POOL)


def test_neither_the_node_nor_the_end_of_a_pass_can_be_changed() -> None:
    found = shown(write_pass(KEY, POOL, NODE, SOON))
    longer = NodePass(NODE, Instant(SOON + 1), found.signature)
    another = NodePass(UUID(int=NODE.int + 1), SOON, found.signature)
    assert not is_of(longer, KEY.key, POOL)
    assert not is_of(another, KEY.key, POOL)


@pytest.mark.parametrize(
    ("ends_in_us", "refusal"),
    [
        (-1, PassRefusal.PASS_OVER),
        (0, PassRefusal.PASS_OVER),
        (1, None),
        (LIFETIME_MAX_US, None),
        (LIFETIME_MAX_US + 1, PassRefusal.PASS_TOO_LONG),
    ],
)
def test_a_pass_is_good_until_its_end_and_never_for_long(ends_in_us: int, refusal: PassRefusal | None) -> None:
    found = read_pass(write_pass(KEY, POOL, NODE, Instant(NOW + ends_in_us)), NOW)
    assert found is refusal if refusal else isinstance(found, NodePass)


@given(st.text())
def test_what_is_no_pass_is_refused(text: str) -> None:
    assert isinstance(read_pass(text, NOW), PassRefusal)


@given(st.text("ABCxyz019_-=+/ ", min_size=110, max_size=124))
def test_what_looks_like_a_pass_never_fails(text: str) -> None:
    found = read_pass(text, NOW)
    assert isinstance(found, PassRefusal) or not is_of(found, KEY.key, POOL)


def test_a_pass_does_not_show_its_signature_in_a_log() -> None:
    found = shown(write_pass(KEY, POOL, NODE, SOON))
    assert found.signature.hex() not in repr(found)
    assert "signature" not in repr(found)
