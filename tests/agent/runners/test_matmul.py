"""Products of matrices, in the sandbox and against plain Python."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.sandboxes.runner_tasks import run, task_of
from tests.worlds.sandboxes.sandbox_cell import Cell
from tidemill.agent.inside.dialogue import EXIT_UNABLE, EXIT_UNFIT
from tidemill.agent.inside.multipliers import ArrayModule
from tidemill.agent.runners import RUNNERS, ResultFiles
from tidemill.agent.runners.run_specifications import checked_work
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.matrices.products import blocks, product_rows
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows

sandboxed = pytest.mark.needs("bubblewrap", "python3")
ON = ArrayModule(np)


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    element = left.dtype.name
    rights = [ON.load(right[block].astype(np.float32)) for block in blocks(element, left.shape[1])]
    return product_rows(left, rights, element, ON.multiply)


def matrix(file: bytes) -> np.ndarray:
    return np.load(io.BytesIO(file), allow_pickle=False)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 3000), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_product_of_int8_is_exact(m: int, n: int, k: int, seed: int) -> None:
    left = np.random.default_rng(seed).integers(-128, 128, (m, k), dtype=np.int8)
    right = np.random.default_rng(seed + 1).integers(-128, 128, (k, n), dtype=np.int8)
    assert np.array_equal(product(left, right), left.astype(np.int64) @ right.astype(np.int64))


@pytest.mark.parametrize(("low", "high"), [(-128, -128), (-128, 127), (127, 127)])
@pytest.mark.parametrize("k", [1023, 1024, 1025, 65_536])
def test_the_largest_sums_are_exact_too(low: int, high: int, k: int) -> None:
    left, right = np.full((2, k), low, dtype=np.int8), np.full((k, 3), high, dtype=np.int8)
    made = product(left, right)
    assert made.dtype == np.int32
    assert np.array_equal(made, np.full((2, 3), low * high * k))


@sandboxed
@pytest.mark.parametrize("element", ["int8", "float32"])
async def test_a_drawn_product_is_what_its_seed_says(cell: Cell, element: str) -> None:
    m, n, k, seed = 37, 23, 1501, 2**53 - 1
    done = await run(cell, task_of("matmul", {"m": m, "n": n, "k": k, "element": element, "seed": seed}))
    assert done.outcome.succeeded, done.errors
    assert isinstance(done.checked, ResultFiles)
    left = drawn_rows(seed, LEFT, element, k, range(m))
    right = drawn_rows(seed, RIGHT, element, n, range(k))
    made = matrix(done.files["c.npy"])
    if element == "int8":
        assert np.array_equal(made, left.astype(np.int64) @ right.astype(np.int64))
    else:
        assert made.dtype == np.float32
        assert np.allclose(made, left.astype(np.float64) @ right.astype(np.float64), atol=1e-3)
    assert "tidemill-progress 1000000\n" in done.errors


@pytest.mark.parametrize(("m", "n", "k"), [(3000, 3000, 3000), (6000, 3000, 100), (100, 200, 65_536)])
@pytest.mark.parametrize("element", ["int8", "float32"])
def test_a_product_takes_no_more_memory_than_its_estimate(tmp_path: Path, m: int, n: int, k: int, element: str) -> None:
    task = task_of("matmul", {"m": m, "n": n, "k": k, "element": element, "seed": 1})
    order = RUNNERS["matmul"].specify_run(task, "a", {}, python_runtime())
    code = (
        "import re\n"
        "from tidemill.agent.inside.matmul import matmul\n"
        "from tidemill.agent.inside.dialogue import carry_out\n"
        "carry_out(matmul)\n"
        "print(int(re.search(r'VmHWM:\\s*([0-9]+)', open('/proc/self/status').read())[1]) // 1024)\n"
    )
    command = [sys.executable, "-c", code, order.command.arguments[-1]]
    environment = {"OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= KINDS["matmul"].needs(checked_work(task)).memory_mib


@sandboxed
async def test_matrices_come_as_inputs(cell: Cell, place: Path) -> None:
    left = np.arange(-30, 30, dtype=np.int8).reshape(6, 10)
    right = np.arange(-35, 35, dtype=np.int8).reshape(10, 7)
    files = {"a": place / "a", "b": place / "b"}
    for name, entries in (("a", left), ("b", right)):
        with files[name].open("wb") as file:
            np.save(file, entries)
    done = await run(cell, task_of("matmul", {"m": 6, "n": 7, "k": 10, "element": "int8"}, files), files)
    assert done.outcome.succeeded, done.errors
    assert np.array_equal(matrix(done.files["c.npy"]), left.astype(np.int32) @ right.astype(np.int32))


@sandboxed
@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"", "not of NumPy's format"),
        (b"PK\x03\x04 an archive", "not of NumPy's format"),
        ("pickled", "must hold a matrix of int8"),
        ("float64", "must hold a matrix of int8"),
        ("transposed", "must hold a matrix of int8"),
        ("short", "bytes; a matrix of its shape takes"),
        ("other shape", "is 3 × 2 of int8; the task says 2 × 3"),
        ("other type", "is 2 × 3 of float32; the task says 2 × 3 of int8"),
    ],
    ids=str,
)
async def test_an_input_that_is_no_such_matrix_fails_with_one_sentence(
    cell: Cell, place: Path, file: bytes | str, words: str
) -> None:
    arrays = {
        "pickled": np.array([[print, 1, 2], [3, 4, 5]], dtype=object),
        "float64": np.zeros((2, 3)),
        "transposed": np.asfortranarray(np.zeros((2, 3), dtype=np.int8)),
        "short": np.zeros((2, 3), dtype=np.int8),
        "other shape": np.zeros((3, 2), dtype=np.int8),
        "other type": np.zeros((2, 3), dtype=np.float32),
    }
    files = {"a": place / "a", "b": place / "b"}
    with files["a"].open("wb") as out:
        if isinstance(file, str):
            np.save(out, arrays[file], allow_pickle=True)
        else:
            out.write(file)
    if file == "short":
        files["a"].write_bytes(files["a"].read_bytes()[:-1])
    with files["b"].open("wb") as out:
        np.save(out, np.zeros((3, 2), dtype=np.int8))
    done = await run(cell, task_of("matmul", {"m": 2, "n": 2, "k": 3, "element": "int8"}, files), files)
    assert done.outcome.exit_code == EXIT_UNFIT
    assert words in done.errors
    assert len(done.errors.splitlines()) == 1
    assert not isinstance(done.checked, ResultFiles)


@sandboxed
async def test_a_gpu_that_nothing_can_use_is_told_and_is_no_fault_of_the_task(cell: Cell) -> None:
    task = task_of("matmul", {"m": 2, "n": 2, "k": 2, "element": "int8", "seed": 1, "devices": 1})
    done = await run(cell, task)
    assert done.outcome.exit_code == EXIT_UNABLE
    assert "neither CuPy nor torch" in done.errors
    assert RUNNERS["matmul"].declines(task) == done.errors.strip()


@sandboxed
async def test_numbers_that_are_none_pass_through(cell: Cell, place: Path) -> None:
    """They are the customer's: a product of infinities is what arithmetic says it is."""
    files = {"a": place / "a", "b": place / "b"}
    with files["a"].open("wb") as out:
        np.save(out, np.array([[np.inf, -np.inf], [np.nan, 1]], dtype=np.float32))
    with files["b"].open("wb") as out:
        np.save(out, np.ones((2, 1), dtype=np.float32))
    done = await run(cell, task_of("matmul", {"m": 2, "n": 1, "k": 2, "element": "float32"}, files), files)
    assert done.outcome.succeeded
    assert isinstance(done.checked, ResultFiles)
    assert np.isnan(matrix(done.files["c.npy"])).all()


@pytest.mark.parametrize(
    "wrong", ["missing", "longer", "shorter", "header", "another", "link", "directory", "out link"]
)
def test_a_result_that_is_not_the_one_file_is_refused(tmp_path: Path, wrong: str) -> None:
    task = task_of("matmul", {"m": 2, "n": 3, "k": 4, "element": "int8", "seed": 1})
    right = tmp_path / "right"
    np.save(right, np.zeros((2, 3), dtype=np.int32))
    whole = right.with_suffix(".npy").read_bytes()
    work = tmp_path / "work"
    (out := work / "out").mkdir(parents=True)
    file = out / "c.npy"
    file.write_bytes(whole)
    assert isinstance(RUNNERS["matmul"].check(task, work), ResultFiles)
    match wrong:
        case "missing":
            file.unlink()
        case "longer" | "shorter" | "header":
            file.write_bytes({"longer": whole + b"\0", "shorter": whole[:-1], "header": b"\0" + whole[1:]}[wrong])
        case "another":
            (out / "another").write_bytes(b"")
        case "link":
            file.rename(tmp_path / "c.npy")
            file.symlink_to(tmp_path / "c.npy")
        case "directory":
            file.unlink()
            file.mkdir()
        case "out link":
            out.rename(tmp_path / "out")
            out.symlink_to(tmp_path / "out")
    checked = RUNNERS["matmul"].check(task, work)
    assert not isinstance(checked, ResultFiles)
    assert checked.sentence.endswith(".")
