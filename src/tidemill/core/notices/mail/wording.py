"""What a language consists of: the text of every letter, its plural forms, and how it writes a time.

In a text, `{name}` stands for a parameter and `{pool}` for the pool's name; `{left:code|codes}` chooses the form of a
word that goes with a number. A paragraph that is only `{link}` becomes a button, one that is only `{code}` is large.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidemill.core.clock import Instant, as_datetime
from tidemill.core.notices.mail.letters import LetterKind


@dataclass(frozen=True)
class Template:
    """The text of one letter. `button` says what its link is for."""

    subject: str
    paragraphs: tuple[str, ...]
    button: str = ""


@dataclass(frozen=True)
class Wording:
    """One language."""

    letters: Mapping[LetterKind, Template]
    footer: str
    months: tuple[str, ...]
    time: str
    """With `{day}`, `{month}` (its name), `{year}` and `{clock}`."""
    plural: Callable[[int], int]
    """Which of a word's forms goes with a number."""


@dataclass(frozen=True)
class PluralNumber:
    """A number in a text: `{left}` writes it, `{left:code|codes}` the word that goes with it."""

    number: int
    plural: Callable[[int], int]

    def __format__(self, forms: str) -> str:
        return forms.split("|")[self.plural(self.number)] if forms else str(self.number)


def time_text(wording: Wording, at: Instant) -> str:
    moment = as_datetime(at)
    month = wording.months[moment.month - 1]
    return wording.time.format(day=moment.day, month=month, year=moment.year, clock=f"{moment:%H:%M}")
