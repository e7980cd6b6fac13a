"""What it costs to check a product of int8 matrices, as a ratio to computing it, and whether one wrong entry is found.

Prints one line of JSON. `verify_ratio` is the check by a drawn vector ÷ the fastest exact multiplication that numpy has
here, each the best of several turns, on one thread both; `sumcheck_…` the same for the proof that nobody draws for,
and `float_verify_ratio` for float32. `gpu_s_verified_per_core_s` is how many seconds of an RTX 3090's float32, by its
data sheet, one core checks in a second, at the largest size. `recompute_below` is the side below which multiplying once
more is cheaper. `missed` counts the trials in which a product with one changed entry passed, of all sizes, at any
place; `refused` those in which a right one did not.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.trust.proofs import sumcheck
from tidemill.core.trust.proofs.floats import Precision, examine
from tidemill.core.trust.proofs.integers import each_agrees, is_possible
from tidemill.core.trust.proofs.statement import Statement, challenge, matrix_digest

SECRET = b"a secret of the pool"
SIDES = (1024, 2048, 4096)
BLOCK = 1024
"""So many products of int8 add up exactly in float32."""

LARGE = {1024: 300, 2048: 100, 4096: 20}
"""How many trials are made with each large product; the others are small, of sides up to 96."""


def factors(m: int, k: int, n: int, seed: int) -> tuple[Any, Any]:
    dice = np.random.default_rng(seed)
    return dice.integers(-128, 128, (m, k), dtype=np.int8), dice.integers(-128, 128, (k, n), dtype=np.int8)


def in_float32(left: Any, right: Any) -> Any:
    """In blocks that float32 adds up exactly."""
    lefts, rights = left.astype(np.float32), right.astype(np.float32)
    total = (lefts[:, :BLOCK] @ rights[:BLOCK]).astype(np.int32)
    for first in range(BLOCK, left.shape[1], BLOCK):
        np.add(total, lefts[:, first : first + BLOCK] @ rights[first : first + BLOCK], out=total, casting="unsafe")
    return total


def in_float64(left: Any, right: Any) -> Any:
    return (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int32)


def best_s(work: Callable[[], object], turns: int) -> float:
    times = []
    for _ in range(turns):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def stated(left: Any, right: Any, product: Any) -> Statement:
    digests = (matrix_digest(one) for one in (left, right, product))
    ids = (UUID(int=number) for number in (1, 2, 3))
    return Statement(*ids, 4, left.shape[0], right.shape[1], left.shape[1], *digests)


def verified(left: Any, right: Any, product: Any, of: Statement) -> bool:
    """The whole check by a vector: the draw, the range of the entries, three matrices times a vector."""
    return each_agrees(right, [(left, product)], challenge(SECRET, of))[0]


def measured(side: int, rounds: int) -> dict[str, float]:
    """Everything about one size, in turns, so that what slows the machine slows all of them."""
    left, right = factors(side, side, side, side)
    product = in_float32(left, right)
    of = stated(left, right, product)
    proof = sumcheck.prove(of, left, right)
    floats = left.astype(np.float32), right.astype(np.float32)
    float_product = floats[0] @ floats[1]

    def values() -> None:
        found = sumcheck.replay(of, proof)
        assert isinstance(found, sumcheck.ProofValues)
        assert sumcheck.value_at(left, found.rows, found.inner) == found.left
        assert sumcheck.value_at(right, found.inner, found.columns) == found.right
        assert sumcheck.value_at(product, found.rows, found.columns) == found.product

    work: dict[str, Callable[[], object]] = {
        "compute_s": lambda: in_float32(left, right),
        "compute_float64_s": lambda: in_float64(left, right),
        "compute_float_s": lambda: floats[0] @ floats[1],
        "verify_s": lambda: verified(left, right, product, of),
        "prove_s": lambda: sumcheck.prove(of, left, right),
        "replay_s": values,
        "float_verify_s": lambda: examine(*floats, float_product, Precision.FLOAT32, SECRET),
        "digest_s": lambda: matrix_digest(product),
    }
    turns = [
        {name: best_s(one, 1 if name.startswith("compute") else 3) for name, one in work.items()} for _ in range(rounds)
    ]
    best = {name: min(turn[name] for turn in turns) for name in work}
    best["compute_s"] = min(best["compute_s"], best.pop("compute_float64_s"))
    return {**best, "proof_bytes": len(proof)}


def crossing() -> int:
    """The side from which on a vector is cheaper than multiplying once more."""
    for side in range(32, 512, 16):
        left, right = factors(side, side, side, side)
        product = in_float32(left, right)
        of = stated(left, right, product)
        compute_s = best_s(lambda left=left, right=right: in_float32(left, right), 30)
        if (
            best_s(lambda left=left, right=right, product=product, of=of: verified(left, right, product, of), 30)
            < compute_s
        ):
            return side
    return 512


def tried(trials: int) -> tuple[int, int, int]:
    """How many trials there were, how many wrong products passed, and how many right ones did not."""
    dice = np.random.default_rng(2026)
    made = missed = refused = 0
    for side, count in LARGE.items():
        left, right = factors(side, side, side, side)
        one = trial(left, right, in_float32(left, right), dice, min(count, trials // 4))
        made, missed, refused = made + one[0], missed + one[1], refused + one[2]
    while made < trials:
        m, k, n = (int(side) for side in dice.integers(1, 97, 3))
        left, right = factors(m, k, n, made)
        one = trial(left, right, in_float64(left, right), dice, 1)
        made, missed, refused = made + one[0], missed + one[1], refused + one[2]
    return made, missed, refused


def trial(left: Any, right: Any, product: Any, dice: np.random.Generator, count: int) -> tuple[int, int, int]:
    """Change one entry, anywhere, by anything that keeps it possible; a new draw each time."""
    missed = refused = 0
    most = 2**14 * left.shape[1]
    for number in range(count):
        row, column = (int(dice.integers(side)) for side in product.shape)
        right_one = int(product[row, column])
        wrong_one = right_one + 1 if number % 2 else int(dice.integers(-most, most))
        product[row, column] = wrong_one if wrong_one not in (right_one, most + 1) else right_one - 1
        draw = hashlib.sha256(dice.bytes(32)).digest()
        assert is_possible(left, right, product)
        missed += each_agrees(right, [(left, product)], draw)[0]
        product[row, column] = right_one
        if number % 10 == 0:
            refused += not each_agrees(right, [(left, product)], draw)[0]
    return count, missed, refused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=3, help="how often each measurement is taken")
    parser.add_argument("--trials", type=int, default=10_000, help="how many wrong products are tried")
    options = parser.parse_args()
    by_side = {side: measured(side, options.rounds) for side in SIDES}
    largest = by_side[SIDES[-1]]
    gpu = recognised("GeForce RTX 3090", 24_576)
    assert gpu
    trials, missed, refused = tried(options.trials)

    def ratios(name: str, whole: str) -> dict[str, float]:
        return {str(side): round(found[name] / found[whole], 4) for side, found in by_side.items()}

    figures = {
        "verify_ratio": ratios("verify_s", "compute_s"),
        "gpu_s_verified_per_core_s": round(2 * SIDES[-1] ** 3 / (gpu.fp32_tflops * 1e12) / largest["verify_s"], 4),
        "trials": trials,
        "missed": missed,
        "refused": refused,
        "sumcheck_prove_ratio": ratios("prove_s", "compute_s"),
        "sumcheck_verify_ratio": ratios("replay_s", "compute_s"),
        "sumcheck_bytes": int(largest["proof_bytes"]),
        "float_verify_ratio": ratios("float_verify_s", "compute_float_s"),
        "digest_ratio": ratios("digest_s", "compute_s"),
        "recompute_below": crossing(),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
