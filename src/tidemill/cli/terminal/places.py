"""`-1`, `-2` and so on, where a command takes a reference: `last`, `last-1` and so on.

A word like that is left alone behind `--`, where it is the value of an option, and where the command has an option of
that name.
"""

import re
from collections.abc import Collection, Iterable, Iterator

_PLACE = re.compile(r"-[1-9][0-9]{0,3}", re.ASCII)


def in_words(words: Iterable[str], *, options: Collection[str], with_values: Collection[str]) -> Iterator[str]:
    """The words of a command line. `with_values` are those of the command's options that take the next word."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield word
            yield from rest
        elif _PLACE.fullmatch(word) and word not in options:
            back = int(word[1:]) - 1
            yield f"last-{back}" if back else "last"
        else:
            yield word
            if word in with_values:
                yield from (value for value in [next(rest, None)] if value is not None)
