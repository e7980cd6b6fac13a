"""Whether a screen shows what a page prints.

Every line of the page stands on the screen, in that order; other lines may stand between. Two words are alike if they
are the same, or if each has a digit: that is how ids, times, amounts and nodes differ from one reader to the next.
Words are divided by blanks. `…` at the end of a word stands for the rest of the word, and a line of its own for any
lines; at the end of a line it stands for the rest of the line, if there is one.
"""

import re

_DIGIT = re.compile(r"\d")
_LEFT_OUT = "…"


def first_missing(printed: str, screen: str) -> str | None:
    """The first line of the page that the screen does not show after the ones before it."""
    shown = iter(screen.splitlines())
    for line in printed.splitlines():
        if line.strip() in ("", _LEFT_OUT):
            continue
        if not any(is_alike(line, one) for one in shown):
            return line
    return None


def is_alike(printed: str, shown: str) -> bool:
    expected, found = printed.split(), shown.split()
    if expected[-1].endswith(_LEFT_OUT):
        expected = expected[:-1] if expected[-1] == _LEFT_OUT else expected
        found = found[: len(expected)]
    return len(expected) == len(found) and all(map(_alike_words, expected, found))


def _alike_words(expected: str, found: str) -> bool:
    if expected.endswith(_LEFT_OUT) and found.startswith(expected.removesuffix(_LEFT_OUT)):
        return True
    return expected == found or bool(_DIGIT.search(expected) and _DIGIT.search(found))
