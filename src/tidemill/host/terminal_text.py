"""How sentences stand in a terminal: they wrap between words, and ids, paths and commands in backticks never break."""

from collections.abc import Iterator


def wrapped(text: str, width: int, *, hanging: int = 0) -> list[str]:
    """Wrap between words; a word that is longer than the width keeps a line to itself, unbroken. What a line begins
    with stands before its further lines, too."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        sentence = paragraph.lstrip(" ")
        begin = paragraph[: len(paragraph) - len(sentence)]
        below = begin + " " * hanging
        current = ""
        for word in _unbroken(sentence, width - len(below)):
            longer = f"{current} {word}" if current else (below if lines else begin) + word
            if current and cells_of(longer) > width:
                lines.append(current)
                longer = below + word
            current = longer
        lines.append(current.rstrip())
    return lines


def cells_of(text: str) -> int:
    """How many columns of a terminal a text takes; East Asian signs take two."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def _unbroken(sentence: str, width: int) -> Iterator[str]:
    """The words of a sentence. A command in backticks is one word, if it fits a line."""
    command: list[str] = []
    for word in sentence.split(" "):
        command.append(word)
        if word.count("`") % 2 == (len(command) > 1):
            yield from _whole_or_words(command, width)
            command = []
    yield from command


def _whole_or_words(words: list[str], width: int) -> list[str]:
    whole = " ".join(words)
    return [whole] if cells_of(whole) <= width else words
