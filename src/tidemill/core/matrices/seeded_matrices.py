"""Matrices drawn from a seed: the same bits on every machine, and any rows without those before them.

Entry number p of a matrix depends only on the seed, the matrix's number and p. Arithmetic is of 64 bits and wraps.
Entries of int8 take all values equally often; those of float32 are whole multiples of 2^−23 in [−1, 1), so exact.
"""

from typing import Any

import numpy as np

LEFT, RIGHT = 0, 1
"""The numbers of the two factors of a product."""

SEED_MAX = 2**53 - 1
"""The largest whole number that every reader of JSON reads exactly."""

_PER_WORD = {"int8": 8, "float32": 2}
_GOLDEN = 0x9E3779B97F4A7C15
_ODD = 0xBF58476D1CE4E5B9
_OTHER_ODD = 0x94D049BB133111EB
_WORD = 2**64


def drawn_rows(seed: int, number: int, element: str, columns: int, rows: range) -> Any:
    """Some rows of a matrix with so many columns, as an array of `int8` or `float32`."""
    first, stop = rows.start * columns, rows.stop * columns
    per_word = _PER_WORD[element]
    words = drawn_words(seed, number, range(first // per_word, -(-stop // per_word)))
    skipped = first - first // per_word * per_word
    entries = _int8(words) if element == "int8" else _float32(words)
    return entries[skipped : skipped + stop - first].reshape(len(rows), columns)


def drawn_words(seed: int, number: int, positions: range) -> Any:
    """Random words of 64 bits, by their positions."""
    base = np.uint64((seed * _ODD + (number + 1) * _GOLDEN) % _WORD)
    counts = np.arange(positions.start, positions.stop, dtype=np.uint64)
    return mix(counts * np.uint64(_GOLDEN) + mix(np.array([base]))[0])


def mix(words: Any) -> Any:
    """Scramble each word by itself, so that its bits tell nothing of its neighbours'. Changes the words in place."""
    for shift, odd in ((30, _ODD), (27, _OTHER_ODD)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(odd)
    words ^= words >> np.uint64(31)
    return words


def _int8(words: Any) -> Any:
    return words.astype("<u8", copy=False).view(np.int8)


def _float32(words: Any) -> Any:
    halves = words.astype("<u8", copy=False).view("<u4") >> np.uint32(8)
    return (halves.astype(np.int32) - np.int32(2**23)).astype(np.float32) * np.float32(2**-23)
