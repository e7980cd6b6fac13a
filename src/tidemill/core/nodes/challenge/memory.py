"""Memory filled by a derivation that needs all of it, page after page. The same code fills it and checks a page.

Pages are made in steps of `width`. A page is made of its place, the seed, the page above it (same column, one step
earlier) and eight parents. The page above chooses them among all earlier pages, near ones as often as far ones; so
nobody knows which pages will be needed before making them, and the way back from a page is long. Who has thrown pages
away has to make, for a missing one, the missing ones among its nine ancestors, and so on. A few that were chosen well
cost little; when half are missing it costs more than filling all the memory anew. docs/adr/0018 has the figures.

Arithmetic is of 64 bits and wraps. The array module is an argument: numpy on a CPU, CuPy on a GPU.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from tidemill.core.nodes.challenge.tasks import PAGE_WORDS, PARENTS, MemoryTask

_GOLDEN = 0x9E3779B97F4A7C15
_ODD = 0xD6E8FEB86659FD93
_OTHER_ODD = 0xBF58476D1CE4E5B9
_WORD = 2**64

HARDENING = (
    "unsigned long long w = word; "
    "for (long long i = 0; i < rounds; ++i) { w *= 0xBF58476D1CE4E5B9ULL; w ^= w >> 31; } "
    "out = w;"
)
"""The loop of `hardened` in C, as CuPy's kernels want it."""


def filling(task: MemoryTask, pages: Any, xp: Any) -> Iterator[None]:
    """Fill the memory, which has one row a page; step by step, so that the caller can stop."""
    columns = xp.arange(task.width, dtype=xp.uint64)
    pages[: task.width] = first_pages(task, columns, xp)
    for step in range(1, task.steps):
        yield
        first = step * task.width
        above = pages[first - task.width : first]
        chosen = parents_of(task, step, above, xp)
        made = above ^ _keys(task, columns + _u64(first, xp), xp)
        for parent in range(PARENTS):
            _mix(made, pages[chosen[:, parent]], xp)
        pages[first : first + task.width] = _finished(task, made, above, xp)


def first_pages(task: MemoryTask, places: Any, xp: Any) -> Any:
    """Pages of the first step, which follow from the seed alone."""
    numbers = places[:, None] * _u64(PAGE_WORDS, xp) + xp.arange(PAGE_WORDS, dtype=xp.uint64)[None, :]
    return scrambled((numbers + _u64(1, xp)) * _u64(_GOLDEN, xp) + _u64(task.seed, xp), xp)


def parents_of(task: MemoryTask, step: int, above: Any, xp: Any) -> Any:
    """Which pages a step is made of, by the pages above it: near ones as often as far ones."""
    chooses = above[:, :PARENTS]
    reach = (_u64(1, xp) << (chooses % _u64(step.bit_length(), xp))) - _u64(1, xp)
    back = ((chooses >> _u64(8, xp)) & reach) + _u64(1, xp)
    columns = (chooses >> _u64(40, xp)) % _u64(task.width, xp)
    return ((_u64(step, xp) - back) * _u64(task.width, xp) + columns).astype(xp.int64)


def pages_of(task: MemoryTask, places: Sequence[int], above: Any, parents: Any) -> Any:
    """Pages, made of the pages above them and their parents (page, parent, word): what openings are compared with."""
    made = above ^ _keys(task, np.array(places, dtype=np.uint64), np)
    for parent in range(PARENTS):
        _mix(made, parents[:, parent], np)
    return _finished(task, made, above, np)


def ancestors(task: MemoryTask, place: int, above: Any) -> list[int]:
    """The places that an opening of a page shows beside it, given the page above; none for the first step."""
    step = place // task.width
    if step == 0:
        return []
    return [place - task.width, *(int(parent) for parent in parents_of(task, step, above[None, :], np)[0])]


def scrambled(words: Any, xp: Any) -> Any:
    """Every word, with each of its bits depending on all of them."""
    words = (words ^ (words >> _u64(30, xp))) * _u64(_OTHER_ODD, xp)
    return words ^ (words >> _u64(27, xp))


def _keys(task: MemoryTask, places: Any, xp: Any) -> Any:
    """What makes a page another one in every task and at every place, so that no memory can be shown twice."""
    return scrambled((places + _u64(1, xp)) * _u64(_GOLDEN, xp) ^ _u64(task.seed, xp), xp)[:, None]


def _mix(made: Any, parent: Any, xp: Any) -> None:
    made ^= parent
    made *= _u64(_ODD, xp)
    made ^= made >> _u64(29, xp)


def _finished(task: MemoryTask, made: Any, above: Any, xp: Any) -> Any:
    """Neighbouring words meet, each is hardened, and the page above is added, so that nothing can be undone."""
    for shift in (1, 3, 7):
        made += xp.roll(made, shift, axis=1)
        made ^= made >> _u64(31, xp)
    return hardened(made, task.rounds, xp) ^ above


def hardened(words: Any, rounds: int, xp: Any) -> Any:
    """Words after so many rounds, each of which needs the one before. A GPU does them all in one kernel: done one by
    one they would cost us thirty times what they cost a cheat, and it is the cheat's time that counts."""
    if hasattr(xp, "ElementwiseKernel"):
        return _kernel(xp)(words, rounds)
    for _ in range(rounds):
        words *= _u64(_OTHER_ODD, xp)
        words ^= words >> _u64(31, xp)
    return words


@cache
def _kernel(xp: Any) -> Any:
    return xp.ElementwiseKernel("uint64 word, int64 rounds", "uint64 out", HARDENING, "hardened")


def _u64(number: int, xp: Any) -> Any:
    return xp.uint64(number % _WORD)
