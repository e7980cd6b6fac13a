"""What is decided about artefacts: names, digests, ranges, quotas, retention, access, and how uploads go on."""

import base64
import hashlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.artefacts.access import AccountCaller, NodeCaller, NodeNeed, refused_deleting, refused_reading
from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose, checked_name, checked_range, read_digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.retention import SMALLEST_BYTES, Content, OverQuota, StorageRoom, deletable, refused_room
from tidemill.core.artefacts.uploads import (
    Checksum,
    Upload,
    expires_at,
    read_checksum,
    refused_caller,
    refused_end,
    refused_part,
)
from tidemill.core.clock import SECOND, Instant

OWNER, STRANGER, NODE, OTHER_NODE = (UUID(int=number) for number in range(1, 5))
NOW = Instant(1_000 * SECOND)
DIGEST = Digest("ab" * 32)
ARTEFACT = Artefact(UUID(int=9), OWNER, DIGEST, 5, Purpose.INPUT, "scene.blend", NOW)


@pytest.mark.parametrize(
    "text",
    ["", "ab", "AB" * 32, "ab" * 32 + "\n", "g" * 64, "../" + "a" * 61, "ab" * 33, "\u0661" * 64, "a" * 63 + "\0"],
)
def test_what_is_no_digest_is_refused(text: str) -> None:
    assert read_digest(text) is ArtefactRefusal.DIGEST_MALFORMED
    with pytest.raises(AssertionError):
        Digest(text)


@pytest.mark.parametrize(
    "name",
    [
        "", " ", ".", "..", "a/b", "a\\b", "../../etc/passwd", "a\0b", "a\nb", "a\x7fb", "a\x1b[2Jb",
        "invoice\u202efdp.exe",
        "a\u2028b", "a\ud800b", "\ufeffa", "x" * 256, "é" * 128,
    ],
)  # fmt: skip
def test_a_name_that_could_mislead_people_or_their_disk_is_refused(name: str) -> None:
    assert checked_name(name) is ArtefactRefusal.ARTEFACT_NAME_MALFORMED


@pytest.mark.parametrize(
    "name", ["model.safetensors", "Ergebnis 3 (neu)", "сцена", "می\u200cخواهم", "x" * 255, "...", "-rf"]
)
def test_a_name_that_people_use_is_kept(name: str) -> None:
    assert checked_name(f" {name} ") == name


def test_names_that_look_the_same_are_the_same() -> None:
    assert checked_name("e\u0301") == checked_name("\u00e9")


@given(st.text())
def test_a_kept_name_is_kept_again_as_it_is(name: str) -> None:
    kept = checked_name(name)
    assert isinstance(kept, ArtefactRefusal) or checked_name(kept) == kept


@pytest.mark.parametrize(
    ("first", "end", "there"),
    [(0, None, (0, 10)), (3, None, (3, 10)), (0, 1, (0, 1)), (9, 99, (9, 10)), (2, 5, (2, 5))],
)
def test_a_range_is_cut_at_the_end(first: int, end: int | None, there: tuple[int, int]) -> None:
    assert checked_range(first, end, 10) == there


@pytest.mark.parametrize(("first", "end"), [(10, None), (-1, None), (-5, 3), (5, 5), (6, 5), (0, 0), (0, -1), (11, 12)])
def test_a_range_that_is_not_there_is_refused(first: int, end: int | None) -> None:
    assert checked_range(first, end, 10) is ArtefactRefusal.RANGE_NOT_THERE


def test_nothing_has_a_range_as_well() -> None:
    assert checked_range(0, None, 0) == (0, 0)


def test_a_quota_counts_what_is_kept_and_what_is_under_way() -> None:
    room = StorageRoom(used_bytes=50_000, reserved_bytes=30_000, quota_bytes=100_000)
    assert room.free_bytes == 20_000
    assert refused_room(room, 20_000, 100_000) is None
    over = refused_room(room, 20_001, 100_000)
    assert isinstance(over, OverQuota)
    assert over.refusal is ArtefactRefusal.ARTEFACT_QUOTA_REACHED
    for figure in ("20001", "50000", "30000", "100000"):
        assert figure in over.sentence.split(), over.sentence


def test_what_was_deleted_makes_room_at_once_but_for_one_quota_only() -> None:
    room = StorageRoom(used_bytes=0, reserved_bytes=0, quota_bytes=100_000, leaving_bytes=100_000)
    assert refused_room(room, 100_000, 100_000) is None
    over = refused_room(replace(room, leaving_bytes=100_001), 100_000, 100_000)
    assert isinstance(over, OverQuota)
    assert "100001 that were deleted" in over.sentence
    assert refused_room(replace(room, leaving_bytes=100_001), 99_999, 100_000) is None


@pytest.mark.parametrize("size", [0, 1, SMALLEST_BYTES])
def test_the_smallest_artefact_counts_what_it_costs(size: int) -> None:
    assert refused_room(StorageRoom(0, 0, SMALLEST_BYTES), size, 10_000) is None
    assert isinstance(refused_room(StorageRoom(0, 1, SMALLEST_BYTES), size, 10_000), OverQuota)


def test_a_quota_that_was_lowered_below_what_is_kept_lets_nothing_in() -> None:
    room = StorageRoom(used_bytes=50, reserved_bytes=0, quota_bytes=10)
    assert room.free_bytes == 0
    assert isinstance(refused_room(room, 0, 1_000), OverQuota)


def test_a_length_that_cannot_be_is_refused_before_the_quota_is_looked_at() -> None:
    room = StorageRoom(0, 0, 10**30)
    assert refused_room(room, -1, 100) is UploadRefusal.UPLOAD_LENGTH_MALFORMED
    assert refused_room(room, 101, 100) is ArtefactRefusal.ARTEFACT_TOO_LARGE
    assert refused_room(room, 100, 100) is None


def test_only_what_nothing_refers_to_for_long_enough_is_deleted() -> None:
    def content(references: int, idle_since: int) -> Content:
        return Content(DIGEST, 5, references, Instant(idle_since))

    old = content(0, NOW - 101)
    kept = [content(1, 0), content(0, NOW - 100), content(0, NOW), content(0, NOW + 500)]
    assert deletable([*kept, old], 100, NOW) == [old]


def test_an_artefact_is_read_by_its_owner_an_operator_and_a_node_that_needs_it_now() -> None:
    needs = [NodeNeed(NODE, Instant(NOW + 1)), NodeNeed(OTHER_NODE, NOW)]
    assert refused_reading(ARTEFACT, AccountCaller(OWNER), [], NOW) is None
    assert refused_reading(ARTEFACT, AccountCaller(STRANGER, is_operator=True), [], NOW) is None
    assert refused_reading(ARTEFACT, NodeCaller(NODE), needs, NOW) is None


@pytest.mark.parametrize(
    "caller", [AccountCaller(STRANGER), AccountCaller(NODE), NodeCaller(OTHER_NODE), NodeCaller(OWNER)]
)
def test_to_everybody_else_an_artefact_does_not_exist(caller: AccountCaller | NodeCaller) -> None:
    needs = [NodeNeed(NODE, Instant(NOW + 1)), NodeNeed(OTHER_NODE, NOW)]
    assert refused_reading(ARTEFACT, caller, needs, NOW) is ArtefactRefusal.UNKNOWN_ARTEFACT
    assert refused_deleting(ARTEFACT, caller, 0) is ArtefactRefusal.UNKNOWN_ARTEFACT


def test_an_artefact_is_deleted_by_its_owner_or_an_operator_when_no_work_needs_it() -> None:
    assert refused_deleting(ARTEFACT, AccountCaller(OWNER), 0) is None
    assert refused_deleting(ARTEFACT, AccountCaller(STRANGER, is_operator=True), 0) is None
    assert refused_deleting(ARTEFACT, AccountCaller(OWNER), 1) is ArtefactRefusal.ARTEFACT_IN_USE
    assert refused_deleting(ARTEFACT, NodeCaller(NODE), 0) is ArtefactRefusal.UNKNOWN_ARTEFACT


def test_an_upload_goes_on_for_who_began_it_until_it_expires() -> None:
    upload = Upload(UUID(int=8), OWNER, NODE, Purpose.RESULT, "result", 5, None, expires_at(NOW, 10))
    assert refused_caller(upload, NODE, Instant(NOW + 9)) is None
    assert refused_caller(upload, NODE, Instant(NOW + 10)) is UploadRefusal.UPLOAD_EXPIRED
    for other in (OWNER, OTHER_NODE):
        assert refused_caller(upload, other, NOW) is UploadRefusal.UNKNOWN_UPLOAD


@given(st.integers(0, 100), st.integers(0, 100), st.integers(-10, 200), st.integers(0, 200))
def test_a_part_begins_where_the_upload_stands_and_ends_within_its_length(
    length: int, stands_at: int, offset: int, part: int
) -> None:
    refusal = refused_part(length, stands_at, offset, part)
    assert (refusal is None) == (offset == stands_at and stands_at + part <= length)
    assert (refusal is UploadRefusal.UPLOAD_OFFSET_WRONG) == (offset != stands_at)


def test_an_upload_ends_at_its_length() -> None:
    assert refused_end(5, 5) is None
    assert refused_end(5, 4) is UploadRefusal.UPLOAD_INCOMPLETE


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_checksum_is_read_and_compared(algorithm: str) -> None:
    value = hashlib.new(algorithm, b"part").digest()
    checksum = read_checksum(f"{algorithm} {base64.b64encode(value).decode()}")
    assert checksum == Checksum(algorithm, value)
    right, wrong = checksum.hash(), checksum.hash()
    right.update(b"part")
    wrong.update(b"Part")
    assert checksum.fits(right)
    assert not checksum.fits(wrong)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "sha1",
        "sha1 ",
        "md5 AAAA",
        "sha1 AAAA",
        "sha256 " + "A" * 28,
        "sha1 !!!",
        "sha1 é",
        "sha1  AAAA",
        "SHA1 AAAA",
    ],
)
def test_a_checksum_that_cannot_be_read_is_refused(header: str) -> None:
    assert read_checksum(header) is UploadRefusal.UPLOAD_CHECKSUM_MALFORMED
