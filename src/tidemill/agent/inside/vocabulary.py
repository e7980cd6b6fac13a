"""Turns texts into numbers for a BERT model without capitals: words are cut into the longest pieces of its vocabulary.

A customer's text is only text: what looks like one of the model's own marks, such as [SEP], is read letter by letter.
"""

import unicodedata
from collections.abc import Iterator, Sequence

WORD_MAX = 100
UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Each of these is a word by itself. The ranges are those that the model was trained with."""

_UNREAD = {"Cc", "Cf", "Co"}
"""Invisible characters are dropped. One that no standard has yet is a word that the model does not know."""


class Vocabulary:
    """The vocabulary, one piece a line; a piece that goes on inside a word begins with ##."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(lines)}
        self._unknown, self._begin, self._end = (self._numbers[mark] for mark in (UNKNOWN, BEGIN, END))
        self._known: dict[str, list[int]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """A text between the marks of its beginning and its end, at most so many numbers in all."""
        tokens = [self._begin]
        for word in words(text):
            tokens += self._pieces(word)
            if len(tokens) >= most:
                break
        return [*tokens[: most - 1], self._end]

    def _pieces(self, word: str) -> list[int]:
        if word not in self._known:
            self._known[word] = self._cut(word)
        return self._known[word]

    def _cut(self, word: str) -> list[int]:
        """The longest piece first, again and again; a word that cannot be cut whole is unknown."""
        at, pieces = 0, list[int]()
        while at < len(word) <= WORD_MAX:
            ends = range(len(word), at, -1)
            candidates = ((end, ("##" if at else "") + word[at:end]) for end in ends)
            end, piece = next((candidate for candidate in candidates if candidate[1] in self._numbers), (0, ""))
            if not end:
                return [self._unknown]
            pieces.append(self._numbers[piece])
            at = end
        return pieces if len(word) <= WORD_MAX else [self._unknown]


def words(text: str) -> Iterator[str]:
    """Words in small letters without accents; each mark of punctuation and each ideograph is one."""
    bare = unicodedata.normalize("NFD", "".join(map(_cleaned, text)))
    plain = "".join(letter for letter in bare if unicodedata.category(letter) != "Mn").lower()
    return iter("".join(f" {letter} " if _is_punctuation(letter) else letter for letter in plain).split(" "))


def _cleaned(letter: str) -> str:
    if letter not in "\t\n\r" and (letter == "\ufffd" or unicodedata.category(letter) in _UNREAD):
        return ""
    if letter.isspace():
        return " "
    return f" {letter} " if _is_ideograph(ord(letter)) else letter


def _is_ideograph(code: int) -> bool:
    return code >= 0x3400 and any(low <= code <= high for low, high in _IDEOGRAPHS)


def _is_punctuation(letter: str) -> bool:
    """As the model was trained: every ASCII symbol counts, too."""
    return ("!" <= letter <= "~" and not letter.isalnum()) or unicodedata.category(letter).startswith("P")
