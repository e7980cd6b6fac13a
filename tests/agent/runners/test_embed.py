"""Embeddings, in the sandbox and against vectors that torch and transformers made of the same model and texts.

`minilm_reference.json` holds them: made once with torch 2.13 and transformers 5.22 on a CPU, by the mean of the last
layer's states, each divided by its length.
"""

import base64
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from tests.worlds.sandboxes.runner_tasks import run, task_of
from tests.worlds.sandboxes.sandbox_cell import Cell
from tidemill.agent.inside.dialogue import EXIT_UNFIT, MachineUnable
from tidemill.agent.inside.minilm import MiniLm, error_function
from tidemill.agent.inside.vocabulary import Vocabulary, words
from tidemill.agent.runners import RUNNERS, ResultFiles
from tidemill.agent.runners.embed import ModelFiles, installed_model
from tidemill.core.jobs.kinds.embed import TOKENS_MAX, TOLERANCE
from tidemill.core.trust.checks.similarity import row_similarities

sandboxed = pytest.mark.needs("bubblewrap", "python3")
REFERENCE = json.loads((Path(__file__).parent / "minilm_reference.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def model() -> ModelFiles:
    found = installed_model()
    assert isinstance(found, ModelFiles), found
    return found


@pytest.fixture(scope="module")
def tokens(model: ModelFiles) -> Vocabulary:
    return Vocabulary(model.vocabulary.read_text("utf-8").split("\n"))


def expected() -> np.ndarray:
    return np.stack([np.frombuffer(base64.b64decode(one["embedding"]), dtype="<f4") for one in REFERENCE])


def test_the_error_function_is_as_close_as_float32_can_say() -> None:
    values = np.linspace(-6, 6, 4001).astype(np.float32)
    assert (
        max(abs(float(got) - math.erf(value)) for got, value in zip(error_function(values), values, strict=True)) < 5e-7
    )


@pytest.mark.parametrize("one", REFERENCE, ids=lambda one: repr(one["text"][:20]))
def test_a_text_becomes_the_tokens_that_the_reference_has(tokens: Vocabulary, one: dict[str, object]) -> None:
    assert tokens.numbers(str(one["text"]), TOKENS_MAX) == one["tokens"]


def test_what_looks_like_a_mark_of_the_model_is_text(tokens: Vocabulary) -> None:
    assert list(filter(None, words("[SEP]"))) == ["[", "sep", "]"]
    assert tokens.numbers("[SEP] [CLS]", 64).count(102) == 1


@pytest.mark.parametrize(
    "text", ["\0\0", "\u0301" * 1000, "a" * 16_000, "👩‍👩‍👧" * 100, "﷽" * 50, "\x0b\x1c", "ª" * 200]
)
def test_strange_texts_end_within_the_models_length(tokens: Vocabulary, text: str) -> None:
    numbers = tokens.numbers(text, TOKENS_MAX)
    assert (numbers[0], numbers[-1]) == (101, 102)
    assert 2 <= len(numbers) <= TOKENS_MAX


def test_numeric_error_is_far_below_what_a_check_tolerates(model: ModelFiles, tokens: Vocabulary) -> None:
    """The tolerance is derived from such errors: should the model's arithmetic change, it has to be measured again."""
    single, double = MiniLm(str(model.weights)), MiniLm(str(model.weights))
    double._weights = {name: weights.astype(np.float64) for name, weights in double._weights.items()}
    for one in REFERENCE:
        numbers = np.array([tokens.numbers(str(one["text"]), TOKENS_MAX)])
        similar = row_similarities(single.embeddings(numbers), double.embeddings(numbers)).min()
        assert 1 - similar < (1 - TOLERANCE.passes) / 20


@sandboxed
async def test_texts_in_the_parameters_become_the_references_vectors(cell: Cell) -> None:
    done = await run(cell, task_of("embed", {"texts": [one["text"] for one in REFERENCE]}))
    assert done.outcome.succeeded, done.errors
    assert isinstance(done.checked, ResultFiles)
    made = np.load(io.BytesIO(done.files["embeddings.npy"]), allow_pickle=False)
    assert np.abs(made - expected()).max() < 2e-6


@sandboxed
async def test_texts_in_an_input_become_the_same(cell: Cell, place: Path) -> None:
    lines = [json.dumps(one["text"], ensure_ascii=number % 2 == 0) for number, one in enumerate(REFERENCE)]
    (file := place / "texts").write_text("\n".join(lines), "utf-8")
    done = await run(cell, task_of("embed", {"count": len(lines)}, {"texts": file}), {"texts": file})
    assert done.outcome.succeeded, done.errors
    made = np.load(io.BytesIO(done.files["embeddings.npy"]), allow_pickle=False)
    assert np.abs(made - expected()).max() < 2e-6


@sandboxed
@pytest.mark.parametrize(
    ("text", "words_said"),
    [
        ('"one"\n', "Line 2 of the input texts must be a JSON text"),
        ('"one"\n"two"\n"three"\n', "has more than the 2 texts"),
        ('"one"\nnot json\n', "Line 2"),
        ('"one"\n{"text": "two"}\n', "Line 2"),
        ('"one"\n' + "[" * 90_000, "Line 2"),
        ('"one"\n"\\ud800"\n', "Line 2"),
        ('"one"\n"' + "x" * 16_385 + '"\n', "Line 2"),
        ('"one"\n"' + "x" * 190_000 + '"\n', "Line 2"),
    ],
    ids=lambda text: repr(text[:20]),
)
async def test_an_input_that_is_not_so_many_texts_fails_with_one_sentence(
    cell: Cell, place: Path, text: str, words_said: str
) -> None:
    (file := place / "texts").write_text(text, "utf-8")
    done = await run(cell, task_of("embed", {"count": 2}, {"texts": file}), {"texts": file})
    assert done.outcome.exit_code == EXIT_UNFIT, done.errors
    assert words_said in done.errors.splitlines()[-1]


def test_near_texts_are_near_and_far_ones_far(model: ModelFiles, tokens: Vocabulary) -> None:
    minilm = MiniLm(str(model.weights))
    texts = ["A cat sits on the mat.", "A kitten rests on a rug.", "Interest rates rose by half a point."]
    one, near, far = (minilm.embeddings(np.array([tokens.numbers(text, 64)]))[0] for text in texts)
    assert one @ near > 0.5
    assert one @ far < 0.2


def test_texts_of_one_length_are_taken_together_without_a_change(model: ModelFiles, tokens: Vocabulary) -> None:
    minilm = MiniLm(str(model.weights))
    rows = [tokens.numbers(text, 64) for text in ("one two three", "four five six", "red green blue")]
    together = minilm.embeddings(np.array(rows))
    alone = np.concatenate([minilm.embeddings(np.array([row])) for row in rows])
    assert np.abs(together - alone).max() < 1e-6


def test_weights_whose_header_lies_are_not_used(tmp_path: Path, model: ModelFiles) -> None:
    with model.weights.open("rb") as file:
        beginning = file.read(100_000)
    (damaged := tmp_path / "weights").write_bytes(beginning)
    with pytest.raises(MachineUnable, match="damaged"):
        MiniLm(str(damaged))


@pytest.mark.parametrize("wrong", ["NaN", "zero", "long"])
def test_rows_that_do_not_have_length_one_are_refused(tmp_path: Path, wrong: str) -> None:
    task = task_of("embed", {"texts": ["a", "b"]})
    (tmp_path / "out").mkdir()
    rows = np.zeros((2, 384), dtype=np.float32)
    rows[:, 7] = 1
    np.save(tmp_path / "out" / "embeddings.npy", rows)
    assert isinstance(RUNNERS["embed"].check(task, tmp_path), ResultFiles)
    rows[1, 7] = {"NaN": np.nan, "zero": 0, "long": 1.1}[wrong]
    np.save(tmp_path / "out" / "embeddings.npy", rows)
    checked = RUNNERS["embed"].check(task, tmp_path)
    assert not isinstance(checked, ResultFiles)
    assert "length one" in checked.sentence
