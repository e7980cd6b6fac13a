"""Chance bound to its subject: the same seed, task and try draw the same, whatever happens to others.

So two runs that differ in one respect differ only where that matters. Each draw is a hash (splitmix64), not the next
number of a sequence.
"""

_MASK = 2**64 - 1
_PER_ATTEMPT = 16

DECLINES, CRASHES, CRASHES_WHEN, STRAGGLES, STRAGGLES_BY, PACE, IS_WRONG, IS_BROKEN = range(8)
"""What is drawn for an attempt, or once for a task."""


def draw(seed: int, task: int, attempt: int, purpose: int) -> float:
    """A number from 0 up to 1."""
    key = (seed * 0x9E3779B97F4A7C15 + ((task << 8) + attempt) * _PER_ATTEMPT + purpose) & _MASK
    key = ((key + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9) & _MASK
    key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) & _MASK
    return ((key ^ (key >> 31)) >> 11) * 2.0**-53
