"""Checks by kind: what passes, what people look at, what fails; and no trick with what is not a number."""

import dataclasses
import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.kinds import embed
from tidemill.core.jobs.kinds.kind import Tolerance
from tidemill.core.jobs.receipts import AttemptOutcome
from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.trust.checks import exact, images, similarity, timing
from tidemill.core.trust.checks.exact import Execution, ResultHash
from tidemill.core.trust.checks.images import TILE, Picture
from tidemill.core.trust.checks.similarity import verdict_of
from tidemill.core.trust.checks.timing import NumberType, ReceiptTimes, TimingEvidence
from tidemill.core.trust.checks.verdict import Ruling, Verdict, failed, passed, review, together

PASS, REVIEW, FAIL = Ruling.PASS, Ruling.REVIEW, Ruling.FAIL
ONE, OTHER = hashlib.sha256(b"1").digest(), hashlib.sha256(b"2").digest()


def test_several_verdicts_are_as_bad_as_the_worst_of_them_and_keep_all_reasons() -> None:
    both = together(passed(a=1), review("why", b=2), failed("because", c=3), review("and"))
    assert (both.ruling, both.reasons) == (FAIL, ("why", "because", "and"))
    assert both.figures == {"a": 1, "b": 2, "c": 3}
    assert together(passed(), passed()).ruling is PASS
    with pytest.raises(AssertionError):
        Verdict(FAIL)
    with pytest.raises(AssertionError):
        Verdict(PASS, ("why",))


@pytest.mark.parametrize(
    ("claimed", "other", "ruling"),
    [
        (ResultHash(ONE, "exact"), ResultHash(ONE, "exact"), PASS),
        (ResultHash(ONE, "exact"), ResultHash(OTHER, "exact"), FAIL),
        (ResultHash(ONE, "rtx 4090, 570"), ResultHash(OTHER, "rtx 4090, 570"), FAIL),
        (ResultHash(ONE, "rtx 4090, 570"), ResultHash(OTHER, "rtx 3090, 570"), REVIEW),
        (ResultHash(ONE, "rtx 4090, 570"), ResultHash(ONE, "rtx 3090, 570"), REVIEW),
        (ResultHash(ONE, "none"), ResultHash(OTHER, "none"), REVIEW),
        (ResultHash(ONE, ""), ResultHash(OTHER, ""), REVIEW),
        (ResultHash(b"", "exact"), ResultHash(OTHER, "exact"), FAIL),
    ],
)
def test_hashes_are_compared_within_one_numeric_class(claimed: ResultHash, other: ResultHash, ruling: Ruling) -> None:
    assert exact.check(claimed, other).ruling is ruling


def alike(claim: Any, evidence: Any, tolerance: Tolerance = embed.TOLERANCE) -> Verdict:
    return similarity.check(np.asarray(claim), np.asarray(evidence), tolerance)


def turned(cosine: float) -> list[float]:
    return [cosine, (1 - cosine**2) ** 0.5]


@pytest.mark.parametrize(
    ("cosine", "ruling"),
    [(1.0, PASS), (0.999991, PASS), (0.999989, REVIEW), (0.99991, REVIEW), (0.99989, FAIL), (0.95, FAIL), (-1.0, FAIL)],
)
def test_embeddings_are_judged_by_their_worst_row(cosine: float, ruling: Ruling) -> None:
    same = [[1.0, 0.0]] * 999
    assert alike([*same, turned(cosine)], [*same, [1.0, 0.0]]).ruling is ruling


def test_embeddings_that_were_turned_by_a_little_are_wrong() -> None:
    """Embeddings rotated by 0.29 rad, a cosine of 0.958, passed."""
    right = np.random.default_rng(1).standard_normal((3, 384))
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    for angle, ruling in ((0.29, FAIL), (0.02, FAIL), (0.01, REVIEW), (0.001, PASS)):
        pairs = right.reshape(3, -1, 2)
        swung = pairs @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        assert alike(swung.reshape(right.shape), right).ruling is ruling, angle


@pytest.mark.parametrize(
    ("value", "ruling"), [(0.95, REVIEW), (0.85, FAIL), (np.nan, FAIL), (0.950001, PASS), (0.850001, REVIEW)]
)
def test_the_bounds_themselves_belong_to_the_worse_side(value: float, ruling: Ruling) -> None:
    assert verdict_of(value, 0, Tolerance(0.95, 0.85)).ruling is ruling


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_similar_to_nothing_not_even_to_itself(bad: float) -> None:
    good, broken = np.ones((3, 4)), np.ones((3, 4))
    broken[1, 2] = bad
    assert alike(broken, good).ruling is FAIL
    assert alike(good, broken).ruling is REVIEW
    assert alike(broken, broken).ruling is REVIEW


def test_zeros_are_like_zeros_and_like_nothing_else() -> None:
    zeros, ones = np.zeros((2, 3)), np.ones((2, 3))
    assert alike(zeros, zeros).ruling is PASS
    assert alike(zeros, ones).ruling is FAIL
    assert alike(ones, zeros).ruling is FAIL
    one_empty_row = np.array([[1.0, 1, 1], [0, 0, 0]])
    assert alike(one_empty_row, ones).ruling is FAIL
    assert alike(one_empty_row, one_empty_row).ruling is PASS


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 2), (3, 2), (2, 3, 1), (0, 3)])
def test_another_shape_fails_whatever_would_broadcast(shape: tuple[int, ...]) -> None:
    assert alike(np.ones(shape), np.ones((2, 3))).ruling is FAIL


def test_a_scaled_answer_is_no_right_one_though_its_direction_is() -> None:
    right = np.random.default_rng(1).standard_normal((5, 8))
    assert alike(right * (1 + 1e-6), right).ruling is PASS
    assert alike(right * 1.02, right).ruling is FAIL
    assert alike(right * 1e-3, right).ruling is FAIL


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324, 1.7e308])
def test_huge_and_tiny_numbers_do_not_overflow_or_vanish(scale: float) -> None:
    right = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, 0.0]]) * scale
    assert alike(right, right).ruling is PASS
    assert alike(-right, right).ruling is FAIL


def test_what_holds_no_numbers_at_all_fails() -> None:
    assert alike([["a"]], [[1.0]]).ruling is FAIL
    assert alike(np.ones(3), np.ones(3)).ruling is FAIL
    assert alike(np.empty((0, 3)), np.empty((0, 3))).ruling is PASS


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32), st.floats(0, 3))
def test_similarity_is_from_zero_to_one_and_the_same_both_ways(m: int, n: int, seed: int, noise: float) -> None:
    dice = np.random.default_rng(seed)
    one = dice.standard_normal((m, n))
    other = one + noise * dice.standard_normal((m, n))
    there, back = alike(one, other), alike(other, one)
    assert there.figures["similarity"] == pytest.approx(back.figures["similarity"])
    assert 0 <= float(there.figures["similarity"]) <= 1


def a_picture(height: int = 200, width: int = 150) -> Picture:
    return Picture(np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_pictures_are_equal_in_every_pixel_or_the_tile_is_named() -> None:
    right = a_picture()
    assert images.check(a_picture(), right).ruling is PASS
    for row, column in [(0, 0), (199, 149), (64, 63), (130, 70)]:
        wrong = Picture(right.pixels.copy())
        wrong.pixels[row, column, 2] ^= 1
        verdict = images.check(wrong, right)
        assert verdict.ruling is FAIL
        assert (verdict.figures["tile_row"], verdict.figures["tile_column"]) == (row // TILE, column // TILE)
        assert verdict.figures["pixels_differing"] == 1
        assert verdict.figures["largest_difference"] == 1


def test_the_tile_with_most_differences_is_named() -> None:
    right = a_picture()
    wrong = Picture(right.pixels.copy())
    wrong.pixels[0:5, 0:5] ^= 255
    wrong.pixels[64:128, 64:128] ^= 255
    verdict = images.check(wrong, right)
    assert (verdict.figures["tile_row"], verdict.figures["tile_column"]) == (1, 1)
    assert "2 tiles" in verdict.reasons[0]


@pytest.mark.parametrize("pixels", [np.zeros((200, 149, 3), np.uint8), np.zeros((200, 150), np.uint8)])
def test_a_picture_of_another_size_fails(pixels: Any) -> None:
    assert images.check(Picture(pixels), a_picture()).ruling is FAIL


def test_a_picture_of_another_type_fails_though_its_numbers_are_equal() -> None:
    right = a_picture()
    assert images.check(Picture(right.pixels.astype(np.float32)), right).ruling is FAIL  # type: ignore[arg-type]


def ran(
    outcome: AttemptOutcome = AttemptOutcome.DONE, code: int = 0, of_class: str = "exact", **files: bytes
) -> Execution:
    return Execution(outcome, code, files, of_class)


@pytest.mark.parametrize(
    ("claimed", "other", "ruling"),
    [
        (ran(a=ONE, b=OTHER), ran(b=OTHER, a=ONE), PASS),
        (ran(a=ONE), ran(a=OTHER), FAIL),
        (ran(a=ONE), ran(a=ONE, b=ONE), FAIL),
        (ran(a=ONE, b=ONE), ran(a=ONE), FAIL),
        (ran(a=ONE, of_class="none"), ran(a=OTHER, of_class="none"), REVIEW),
        (ran(a=ONE, of_class="x"), ran(a=OTHER, of_class="y"), REVIEW),
        (ran(a=ONE, of_class="x"), ran(a=ONE, of_class="y"), PASS),
        (ran(), ran(AttemptOutcome.FAILED, 1), REVIEW),
        (ran(AttemptOutcome.FAILED, 1), ran(), REVIEW),
        (ran(AttemptOutcome.FAILED, 1), ran(AttemptOutcome.FAILED, 1), PASS),
        (ran(AttemptOutcome.FAILED, 1), ran(AttemptOutcome.FAILED, -9), REVIEW),
    ],
)
def test_an_execution_is_compared_with_another(claimed: Execution, other: Execution, ruling: Ruling) -> None:
    assert exact.check_files(claimed, other).ruling is ruling


GPU = recognised("NVIDIA GeForce RTX 3090", 24_576)


def known(**changes: Any) -> TimingEvidence:
    made = TimingEvidence(
        operations=1e13,
        numbers=NumberType.FLOAT32,
        devices=1,
        gpu=GPU,
        measured_ops_per_s=0,
        offered_at=Instant(0),
        received_at=Instant(100 * SECOND),
    )
    return dataclasses.replace(made, **changes)


def told(took_s: float, device_ms: int | None = None) -> ReceiptTimes:
    return ReceiptTimes(
        Instant(0), Instant(int(took_s * SECOND)), int(took_s * 1000) if device_ms is None else device_ms
    )


@pytest.mark.parametrize(
    ("claim", "evidence", "ruling"),
    [
        (told(10), known(), PASS),
        (told(0.01), known(), REVIEW),
        (told(0), known(), REVIEW),
        (told(0.01), known(gpu=None), PASS),
        (told(0.01), known(gpu=None, measured_ops_per_s=10**12), REVIEW),
        (told(0.1), known(devices=8), PASS),
        (told(0.1), known(measured_ops_per_s=10**12), REVIEW),
        (told(10), known(received_at=Instant(SECOND)), REVIEW),
        (told(10), known(operations=1e16, received_at=Instant(10 * SECOND)), REVIEW),
        (told(10, device_ms=30_000), known(), REVIEW),
        (told(10, device_ms=30_000), known(devices=4), PASS),
    ],
)
def test_times_that_cannot_be_true_are_looked_at_and_never_fail_alone(
    claim: ReceiptTimes, evidence: TimingEvidence, ruling: Ruling
) -> None:
    assert timing.check(claim, evidence).ruling is ruling
