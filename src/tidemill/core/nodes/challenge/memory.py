"""Memory filled by a derivation that needs all of it, page after page. The same code fills it and checks a page.

Pages are made in steps of `width`. A page is made of its position, the seed, the page above it (same column, one step
earlier) and eight parents. The page above chooses them among all earlier pages, near ones as often as far ones; so
nobody knows which pages will be needed before making them, and the way back from a page is long. A node that discarded
pages must, for a missing one, remake the missing ones among its nine ancestors, and so on. A few well-chosen ones cost
little; when half are missing it costs more than filling all the memory anew. docs/adr/0018 has the figures.

Arithmetic is of 64 bits and wraps. The array module is an argument: numpy on a CPU, CuPy on a GPU.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from tidemill.core.nodes.challenge.tasks import PAGE_WORDS, PARENTS, MemoryTask

_GOLDEN = 0x9E3779B97F4A7C15
_ODD = 0xD6E8FEB86659FD93
_OTHER_ODD = 0xBF58476D1CE4E5B9
_WORD = 2**64
_SLAB_COLUMNS = 64
"""Fewer columns than this take a core longer to begin than to fill."""

HARDENING = (
    "unsigned long long w = word; "
    "for (long long i = 0; i < rounds; ++i) { w *= 0xBF58476D1CE4E5B9ULL; w ^= w >> 31; } "
    "out = w;"
)
"""The loop of `hardened` in C, as CuPy's kernels need it."""


def filling(
    task: MemoryTask, pages: Any, xp: Any, cores: int = 1, each: Callable[..., Iterable[None]] = map
) -> Iterator[None]:
    """Fill the memory, which has one row a page; step by step, so that the caller can stop. The columns of a step need
    only earlier steps, so `each`, which is called as `map` is, may have several cores fill them at once."""
    slabs = _slabs(task, cores)
    pages[: task.width] = first_pages(task, xp.arange(task.width, dtype=xp.uint64), xp)
    for step in range(1, task.steps):
        yield
        for _ in each(partial(_fill_slab, task, pages, xp, step * task.width), slabs):
            pass


def first_pages(task: MemoryTask, positions: Any, xp: Any) -> Any:
    """Pages of the first step, which follow from the seed alone."""
    numbers = positions[:, None] * _u64(PAGE_WORDS, xp) + xp.arange(PAGE_WORDS, dtype=xp.uint64)[None, :]
    return scrambled((numbers + _u64(1, xp)) * _u64(_GOLDEN, xp) + _u64(task.seed, xp), xp)


def parents_of(task: MemoryTask, step: int, above: Any, xp: Any) -> Any:
    """The parents of a step's pages, chosen by the pages above them: near ones as often as far ones."""
    chooses = above[:, :PARENTS]
    reach = (_u64(1, xp) << (chooses % _u64(step.bit_length(), xp))) - _u64(1, xp)
    back = ((chooses >> _u64(8, xp)) & reach) + _u64(1, xp)
    columns = (chooses >> _u64(40, xp)) % _u64(task.width, xp)
    return ((_u64(step, xp) - back) * _u64(task.width, xp) + columns).astype(xp.int64)


def pages_of(task: MemoryTask, positions: Sequence[int], above: Any, parents: Any) -> Any:
    """Pages, made of the pages above them and their parents (page, parent, word), to compare with openings."""
    mixed = above ^ _keys(task, np.array(positions, dtype=np.uint64), np)
    for parent in range(PARENTS):
        _mix(mixed, parents[:, parent], np)
    return _finished(task, mixed, above, np)


def ancestors(task: MemoryTask, position: int, above: Any) -> list[int]:
    """The positions that an opening of a page shows with it, given the page above; none for the first step."""
    step = position // task.width
    if step == 0:
        return []
    return [position - task.width, *(int(parent) for parent in parents_of(task, step, above[None, :], np)[0])]


def scrambled(words: Any, xp: Any) -> Any:
    """Every word, with each of its bits depending on all of them."""
    words = (words ^ (words >> _u64(30, xp))) * _u64(_OTHER_ODD, xp)
    return words ^ (words >> _u64(27, xp))


def _slabs(task: MemoryTask, cores: int) -> list[slice]:
    """The columns of a step in as many parts as there are cores, unless they would be too small to be worth it."""
    count = max(1, min(cores, task.width // _SLAB_COLUMNS))
    edges = [task.width * number // count for number in range(count + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


def _fill_slab(task: MemoryTask, pages: Any, xp: Any, first: int, slab: slice) -> None:
    above = pages[first - task.width + slab.start : first - task.width + slab.stop]
    chosen = parents_of(task, first // task.width, above, xp)
    mixed = above ^ _keys(task, xp.arange(first + slab.start, first + slab.stop, dtype=xp.uint64), xp)
    for parent in range(PARENTS):
        _mix(mixed, pages[chosen[:, parent]], xp)
    pages[first + slab.start : first + slab.stop] = _finished(task, mixed, above, xp)


def _keys(task: MemoryTask, positions: Any, xp: Any) -> Any:
    """Makes a page different in every task and at every position, so that no memory can be shown twice."""
    return scrambled((positions + _u64(1, xp)) * _u64(_GOLDEN, xp) ^ _u64(task.seed, xp), xp)[:, None]


def _mix(mixed: Any, parent: Any, xp: Any) -> None:
    mixed ^= parent
    mixed *= _u64(_ODD, xp)
    mixed ^= mixed >> _u64(29, xp)


def _finished(task: MemoryTask, mixed: Any, above: Any, xp: Any) -> Any:
    """Mix neighbouring words, harden each, and add the page above, so that nothing can be undone."""
    for shift in (1, 3, 7):
        mixed += xp.roll(mixed, shift, axis=1)
        mixed ^= mixed >> _u64(31, xp)
    return hardened(mixed, task.rounds, xp) ^ above


def hardened(words: Any, rounds: int, xp: Any) -> Any:
    """Words after so many rounds, each of which needs the one before. A GPU does them all in one kernel: one by one
    they would cost us thirty times what they cost a cheat, and it is the cheat's time that counts."""
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
