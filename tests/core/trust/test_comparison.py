"""What a second execution says of the first, by kind; and which times cannot be true."""

import hashlib
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.sandboxes import RunLimits
from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.pictures import png_of
from tidemill.core.trust.audits.comparison import DifferenceCause, ExecutionPair, cause_of, compare
from tidemill.core.trust.checks.judgement import CheckManner, ResultFacts, is_as_signed, manner_of
from tidemill.core.trust.checks.timing import AttemptTimes, MeasuredSpeeds, doubt_about, is_doubtful
from tidemill.core.trust.checks.verdict import Ruling, Verdict

LIMITS = RunLimits(seconds=10)
SCRIPT = Task("script", {"program": "print(1)", "seconds": 5}, LIMITS)
IMAGE = Task("container", {"image": "busybox", "command": ["true"], "seconds": 5}, LIMITS)
EMBED = Task("embed", {"texts": ["one", "two", "three"]}, LIMITS)
SCENE = {"camera": {"at": {"x": 0, "y": 0, "z": 0}, "towards": {"x": 0, "y": 0, "z": 1}}}
RENDER = Task("render", {"scene": SCENE, "width": 8, "height": 4}, LIMITS)
OWNER, OTHER = UUID(int=1), UUID(int=2)
PASS, REVIEW, FAIL = Ruling.PASS, Ruling.REVIEW, Ruling.FAIL


def matmul(side: int, element: str = "int8") -> Task:
    return Task("matmul", {"m": side, "n": side, "k": side, "element": element, "seed": 1}, LIMITS)


def receipt(result: bytes, numeric_class: str = "device; a") -> Receipt:
    return Receipt(
        *(UUID(int=3), UUID(int=4), UUID(int=5), 1),
        result_sha256=hashlib.sha256(result).digest(),
        artefact=None,
        inline=result,
        envelopes=(),
        started_at=Instant(0),
        finished_at=Instant(SECOND),
        device_ms=1_000,
        numeric_class=numeric_class,
        proof=b"",
        outcome=AttemptOutcome.DONE,
        exit_code=0,
        reason="",
    )


def files(**named: bytes) -> bytes:
    return result_archives.archive({PurePosixPath(name): body for name, body in named.items()})


def embeddings(rows: Any, name: str = "embeddings.npy") -> bytes:
    numbers = np.asarray(rows, np.float32)
    return result_archives.archive(
        {PurePosixPath(name): header_of(MatrixLayout("float32", *numbers.shape)) + numbers.tobytes()}
    )


def picture(pixels: bytes, name: str = "picture.png") -> bytes:
    return result_archives.archive({PurePosixPath(name): png_of(8, 4, pixels)})


def verdict(
    task: Task, claimed: bytes, repeated: bytes, classes: tuple[str, str] = ("device; a", "device; a")
) -> Verdict:
    receipts = (receipt(claimed, classes[0]), receipt(repeated, classes[1]))
    return compare(ExecutionPair(task, *receipts, memoryview(claimed), memoryview(repeated)))


ROWS = np.eye(3, 384)


@pytest.mark.parametrize(
    ("task", "claimed", "repeated", "ruling"),
    [
        (SCRIPT, files(a=b"1"), files(a=b"1"), PASS),
        (SCRIPT, files(a=b"1"), files(a=b"2"), FAIL),
        (SCRIPT, files(a=b"1", b=b"1"), files(a=b"1"), FAIL),
        (SCRIPT, b"no archive", files(a=b"1"), FAIL),
        (SCRIPT, files(a=b"1"), b"no archive", REVIEW),
        (EMBED, embeddings(ROWS), embeddings(ROWS), PASS),
        (EMBED, embeddings(ROWS * 1.000001), embeddings(ROWS), PASS),
        (EMBED, embeddings(ROWS * 0.99995), embeddings(ROWS), REVIEW),
        (EMBED, embeddings(ROWS * 0.99), embeddings(ROWS), FAIL),
        (EMBED, embeddings(ROWS[::-1]), embeddings(ROWS), FAIL),
        (EMBED, embeddings(ROWS[:2]), embeddings(ROWS), FAIL),
        (EMBED, embeddings(ROWS * np.nan), embeddings(ROWS), FAIL),
        (EMBED, embeddings(ROWS), embeddings(ROWS * np.nan), REVIEW),
        (EMBED, embeddings(ROWS * 1.001, "other.npy"), embeddings(ROWS), FAIL),
        (EMBED, b"no archive", embeddings(ROWS), FAIL),
        (RENDER, picture(bytes(96)), picture(bytes(96)), PASS),
        (RENDER, picture(bytes(95) + b"\x01"), picture(bytes(96)), FAIL),
        (RENDER, picture(bytes(96), "other.png"), picture(bytes(96)), FAIL),
        (RENDER, b"no picture", picture(bytes(96)), FAIL),
    ],
)
def test_results_are_compared_as_their_kind_says(task: Task, claimed: bytes, repeated: bytes, ruling: Ruling) -> None:
    assert verdict(task, claimed, repeated).ruling is ruling


@pytest.mark.parametrize(
    ("task", "classes", "ruling"),
    [
        (SCRIPT, ("device; a", "device; b"), REVIEW),
        (SCRIPT, ("", ""), REVIEW),
        (IMAGE, ("none", "none"), REVIEW),
        (RENDER, ("device; a", "none"), FAIL),
        (matmul(40_000), ("none", "exact"), FAIL),
        (matmul(40_000, "float32"), ("device; a", "device; b"), REVIEW),
        (matmul(40_000, "float32"), ("device; a", "device; a"), FAIL),
    ],
)
def test_what_differs_fails_only_where_it_must_not_differ(task: Task, classes: tuple[str, str], ruling: Ruling) -> None:
    """A class that a node names counts only where the kind leaves it open: integers and pixels are the same for all."""
    assert verdict(task, files(a=b"1"), files(a=b"2"), classes).ruling is ruling


def test_a_wrong_row_among_thousands_is_found_wherever_it_is() -> None:
    rows = np.ones((10_000, 4), np.float32)
    wrong = rows.copy()
    wrong[9_999] = (1, -1, 1, -1)
    assert verdict(EMBED, embeddings(wrong), embeddings(rows)).ruling is FAIL
    assert verdict(EMBED, embeddings(rows * 1.000001), embeddings(rows)).ruling is PASS


@pytest.mark.parametrize(("task", "ruling"), [(EMBED, REVIEW), (SCRIPT, FAIL), (RENDER, FAIL)])
def test_what_is_too_large_to_be_read_is_told_apart_by_its_hash(task: Task, ruling: Ruling) -> None:
    assert compare(ExecutionPair(task, receipt(b"1"), receipt(b"2"))).ruling is ruling
    assert compare(ExecutionPair(task, receipt(b"1"), receipt(b"1"))).ruling is PASS


def test_a_result_counts_only_as_it_was_signed_and_sent() -> None:
    inline = receipt(files(a=b"1"))
    digest = Digest(inline.result_sha256.hex())
    uploaded = inline._replace(inline=b"", artefact=digest)
    assert is_as_signed(inline, is_uploaded=False)
    assert is_as_signed(uploaded, is_uploaded=True)
    assert not is_as_signed(uploaded, is_uploaded=False), "the bytes of another attempt are not its own"
    assert not is_as_signed(uploaded._replace(artefact=Digest("0" * 64)), is_uploaded=True)
    assert not is_as_signed(inline._replace(inline=b""), is_uploaded=False), "a hash alone is no result"
    assert not is_as_signed(inline._replace(inline=files(a=b"2")), is_uploaded=False)


def test_two_runs_by_the_house_tell_whether_a_customers_program_repeats_and_ours_always_does() -> None:
    found = receipt(b"h")
    assert cause_of(SCRIPT, found, None) is DifferenceCause.UNKNOWN
    assert cause_of(SCRIPT, found, receipt(b"h").result_sha256) is DifferenceCause.THE_NODE
    assert cause_of(SCRIPT, found, receipt(b"i").result_sha256) is DifferenceCause.THE_PROGRAM
    for first in (None, receipt(b"i").result_sha256):
        assert cause_of(EMBED, found, first) is DifferenceCause.THE_NODE


@pytest.mark.parametrize(
    ("task", "is_expected", "by_house", "manner"),
    [
        (SCRIPT, True, False, CheckManner.EXPECTED),
        (SCRIPT, False, True, CheckManner.TRUSTED),
        (SCRIPT, False, False, CheckManner.REPEATED),
        (matmul(64), False, False, CheckManner.PROVED),
        (matmul(40_000, "float32"), False, False, CheckManner.REPEATED),
        (EMBED, False, False, CheckManner.REPEATED),
        (RENDER, False, False, CheckManner.REPEATED),
    ],
)
def test_each_result_is_checked_in_the_cheapest_way_that_is_enough(
    task: Task, is_expected: bool, by_house: bool, manner: CheckManner
) -> None:
    assert manner_of(ResultFacts(task, is_expected, by_house)) is manner


TEN_SECONDS = AttemptTimes(Instant(0), Instant(10 * SECOND))
SLOW = MeasuredSpeeds(cpu_ops_per_s=10**9)


@pytest.mark.parametrize(
    ("task", "told_us", "device_ms", "is_told"),
    [
        (matmul(64), SECOND, 1_000, False),
        (matmul(64), 12 * SECOND, 1_000, True),
        (matmul(64), SECOND, 3_000, True),
        (matmul(8192), SECOND, 1_000, True),
        (matmul(4096), SECOND, 1_000, False),  # a quick core that was busy when it was challenged
        (matmul(1024), SECOND, 1_000, False),
        (SCRIPT, 1_000, 1, False),
    ],
)
def test_a_receipt_is_doubted_only_where_its_times_cannot_be_true(
    task: Task, told_us: int, device_ms: int, is_told: bool
) -> None:
    told = receipt(b"1")._replace(finished_at=Instant(told_us), device_ms=device_ms)
    assert bool(doubt_about(told, task, SLOW, TEN_SECONDS)) is is_told


def test_of_a_device_that_nobody_measured_no_time_is_too_short() -> None:
    assert doubt_about(receipt(b"1"), matmul(30_000), MeasuredSpeeds(), TEN_SECONDS) == ""


def test_the_first_look_lets_nothing_pass_that_the_second_would_find() -> None:
    quoted_ms = 2_000 + 3 * 1_100_000  # 8,192 cubed, at a thousand million operations a second
    quick = receipt(b"1")
    assert doubt_about(quick, matmul(8192), SLOW, TEN_SECONDS)
    assert is_doubtful(quick, TEN_SECONDS, quoted_ms)
    assert is_doubtful(quick._replace(finished_at=Instant(12 * SECOND)), TEN_SECONDS, 3_000)
    assert not is_doubtful(quick, TEN_SECONDS, 3_000)
