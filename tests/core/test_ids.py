"""UUIDv7 identifiers."""

from random import Random
from uuid import RFC_4122

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids, first_id_at, made_at

instants = st.integers(0, 2**47 * 1000).map(Instant)


@given(instants, st.integers())
def test_an_id_is_a_uuid_of_version_7_that_tells_when_it_was_made(now: Instant, seed: int) -> None:
    made = Ids(Random(seed).getrandbits).new(now)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made_at(made) == now // 1000 * 1000


@given(st.lists(instants, min_size=2, max_size=50), st.integers())
def test_ids_only_grow_even_when_the_clock_goes_back(times: list[Instant], seed: int) -> None:
    ids = Ids(Random(seed).getrandbits)
    made = [ids.new(now) for now in times]
    assert made == sorted(set(made))


@given(instants, instants, st.integers())
def test_the_first_id_of_an_instant_bounds_the_ids_made_before_and_after(
    one: Instant, other: Instant, seed: int
) -> None:
    earlier, later = sorted((one, other))
    ids = Ids(Random(seed).getrandbits)
    assert first_id_at(earlier) <= ids.new(earlier)
    assert first_id_at(earlier) <= first_id_at(later) <= ids.new(later)


def test_the_same_seed_makes_the_same_ids() -> None:
    def three(seed: int) -> list[str]:
        ids = Ids(Random(seed).getrandbits)
        return [str(ids.new(Instant(1_000_000))) for _ in range(3)]

    assert three(7) == three(7)
    assert three(7) != three(8)
