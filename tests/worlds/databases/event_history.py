"""What must hold of a history of events, given what the writers know."""

from collections.abc import Iterable, Sequence
from pathlib import Path


def judge(seen: Sequence[str], outputs: Iterable[Path]) -> None:
    """Every acknowledged commit is there, once and in one piece. Each line of an output is one such commit."""
    assert len(seen) == len(set(seen)), "an event was read twice"
    acknowledged = [line.split() for output in outputs for line in output.read_text().splitlines()]
    assert acknowledged
    missing = {word for words in acknowledged for word in words} - set(seen)
    assert not missing, f"acknowledged events were never read: {sorted(missing)[:5]}"
    place = {word: index for index, word in enumerate(seen)}
    for words in acknowledged:
        assert [place[word] for word in words] == list(range(place[words[0]], place[words[0]] + len(words)))
