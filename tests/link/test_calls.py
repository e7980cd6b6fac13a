"""Whom an agent calls next, and when."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.link.dialled.calls import CallAgain, CallEnd, Calls, GiveUp

URLS = ("https://one.example", "https://two.example", "https://three.example")
GONE = CallEnd("gone", "The connection was lost.")


def calls(urls: tuple[str, ...] = URLS, draw: Callable[[], float] = lambda: 0.0, *, newcomer: bool = False) -> Calls:
    return Calls(urls, draw, newcomer=newcomer)


def wait_s(decided: CallAgain | GiveUp) -> float:
    assert isinstance(decided, CallAgain)
    return decided.after_s


def test_addresses_take_turns() -> None:
    one = calls()
    called = []
    for _ in range(6):
        called.append(one.url)
        one.after(GONE)
    assert called == [*URLS, *URLS]


def test_waits_double_up_to_a_minute_and_begin_anew_after_a_link_that_lived() -> None:
    one = calls()
    assert [wait_s(one.after(GONE)) for _ in range(8)] == [2, 4, 8, 16, 32, 60, 60, 60]
    assert wait_s(one.after(CallEnd("gone", "", lived_s=61))) == 2
    assert wait_s(one.after(CallEnd("gone", "", lived_s=1))) == 4


def test_a_process_that_leaves_is_replaced_at_once_but_not_without_end() -> None:
    one = calls(draw=lambda: 0.5)
    assert wait_s(one.after(CallEnd("leaving", "", lived_s=100))) == 0.5
    assert wait_s(one.after(CallEnd("leaving", "", lived_s=0))) > 1


@pytest.mark.parametrize(("retry_ms", "low_s", "high_s"), [(0, 0, 0), (1_000, 1, 1.25), (10**12, 3_600, 4_500)])
def test_what_the_pool_asks_for_is_obeyed_within_bounds(retry_ms: int, low_s: float, high_s: float) -> None:
    for draw in (0.0, 0.999):
        decided = calls(draw=lambda draw=draw: draw).after(CallEnd("busy", "", retry_ms, refused=True))  # type: ignore[misc]
        assert low_s <= wait_s(decided) <= high_s


def test_a_member_that_is_refused_asks_again_seldom_and_a_newcomer_not_at_all() -> None:
    refused = CallEnd("node_owner_blocked", "Blocked.", refused=True)
    assert 150 <= wait_s(calls().after(refused)) <= 300
    assert calls(newcomer=True).after(refused) == GiveUp("node_owner_blocked", "Blocked.")
    assert isinstance(calls(newcomer=True).after(CallEnd("busy", "", 1_000, refused=True)), CallAgain)


def test_a_removed_node_gives_up_at_once() -> None:
    assert isinstance(calls().after(CallEnd("node_removed", "Removed.", refused=True)), GiveUp)


@pytest.mark.parametrize("code", ["wrong_pool", "version"])
def test_a_newcomer_gives_up_when_every_address_is_wrong(code: str) -> None:
    one = calls(newcomer=True)
    assert isinstance(one.after(CallEnd(code, "Wrong.")), CallAgain)
    assert isinstance(one.after(CallEnd(code, "Wrong.")), CallAgain)
    assert isinstance(one.after(GONE), CallAgain)
    assert isinstance(one.after(CallEnd(code, "Wrong.")), CallAgain)
    assert isinstance(one.after(CallEnd(code, "Wrong.")), CallAgain)
    assert isinstance(one.after(CallEnd(code, "Wrong.")), GiveUp), "now every address has said so"
    assert isinstance(calls(URLS[:1], newcomer=True).after(CallEnd(code, "Wrong.")), GiveUp)


@pytest.mark.parametrize("code", ["wrong_pool", "version"])
def test_whoever_answers_in_the_place_of_the_pool_ends_no_member(code: str) -> None:
    """It may be a name that leads elsewhere for an hour, or somebody who took a port."""
    one = calls(URLS[:1])
    for _ in range(5):
        assert 150 <= wait_s(one.after(CallEnd(code, "Wrong."))) <= 300
    assert wait_s(one.after(GONE)) <= 60


@given(
    st.lists(
        st.builds(
            CallEnd,
            code=st.sampled_from(["gone", "busy", "leaving", "silent", "identity_in_use", "anything"]),
            sentence=st.just("."),
            retry_ms=st.none() | st.integers(0, 2**31),
            refused=st.booleans(),
            lived_s=st.floats(0, 10**6),
        ),
        max_size=50,
    ),
    st.floats(0, 1, exclude_max=True),
)
def test_whatever_happens_a_member_calls_again_within_bounds(endings: list[CallEnd], draw: float) -> None:
    one = calls(draw=lambda: draw)
    for ended in endings:
        assert 0 <= wait_s(one.after(ended)) <= 4_500
