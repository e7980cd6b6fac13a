"""Buckets of tokens: what is granted in any time, what clocks can do to it, and whom an address stands for."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.control.http.limiter import Allowance, headers
from tidemill.core.clock import DAY, HOUR, SECOND, Instant
from tidemill.core.rate_limits import (
    COUNT_MAX,
    SKEW_US,
    Limit,
    address_key,
    available,
    due_at,
    give_back,
    next_token_lease,
    take,
)

MINUTE = 60 * SECOND
START = Instant(1_800_000_000 * SECOND)
LIMITS = st.builds(Limit, st.just("any"), st.integers(1, COUNT_MAX), st.integers(SECOND, DAY))
FEW = st.builds(Limit, st.just("few"), st.integers(1, 50), st.integers(SECOND, MINUTE))
STEPS = st.lists(st.tuples(st.integers(0, 20 * SECOND), st.integers(0, 50)), max_size=40)
"""How long to wait, and how many to want then."""

Grant = tuple[Instant, int]


def taken(limit: Limit, steps: Sequence[tuple[int, int]], full_at: Instant = START) -> list[Grant]:
    """When how many were granted, to somebody who waits and wants."""
    grants, now = [], START
    for wait_us, wanted in steps:
        now = Instant(now + wait_us)
        full_at, granted = take(full_at, limit, min(wanted, limit.count), now)
        grants.append((now, granted))
    return grants


def most(limit: Limit, in_us: int) -> int:
    return limit.count + limit.count * in_us // limit.per_us


@given(FEW, STEPS)
def test_in_any_time_no_more_is_granted_than_a_full_bucket_and_what_refills(
    limit: Limit, steps: list[tuple[int, int]]
) -> None:
    grants = taken(limit, steps)
    for first in range(len(grants)):
        total = 0
        for at, granted in grants[first:]:
            total += granted
            assert total <= most(limit, at - grants[first][0])


@given(FEW, st.integers(1, 5))
def test_who_always_wants_gets_all_of_it_but_for_rounding(limit: Limit, periods: int) -> None:
    step_us = limit.refill_us(1)
    rounds = periods * limit.per_us // step_us
    total = sum(granted for _, granted in taken(limit, [(0, limit.count)] + [(step_us, limit.count)] * rounds))
    assert total >= limit.count + rounds


@given(LIMITS, st.integers(-DAY, DAY), st.integers(0, COUNT_MAX))
def test_every_number_fits_64_bits_and_a_bucket_holds_its_count_at_the_most(
    limit: Limit, ahead_us: int, wanted: int
) -> None:
    full_at = Instant(START + ahead_us)
    now_full_at, granted = take(full_at, limit, min(wanted, limit.count), START)
    assert 0 <= granted <= available(full_at, limit, START) <= limit.count
    assert (limit.per_us + DAY) * limit.count < 2**63
    assert now_full_at <= START + limit.per_us + SKEW_US


@given(LIMITS, st.integers(0, DAY), st.integers(0, DAY))
def test_an_earlier_time_never_finds_more_tokens(limit: Limit, ahead_us: int, back_us: int) -> None:
    full_at = Instant(START + min(ahead_us, limit.per_us))
    assert available(full_at, limit, Instant(START - back_us)) <= available(full_at, limit, START)


@given(FEW, STEPS, st.lists(st.integers(0, SKEW_US), min_size=40, max_size=40))
def test_processes_whose_clocks_differ_get_no_more_than_one_with_the_fastest_would(
    limit: Limit, steps: list[tuple[int, int]], behind_us: list[int]
) -> None:
    full_at, now, total = START, START, 0
    for (wait_us, wanted), behind in zip(steps, behind_us, strict=False):
        now = Instant(now + wait_us)
        full_at, granted = take(full_at, limit, min(wanted, limit.count), Instant(now - behind))
        total += granted
    assert total <= most(limit, now - START + SKEW_US)


@given(FEW, STEPS, st.integers(SKEW_US + 1, DAY))
def test_a_clock_set_back_leaves_an_empty_bucket_that_refills(
    limit: Limit, steps: list[tuple[int, int]], back_us: int
) -> None:
    full_at, _ = take(START, limit, limit.count, START)
    then = Instant(START - back_us)
    assert available(full_at, limit, then) == 0
    full_at, _ = take(full_at, limit, limit.count, then)
    assert available(full_at, limit, Instant(then + limit.per_us)) == limit.count


@given(LIMITS, st.integers(1, COUNT_MAX), st.integers(1, COUNT_MAX))
def test_taking_and_giving_back_in_parts_gains_nothing(limit: Limit, wanted: int, part: int) -> None:
    wanted = min(wanted, limit.count)
    part = min(part, wanted)
    full_at, _ = take(START, limit, wanted, START)
    given_back = give_back(give_back(full_at, limit, part), limit, wanted - part)
    assert START <= given_back <= START + 2


@given(LIMITS, st.integers(0, DAY), st.integers(1, COUNT_MAX))
def test_tokens_are_there_when_they_are_due_and_not_before(limit: Limit, ahead_us: int, tokens: int) -> None:
    full_at, tokens = Instant(START + min(ahead_us, limit.per_us)), min(tokens, limit.count)
    due = due_at(full_at, limit, tokens)
    assert available(full_at, limit, due) >= tokens
    assert available(full_at, limit, Instant(due - 1)) < tokens


@given(LIMITS, st.integers(0, COUNT_MAX), st.integers(-DAY, DAY))
def test_a_lease_is_at_least_one_token_and_at_most_a_tenth_of_the_limit(limit: Limit, used: int, in_us: int) -> None:
    assert 1 <= next_token_lease(limit, used, in_us) <= max(1, limit.count // 10)


def test_leases_grow_with_the_pace_of_the_caller() -> None:
    fast, login = Limit("fast", 100_000, MINUTE), Limit("login", 5, MINUTE)
    assert next_token_lease(fast, used=0, in_us=DAY) == 1
    assert next_token_lease(fast, used=8, in_us=1000) == 16
    assert next_token_lease(fast, used=800, in_us=SECOND) == 400
    assert next_token_lease(fast, used=100, in_us=HOUR) == 1
    assert next_token_lease(login, used=5, in_us=1) == 1


@pytest.mark.parametrize(("count", "per_us"), [(0, MINUTE), (COUNT_MAX + 1, MINUTE), (5, SECOND - 1), (5, DAY + 1)])
def test_a_limit_that_could_not_be_kept_is_a_bug(count: int, per_us: int) -> None:
    with pytest.raises(AssertionError):
        Limit("wrong", count, per_us)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::FFFF:C000:0207", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        *((garbage, "unreadable") for garbage in ("", "unix:", "192.0.2", "192.0.2.7 ", "010.0.0.1", "[::1]", "::1\0")),
    ],
)
def test_an_address_stands_for_one_caller_however_it_is_written(address: str, key: str) -> None:
    assert address_key(address) == key


@given(st.text(alphabet=st.characters(codec=None), max_size=300))
def test_whatever_a_stranger_calls_himself_can_be_stored(who: str) -> None:
    key = Limit("login", 5, MINUTE).key(who)
    assert key.startswith("login:")
    assert len(key) <= 140
    assert key.isascii()
    assert key.isprintable()


def test_names_of_limits_and_callers_are_kept_apart() -> None:
    login, mail = Limit("login", 5, MINUTE), Limit("mail", 5, HOUR)
    assert len({login.key("a"), mail.key("a"), login.key("b"), login.key("a" * 101), login.key("a" * 102)}) == 5
    assert login.key("ä") != login.key("a")


def test_headers_tell_the_limit_and_a_refusal_tells_when_to_come_back() -> None:
    allowed = Allowance(True, limit=100, window_s=60, remaining=99, reset_s=1, retry_after_s=0)
    assert headers(allowed) == [
        (b"ratelimit-limit", b"100"),
        (b"ratelimit-remaining", b"99"),
        (b"ratelimit-reset", b"1"),
        (b"ratelimit-policy", b"100;w=60"),
    ]
    refused = allowed._replace(allowed=False, remaining=0, retry_after_s=12)
    assert headers(refused)[-1] == (b"retry-after", b"12")
