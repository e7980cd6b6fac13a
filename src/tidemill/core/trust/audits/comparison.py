"""What a second execution says of the first: the house's result is right, and the kind says how exact it must be.

A result counts only as it was delivered: the pool's bytes must have the hash that was signed. Equal hashes are equal
results. For results that differ, the kind's own check says by how much: from their bytes if they are small enough to
read, else only from their hashes and numeric classes.
"""

import hashlib
import hmac
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import CheckMethod, NumericClass, TaskObjection, Tolerance
from tidemill.core.jobs.kinds.render import Render, Tile
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.result_archives import ResultFilesRefusal, read_in_place
from tidemill.core.pictures import pixels_of
from tidemill.core.trust.checks import exact, images, similarity
from tidemill.core.trust.checks.exact import Execution, ResultHash
from tidemill.core.trust.checks.images import Picture
from tidemill.core.trust.checks.task_checks import read_matrix
from tidemill.core.trust.checks.verdict import Ruling, Verdict, failed, passed, review, together

READ_MAX_BYTES = 256 * 1024 * 1024
"""The most bytes read of each of two results that differ. They are read in place."""

ROWS_AT_ONCE = 4_096
SAME = "A house node came to the same result."
ALIKE = "A house node came to a result that is as like as it must be."


@dataclass(frozen=True)
class ExecutionPair:
    """Two executions of a task. The bytes of their results are present where they are small enough."""

    task: Task
    claim: Receipt
    found: Receipt
    claimed: memoryview | None = None
    repeated: memoryview | None = None


def is_same(claim: Receipt, repeated: Receipt) -> bool:
    return hmac.compare_digest(claim.result_sha256, repeated.result_sha256)


def compare(pair: ExecutionPair) -> Verdict:
    """What the second execution says of the first, by the kind's check."""
    assert pair.found.outcome is pair.claim.outcome is AttemptOutcome.DONE, "only results are compared"
    if is_same(pair.claim, pair.found):
        return passed()
    work = work_of(pair.task)
    assert not isinstance(work, TaskObjection), "what was carried out can be read"
    kind = KINDS[pair.task.kind]
    if kind.numeric_class(work) is NumericClass.EXACT:
        pair = replace(pair, claim=_exact(pair.claim), found=_exact(pair.found))
    name = PurePosixPath(kind.outputs(work)[0].name)
    match kind.check(work):
        case CheckMethod.SIMILARITY:
            assert kind.tolerance, "a kind that is compared by similarity says how similar"
            return _similar(pair, name, kind.tolerance)
        case CheckMethod.PIXELS:
            return _pictured(pair, work, name)
        case CheckMethod.REPLAY:
            return _replayed(pair)
        case _:
            return _hashed(pair)


class DifferenceCause(Enum):
    """What a difference from the house's result means."""

    UNKNOWN = "The house has to execute the task once more."
    THE_NODE = "The house came to its result twice."
    THE_PROGRAM = "The house came to two results: the program gives another one each time."


def cause_of(task: Task, repeated: Receipt, first_found: bytes | None) -> DifferenceCause:
    """Why a result differs from the house's. Our own programs have one result; of a customer's program, two runs by the
    house tell."""
    if KINDS[task.kind].ours:
        return DifferenceCause.THE_NODE
    if first_found is None:
        return DifferenceCause.UNKNOWN
    is_repeated = hmac.compare_digest(first_found, repeated.result_sha256)
    return DifferenceCause.THE_NODE if is_repeated else DifferenceCause.THE_PROGRAM


def sentence_of(verdict: Verdict) -> str:
    """Why, in one line."""
    return ALIKE if verdict.ruling is Ruling.PASS else " ".join(verdict.reasons)


def _hashed(pair: ExecutionPair) -> Verdict:
    claim, repeated = pair.claim, pair.found
    return exact.check(
        ResultHash(claim.result_sha256, claim.numeric_class), ResultHash(repeated.result_sha256, repeated.numeric_class)
    )


def _similar(pair: ExecutionPair, name: PurePosixPath, tolerance: Tolerance) -> Verdict:
    """Rows are compared a block at a time, so that little is in memory besides the results."""
    if pair.claimed is None or pair.repeated is None:
        return review("The results differ and are too large to be compared.")
    repeated, claim = _only_matrix(pair.repeated, name), _only_matrix(pair.claimed, name)
    if repeated is None:
        return review("What the house node left is no matrix.")
    if claim is None or claim.shape != repeated.shape:
        return failed("The result is no matrix of the shape that the task asks for.")
    parts = [slice(at, at + ROWS_AT_ONCE) for at in range(0, len(repeated), ROWS_AT_ONCE)]
    checks = [similarity.check(claim[part], repeated[part], tolerance) for part in parts]
    return (
        min(checks, key=_how_similar)
        if all("similarity" in verdict.figures for verdict in checks)
        else together(*checks)
    )


def _pictured(pair: ExecutionPair, work: Render, name: PurePosixPath) -> Verdict:
    claim, repeated = (_picture(body, work.part, name) for body in (pair.claimed, pair.repeated))
    return _hashed(pair) if claim is None or repeated is None else images.check(claim, repeated)


def _replayed(pair: ExecutionPair) -> Verdict:
    if pair.claimed is None or pair.repeated is None:
        return _hashed(pair)
    repeated, claim = read_in_place(pair.repeated), read_in_place(pair.claimed)
    if isinstance(repeated, ResultFilesRefusal):
        return review("What the house node left is no archive of files.")
    if isinstance(claim, ResultFilesRefusal):
        return failed("The result is no archive of files.")
    return exact.check_files(_execution(pair.claim, claim), _execution(pair.found, repeated))


def _execution(receipt: Receipt, files: dict[PurePosixPath, memoryview]) -> Execution:
    hashes = {str(path): hashlib.sha256(body).digest() for path, body in files.items()}
    return Execution(receipt.outcome, receipt.exit_code, hashes, receipt.numeric_class)


def _exact(receipt: Receipt) -> Receipt:
    """A result that every machine computes alike is compared as such, whatever class a node names."""
    return receipt._replace(numeric_class=exact.EVERYWHERE)


def _only_matrix(result: memoryview, name: PurePosixPath) -> NDArray[Any] | None:
    body = _only_file(result, name)
    matrix = None if body is None else read_matrix(body)
    return matrix if isinstance(matrix, np.ndarray) else None


def _only_file(result: memoryview, name: PurePosixPath) -> memoryview | None:
    files = read_in_place(result)
    return None if isinstance(files, ResultFilesRefusal) or len(files) != 1 else files.get(name)


def _picture(result: memoryview | None, part: Tile, name: PurePosixPath) -> Picture | None:
    body = None if result is None else _only_file(result, name)
    pixels = None if body is None else pixels_of(bytes(body), part.width, part.height)
    return None if pixels is None else Picture(np.frombuffer(pixels, np.uint8).reshape(part.height, part.width, 3))


def _how_similar(verdict: Verdict) -> float:
    return float(verdict.figures["similarity"])
