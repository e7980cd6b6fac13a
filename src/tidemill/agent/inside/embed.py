"""Texts become embeddings, a window of texts at a time, so that memory does not grow with their number."""

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


def embed(told: dict[str, Any], progress: ProgressMeter) -> None:
    count = told["work"].get("count") or len(told["work"]["texts"])
    model = MiniLm(told["weights"])
    with open(told["vocabulary"], encoding="utf-8", newline="\n") as file:
        tokens = Vocabulary(file.read().split("\n"))
    waiting = texts(told, count)
    with open("out/embeddings.npy", "wb") as out:
        out.write(header_of(MatrixLayout("float32", count, WIDTH)))
        for first in range(0, count, WINDOW):
            numbers = [tokens.numbers(text, told["tokens_max"]) for text in islice(waiting, WINDOW)]
            rows = np.empty((len(numbers), WIDTH), dtype="<f4")
            for done in _filling(model, numbers, rows):
                progress.at(first + done, count)
            out.write(rows.data)
        next(waiting, None)  # asks for the texts that should not be there


def texts(told: dict[str, Any], count: int) -> Iterator[str]:
    """The texts, each as it comes. An input with more or fewer than was said is refused."""
    if "count" not in told["work"]:
        yield from told["work"]["texts"]
        return
    with open(told["inputs"]["texts"], "rb") as file:
        for number in range(count):
            yield _text(file.readline(6 * told["text_max_bytes"] + 64), number, told["text_max_bytes"])
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
    """Fill the rows, texts of one length together; tells how many are done."""
    places = defaultdict(list)
    for place, tokens in enumerate(numbers):
        places[len(tokens)].append(place)
    done = 0
    for length, alike in sorted(places.items()):
        at_once = max(1, TOKENS_AT_ONCE // length)
        for first in range(0, len(alike), at_once):
            chosen = alike[first : first + at_once]
            rows[chosen] = model.embeddings(np.array([numbers[place] for place in chosen]))
            done += len(chosen)
            yield done


if __name__ == "__main__":
    carry_out(embed)
