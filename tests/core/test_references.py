"""What people write to name a thing, and what it means."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids, id_of, short_id, with_short_ids
from tidemill.core.nodes.node import NAME_MAX, first_names
from tidemill.core.references import (
    BACK_MAX,
    NAMED,
    REFERENCE_MAX,
    FromLast,
    GivenName,
    IdEnd,
    ObjectKind,
    ReferenceObjection,
    ReferenceRefusal,
    Referent,
    choose,
    distinct_ends,
    read_reference,
    refused_name,
)

WHOLE = UUID("0190a5c2-7e3b-7d21-9f4a-1c5d9fc8e31a")
OTHER = UUID("0190a5c2-7e3b-7d21-9f4a-1c5e9fc8e31a")
ADA, BEN = UUID(int=1), UUID(int=2)

READ = {
    str(WHOLE): WHOLE,
    WHOLE.hex: WHOLE,
    str(WHOLE).upper(): WHOLE,
    "9fc8e31a": IdEnd("9fc8e31a"),
    "9FC8E31A": IdEnd("9fc8e31a"),
    "5d9fc8e31a": IdEnd("5d9fc8e31a"),
    "1c5d9fc8e31a": IdEnd("1c5d9fc8e31a"),
    "4a-1c5d9fc8e31a": IdEnd("4a1c5d9fc8e31a"),
    "7d21-9f4a-1c5d9fc8e31a": IdEnd("7d219f4a1c5d9fc8e31a"),
    "last": FromLast(0),
    "last-0": FromLast(0),
    "last-1": FromLast(1),
    "LAST-12": FromLast(12),
    f"last-{BACK_MAX}": FromLast(BACK_MAX),
    "attic": GivenName("attic"),
    "fc8e31a": GivenName("fc8e31a"),  # seven digits are a name
    "2026-11-18": GivenName("2026-11-18"),
    "lasting": GivenName("lasting"),
    "last-minute": GivenName("last-minute"),
    "rack 7": GivenName("rack 7"),
    "чердак": GivenName("чердак"),
    "%_'\"\\": GivenName("%_'\"\\"),
    "..": GivenName(".."),
}

MALFORMED = [
    "",
    "-1",
    "-999",
    "last-1000",
    "last-999999999",
    "last-" + "9" * 5000,
    "a\0b",
    "a\nb",
    "ab\u202ecd",  # turns what follows around
    "a\u200bb",  # has no width
    "a" * (REFERENCE_MAX + 1),
    "\ud800",
]


@pytest.mark.parametrize(("text", "read"), READ.items())
def test_each_form_is_told_by_how_it_looks(text: str, read: object) -> None:
    assert read_reference(text, ObjectKind.NODE) == read


@pytest.mark.parametrize("text", MALFORMED)
def test_what_names_nothing_never_reaches_the_database(text: str) -> None:
    assert {read_reference(text, kind) for kind in ObjectKind} == {ReferenceRefusal.REFERENCE_MALFORMED}


def test_only_what_has_names_is_found_by_one() -> None:
    by_name = {kind for kind in ObjectKind if read_reference("attic", kind) == GivenName("attic")}
    assert by_name == NAMED
    assert read_reference("attic", ObjectKind.ADJUSTMENT) is ReferenceRefusal.REFERENCE_MALFORMED


@pytest.mark.parametrize("name", ["9fc8e31a", " 9fc8e31a ", "DEADBEEF", "20261118", str(WHOLE), "last", "Last-3", "-1"])
def test_a_name_that_looks_like_another_form_is_refused(name: str) -> None:
    assert refused_name(name) is ReferenceRefusal.NAME_LIKE_AN_ID


@pytest.mark.parametrize("name", ["a/b", "/", "..", ".", "join-tokens", "usage"])
def test_a_name_that_means_something_else_in_an_address_is_refused(name: str) -> None:
    assert refused_name(name) is ReferenceRefusal.NAME_NOT_IN_ADDRESSES


@given(st.text(min_size=1, max_size=REFERENCE_MAX))
def test_whatever_may_be_a_name_is_read_as_that_name(name: str) -> None:
    if name == name.strip() and name.isprintable() and refused_name(name) is None:
        assert read_reference(name, ObjectKind.NODE) == GivenName(name)


@given(st.integers(), st.integers(8, 32))
def test_every_end_of_an_id_is_read_as_its_end(seed: int, length: int) -> None:
    made = Ids(Random(seed).getrandbits).new(Instant(1_000_000))
    read = read_reference(made.hex[-length:], ObjectKind.JOB)
    assert read == made if length == 32 else isinstance(read, IdEnd) and made.hex.endswith(read.digits)
    assert read_reference(short_id(made), ObjectKind.JOB) == IdEnd(made.hex[-8:]) == IdEnd(short_id(str(made)))


def test_the_ends_of_ids_are_random_also_in_a_burst_and_of_hashes() -> None:
    ids = Ids(Random(7).getrandbits)
    burst = [ids.new(Instant(1_000_000)) for _ in range(4_096)]
    hashed = [id_of(f"account:{number}") for number in range(4_096)]
    for made in (burst, hashed):
        assert len({short_id(one) for one in made}) >= 4_095
        for bit in range(32):
            assert 1_850 < sum(one.int >> bit & 1 for one in made) < 2_250


def test_whole_ids_in_a_line_for_people_are_shortened_and_nothing_else_is() -> None:
    line = f"node:{WHOLE} of account:{OTHER}, sha256 {'ab' * 32}, {WHOLE.hex}, {WHOLE}-7, x{WHOLE}"
    shortened = f"node:9fc8e31a of account:9fc8e31a, sha256 {'ab' * 32}, {WHOLE.hex}, 9fc8e31a-7, x{WHOLE}"
    assert with_short_ids(line) == shortened


def referent(identifier: UUID, owner: UUID = ADA, name: str = "train", state: str = "running") -> Referent:
    return Referent(identifier, owner, name, state)


def test_one_that_is_found_is_meant_and_none_is_unknown() -> None:
    assert choose(ObjectKind.NODE, IdEnd("9fc8e31a"), [referent(WHOLE)]) == referent(WHOLE)
    assert choose(ObjectKind.NODE, FromLast(0), []) is None


def test_several_are_told_apart_by_longer_ends() -> None:
    said = choose(ObjectKind.JOB, IdEnd("9fc8e31a"), [referent(OTHER, state="failed"), referent(WHOLE, name="")])
    assert said == ReferenceObjection(
        ReferenceRefusal.REFERENCE_AMBIGUOUS,
        "Several of the jobs end in 9fc8e31a: e9fc8e31a (train, failed), d9fc8e31a (running). "
        "Say which by these digits.",
    )


def test_a_name_means_the_newest_job_of_it_and_no_node_is_guessed() -> None:
    newest, older = referent(OTHER), referent(WHOLE)
    assert choose(ObjectKind.JOB, GivenName("train"), [newest, older]) == newest
    said = choose(ObjectKind.NODE, GivenName("train"), [newest, older])
    assert isinstance(said, ReferenceObjection)
    assert said.sentence.startswith("Several of the nodes have this name: e9fc8e31a (train, running), ")


def test_a_name_that_jobs_of_two_accounts_have_means_none_of_them() -> None:
    said = choose(ObjectKind.JOB, GivenName("train"), [referent(OTHER, ADA), referent(WHOLE, BEN)])
    assert isinstance(said, ReferenceObjection)


def test_of_many_only_a_few_are_named() -> None:
    many = [referent(UUID(int=number << 32)) for number in range(40)]
    said = choose(ObjectKind.NODE, GivenName("train"), many)
    assert isinstance(said, ReferenceObjection)
    assert said.sentence.count("train") == 5
    assert ", …. Say" in said.sentence


@given(st.sets(st.uuids(), min_size=1, max_size=20))
def test_distinct_ends_differ_and_end_their_ids(ids: set[UUID]) -> None:
    ends = distinct_ends(list(ids))
    assert len(set(ends)) == len(ids)
    assert all(identifier.hex.endswith(end) and len(end) >= 8 for identifier, end in zip(ids, ends, strict=True))


NAMES = [
    (["attic"], [], ["attic"]),
    (["attic", "attic", "attic"], [], ["attic", "attic-2", "attic-3"]),
    (["attic"], ["attic", "attic-3"], ["attic-2"]),
    (["attic", "attic"], ["attic-2"], ["attic", "attic-3"]),
    (["rack 7", " rack 7 "], ["cellar"], ["rack 7", "rack 7-2"]),
    (["x" * NAME_MAX], ["x" * NAME_MAX], ["x" * (NAME_MAX - 2) + "-2"]),
]


@pytest.mark.parametrize(("wished", "taken", "given_"), NAMES)
def test_machines_get_the_name_of_their_token_and_a_number_where_it_is_taken(
    wished: list[str], taken: list[str], given_: list[str]
) -> None:
    assert first_names(wished, taken) == given_
