"""Results: archives that are the same everywhere, and seals that open for nobody else and for nothing else."""

import io
import tarfile
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.worlds.sealed_results import opened_whole
from tidemill.core.jobs.result_archives import (
    END,
    ResultFilesRefusal,
    archive,
    archived_bytes,
    file_header,
    fits,
    in_order,
    padding,
    read_archive,
)
from tidemill.core.jobs.results import (
    PIECE_BYTES,
    ResultBinding,
    ResultRefusal,
    envelope,
    is_reader,
    opened,
    opened_envelope,
    public_key,
    seal,
    sealed_bytes,
)

KEY = bytes(range(32))
BOUND = ResultBinding(UUID(int=1), UUID(int=2), 3)
OTHERS = [replace(BOUND, task_id=UUID(int=9)), replace(BOUND, attempt_id=UUID(int=9)), replace(BOUND, lease=4)]
SIZES = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES]

names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/"), min_size=1)
paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: PurePosixPath(*parts)).filter(fits)


@given(st.dictionaries(paths, st.binary(max_size=2_000), max_size=6))
def test_an_archive_holds_what_was_put_in_whatever_the_order(files: dict[PurePosixPath, bytes]) -> None:
    made = archive(files)
    assert made == archive(dict(reversed(files.items())))
    assert len(made) == archived_bytes(map(len, files.values()))
    assert read_archive(made) == files


@given(st.dictionaries(paths, st.binary(max_size=2_000), max_size=6))
def test_any_tar_reads_an_archive(files: dict[PurePosixPath, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(files))) as tar:
        assert [member.name for member in tar] == [str(path) for path in in_order(files)]
        assert {PurePosixPath(one.name): tar.extractfile(one).read() for one in tar} == files  # type: ignore[union-attr]
        assert all(one.isreg() and one.mtime == 0 and one.mode == 0o644 for one in tar)


def test_a_file_above_8_gib_has_a_size_that_tar_reads() -> None:
    member = tarfile.TarInfo.frombuf(file_header(PurePosixPath("weights"), 20 * 1024**3), "utf-8", "strict")
    assert member.size == 20 * 1024**3


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "../up", "a/../../b", "two\nlines", "x" * 101, "d/" * 140 + "f", "a/" + "b" * 101, "\udcff"],
)
def test_names_that_no_archive_keeps_are_told(name: str) -> None:
    assert not fits(PurePosixPath(name))


@given(st.binary(max_size=3_000))
def test_what_is_no_archive_is_refused(junk: bytes) -> None:
    assert read_archive(junk) is ResultFilesRefusal.ARCHIVE_MALFORMED


@given(st.integers(0, 3_071), st.integers(1, 255))
def test_an_archive_has_one_form(place: int, change: int) -> None:
    files = {PurePosixPath("a"): b"x" * 700, PurePosixPath("b/c"): b""}
    made = bytearray(archive(files))
    made[place] ^= change
    assert read_archive(bytes(made)) != files


def test_an_archive_has_its_files_once_and_in_order_and_nothing_else() -> None:
    one, other = (file_header(PurePosixPath(name), 3) + b"abc" + padding(3) for name in "ab")
    assert read_archive(one + other + END) == {PurePosixPath("a"): b"abc", PurePosixPath("b"): b"abc"}
    for strange in (other + one + END, one + one + END, one + other + END[:-1], one + other + END + b"\0", one):
        assert read_archive(strange) is ResultFilesRefusal.ARCHIVE_MALFORMED


@pytest.mark.parametrize("size", SIZES)
def test_a_sealed_result_opens_however_it_is_cut_on_the_way(size: int) -> None:
    plain = bytes(size % 251 for size in range(size))
    sealed = b"".join(seal([plain[:7], plain[7:]], KEY, BOUND))
    assert len(sealed) == sealed_bytes(size)
    step = 100_003
    chunks = [sealed[at : at + step] for at in range(0, len(sealed), step)]
    assert b"".join(piece for piece in opened(chunks, KEY, BOUND) if isinstance(piece, bytes)) == plain
    assert opened_whole(sealed, KEY, BOUND) == plain


@pytest.mark.parametrize("size", SIZES)
def test_a_cut_longer_changed_or_mixed_result_does_not_open(size: int) -> None:
    sealed = b"".join(seal([bytes(size)], KEY, BOUND))
    for wrong in (sealed[:-1], sealed + b"\0", sealed[:-20], sealed[:16], b"", sealed[:20] + b"?" + sealed[21:]):
        assert opened_whole(wrong, KEY, BOUND) is ResultRefusal.RESULT_DOES_NOT_OPEN
    piece = PIECE_BYTES + 16
    assert opened_whole(sealed[: 16 + piece], KEY, BOUND) == (
        bytes(size) if len(sealed) <= 16 + piece else ResultRefusal.RESULT_DOES_NOT_OPEN
    )
    swapped = sealed[:16] + sealed[16 + piece : 16 + 2 * piece] + sealed[16 : 16 + piece] + sealed[16 + 2 * piece :]
    if swapped != sealed:
        assert opened_whole(swapped, KEY, BOUND) is ResultRefusal.RESULT_DOES_NOT_OPEN


@pytest.mark.parametrize("other", OTHERS)
def test_neither_a_result_nor_its_key_opens_for_another_attempt(other: ResultBinding) -> None:
    private = b"p" * 32
    sealed = b"".join(seal([b"result"], KEY, BOUND))
    assert opened_whole(sealed, KEY, other) is ResultRefusal.RESULT_DOES_NOT_OPEN
    letter = envelope(KEY, public_key(private), BOUND)
    assert opened_envelope(letter, private, BOUND) == KEY
    assert opened_envelope(letter, private, other) is ResultRefusal.ENVELOPE_DOES_NOT_OPEN


@pytest.mark.parametrize("cut", [0, 10, 32, 79])
def test_an_envelope_opens_only_whole_and_for_its_reader(cut: int) -> None:
    letter = envelope(KEY, public_key(b"p" * 32), BOUND)
    assert len(letter) == 80
    assert opened_envelope(letter, b"q" * 32, BOUND) is ResultRefusal.ENVELOPE_DOES_NOT_OPEN
    assert opened_envelope(letter[:cut], b"p" * 32, BOUND) is ResultRefusal.ENVELOPE_DOES_NOT_OPEN
    assert letter != envelope(KEY, public_key(b"p" * 32), BOUND), "nobody sees that two results have the same key"


def test_nobody_seals_to_a_key_that_everybody_has() -> None:
    small_order = [bytes(32), b"\x01" + bytes(31), bytes.fromhex("ecff" + "ff" * 29 + "7f"), b"\xff" * 3]
    assert not any(is_reader(key) for key in small_order)
    assert is_reader(public_key(b"p" * 32))
