"""A letter as its reader sees it: subject, text, and HTML made from the same words.

Everything that a letter brings is escaped. The HTML is one column with inline styles: it loads nothing, runs nothing,
and tells nobody that it was read; it fits 360 pixels and adapts to a dark screen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from tidemill.core.clock import Instant
from tidemill.core.notices.mail.layout import PAGE, button, code, line, paragraph
from tidemill.core.notices.mail.letters import PARAMETERS, Letter, LetterValue, ParameterForm
from tidemill.core.notices.mail.texts import WORDINGS
from tidemill.core.notices.mail.wording import PluralNumber, Template, Wording, time_text


@dataclass(frozen=True)
class Masthead:
    """The sender of a letter: the pool's name, and the address of its pages."""

    pool: str
    url: str


@dataclass(frozen=True)
class RenderedLetter:
    """What is sent. The subject is one line."""

    subject: str
    text: str
    html: str


def render(letter: Letter, masthead: Masthead) -> RenderedLetter:
    wording = WORDINGS[letter.language]
    template = wording.letters[letter.kind]
    words = _words(letter, masthead, wording)
    subject = template.subject.format(**words)
    footer = wording.footer.format(**words)
    text = "\n\n".join([subject, *_text(template, words), f"--\n{footer}"]) + "\n"
    return RenderedLetter(subject, text, _page(letter, subject, _html(template, words), footer))


def _words(letter: Letter, masthead: Masthead, wording: Wording) -> dict[str, object]:
    forms = PARAMETERS[letter.kind]
    words = {name: _shown(forms[name], value, masthead, wording) for name, value in letter.parameters.items()}
    return {**words, "pool": masthead.pool, "url": masthead.url}


def _shown(form: ParameterForm, value: LetterValue, masthead: Masthead, wording: Wording) -> object:
    match form:
        case ParameterForm.NUMBER:
            return PluralNumber(int(value), wording.plural)
        case ParameterForm.TIME:
            return time_text(wording, Instant(int(value)))
        case ParameterForm.LINK:
            return f"{masthead.url.rstrip('/')}{value}"
        case _:
            return str(value)


def _text(template: Template, words: Mapping[str, object]) -> list[str]:
    return [f"    {words['code']}" if part == "{code}" else part.format(**words) for part in template.paragraphs]


def _html(template: Template, words: Mapping[str, object]) -> list[str]:
    return [_block(part, template, words) for part in template.paragraphs]


def _block(part: str, template: Template, words: Mapping[str, object]) -> str:
    if part == "{link}":
        return button(escape(str(words["link"])), escape(template.button))
    if part == "{code}":
        return code(escape(str(words["code"])))
    return paragraph(escape(part.format(**words)))


def _page(letter: Letter, subject: str, blocks: list[str], footer: str) -> str:
    return PAGE.format(
        language=letter.language.value,
        subject=escape(subject),
        blocks="\n".join(map(line, blocks)),
        footer=escape(footer),
    )
