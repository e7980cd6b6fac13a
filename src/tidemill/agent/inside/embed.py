"""Turns texts into embeddings, a window of texts at a time, so that memory does not grow with their number."""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from tidemill.agent.inside.dialogue import ProgressMeter, UnfitInput, carry_out
from tidemill.agent.inside.minilm import WIDTH, MiniLm
from tidemill.agent.inside.vocabulary import Vocabulary
from tidemill.core.matrices.npy import MatrixLayout, header_of

WINDOW = 2048
TOKENS_AT_ONCE = 4096


def embed(parameters: dict[str, Any], progress: ProgressMeter) -> None:
    count = parameters["work"].get("count") or len(parameters["work"]["texts"])
    model = MiniLm(parameters["weights"])
    with open(parameters["vocabulary"], encoding="utf-8", newline="\n") as file:
        tokens = Vocabulary(file.read().split("\n"))
    waiting = texts(parameters, count)
    with open("out/embeddings.npy", "wb") as out:
        out.write(header_of(MatrixLayout("float32", count, WIDTH)))
        for first in range(0, count, WINDOW):
            numbers = [tokens.numbers(text, parameters["tokens_max"]) for text in islice(waiting, WINDOW)]
            rows = np.empty((len(numbers), WIDTH), dtype="<f4")
            for done in _filling(model, numbers, rows):
                progress.at(first + done, count)
            out.write(rows.data)
        next(waiting, None)  # checks that no text is left over


def texts(parameters: dict[str, Any], count: int) -> Iterator[str]:
    """The texts, one by one. An input with more or fewer than the work says is refused."""
    if "count" not in parameters["work"]:
        yield from parameters["work"]["texts"]
        return
    with open(parameters["inputs"]["texts"], "rb") as file:
        for number in range(count):
            yield _text(file.readline(6 * parameters["text_max_bytes"] + 64), number, parameters["text_max_bytes"])
        if file.read(1):
            raise UnfitInput(f"The input texts has more than the {count:,} texts that the task says.")


def _text(line: bytes, number: int, most_bytes: int) -> str:
    try:
        text = json.loads(line)
        fits = isinstance(text, str) and len(text.encode()) <= most_bytes
    except (ValueError, RecursionError):
        fits = False
    if not fits:
        raise UnfitInput(f"Line {number + 1:,} of the input texts must be a JSON text of at most {most_bytes:,} bytes.")
    return str(text)


def _filling(model: MiniLm, numbers: list[list[int]], rows: Any) -> Iterator[int]:
    """Fill the rows, texts of one length together; yields how many are done."""
    indices_by_length = defaultdict(list)
    for index, tokens in enumerate(numbers):
        indices_by_length[len(tokens)].append(index)
    done = 0
    for length, indices in sorted(indices_by_length.items()):
        at_once = max(1, TOKENS_AT_ONCE // length)
        for first in range(0, len(indices), at_once):
            chosen = indices[first : first + at_once]
            rows[chosen] = model.embeddings(np.array([numbers[index] for index in chosen]))
            done += len(chosen)
            yield done


if __name__ == "__main__":
    carry_out(embed)
