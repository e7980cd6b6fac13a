"""Letters: every kind in every language, with exactly its parameters, and nothing that a stranger slipped in."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import product
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.accounts.account import Language
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.notices.mail import Letter, LetterKind, Masthead, RetryRules, is_final, is_too_late, next_try, render
from tidemill.core.notices.mail.letters import PARAMETERS, TEXT_MAX, ParameterForm, is_own_path, is_understood
from tidemill.core.notices.mail.texts import WORDINGS
from tidemill.core.notices.mail.wording import Template
from tidemill.core.pace import Backoff

AT = Instant(1_794_796_320 * SECOND)  # 16 November 2026, 02:32 UTC
MASTHEAD = Masthead("The <Mill> & Co", "https://pool.example")
SAMPLES = {
    ParameterForm.LINK: "/account/confirm?token=abc&again=1",
    ParameterForm.CODE: "7K2M-94QX",
    ParameterForm.TEXT: "Firefox on Linux",
    ParameterForm.NUMBER: 3,
    ParameterForm.TIME: AT,
}
EACH = list(product(LetterKind, Language))


def sample(kind: LetterKind, language: Language = Language.ENGLISH, **changed: str | int) -> Letter:
    parameters = {name: SAMPLES[form] for name, form in PARAMETERS[kind].items()}
    return Letter(kind, "ann@example.org", language, {**parameters, **changed})


def parts(template: Template) -> Iterator[str]:
    yield template.subject
    yield from template.paragraphs


def fields(template: Template) -> set[str]:
    return {name for part in parts(template) for _, name, _, _ in Formatter().parse(part) if name is not None}


def test_every_kind_declares_its_parameters() -> None:
    assert set(PARAMETERS) == set(LetterKind)
    assert not {"pool", "url"} & {name for declared in PARAMETERS.values() for name in declared}


def test_every_language_is_there() -> None:
    assert set(WORDINGS) == set(Language)
    assert all(len(set(wording.months)) == 12 for wording in WORDINGS.values())


@pytest.mark.parametrize(("kind", "language"), EACH)
def test_every_letter_uses_exactly_its_parameters(kind: LetterKind, language: Language) -> None:
    template = WORDINGS[language].letters[kind]
    assert fields(template) - {"pool"} == set(PARAMETERS[kind])
    assert "{pool}" in template.subject
    assert bool(template.button) == ("link" in PARAMETERS[kind])
    assert template.paragraphs.count("{link}") == ("link" in PARAMETERS[kind])
    assert template.paragraphs.count("{code}") == ("code" in PARAMETERS[kind])


@pytest.mark.parametrize(("kind", "language"), EACH)
def test_every_language_says_the_same_in_the_same_order(kind: LetterKind, language: Language) -> None:
    ours, english = (WORDINGS[one].letters[kind].paragraphs for one in (language, Language.ENGLISH))
    assert len(ours) == len(english)
    assert [set(re.findall(r"\{(\w+)", part)) - {"pool"} for part in ours] == [
        set(re.findall(r"\{(\w+)", part)) - {"pool"} for part in english
    ]


@pytest.mark.parametrize(("kind", "language"), EACH)
def test_every_letter_shows_all_it_was_given(kind: LetterKind, language: Language) -> None:
    rendered = render(sample(kind, language), MASTHEAD)
    for name, form in PARAMETERS[kind].items():
        shown = {
            ParameterForm.LINK: "https://pool.example/account/confirm?token=abc&again=1",
            ParameterForm.TIME: "02:32",
        }
        assert str(shown.get(form, SAMPLES[form])) in rendered.text, name
    assert "{" not in rendered.subject + rendered.text
    assert "\n" not in rendered.subject


@pytest.mark.parametrize("kind", LetterKind)
def test_russian_is_in_russian_and_chinese_in_chinese(kind: LetterKind) -> None:
    names = r"\{[^}]*\}|UTC|IP"
    for language, foreign in [(Language.RUSSIAN, "A-Za-z"), (Language.CHINESE, "A-Za-z,.!?;:")]:
        template = WORDINGS[language].letters[kind]
        for part in (*parts(template), template.button):
            assert not re.search(f"[{foreign}]", re.sub(names, "", part)), part
    english = WORDINGS[Language.ENGLISH].letters[kind]
    assert all(part.replace("“", "").replace("”", "").isascii() for part in parts(english))


@pytest.mark.parametrize(
    ("number", "english", "russian"),
    [
        (0, "0 recovery codes left", "осталось 0 кодов"),
        (1, "1 recovery code left", "остался 1 код "),
        (2, "2 recovery codes left", "осталось 2 кода"),
        (5, "5 recovery codes left", "осталось 5 кодов"),
        (11, "11 recovery codes left", "осталось 11 кодов"),
        (12, "12 recovery codes left", "осталось 12 кодов"),
        (21, "21 recovery codes left", "остался 21 код "),
        (22, "22 recovery codes left", "осталось 22 кода"),
        (111, "111 recovery codes left", "осталось 111 кодов"),
    ],
)
def test_words_agree_with_numbers(number: int, english: str, russian: str) -> None:
    for language, expected in [(Language.ENGLISH, english), (Language.RUSSIAN, russian)]:
        assert expected in render(sample(LetterKind.RECOVERY_CODE_USED, language, left=number), MASTHEAD).text
    chinese = render(sample(LetterKind.RECOVERY_CODE_USED, Language.CHINESE, left=number), MASTHEAD).text
    assert f"还剩 {number} 个恢复码" in chinese


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        (Language.ENGLISH, "16 November 2026, 02:32 UTC"),
        (Language.RUSSIAN, "16 ноября 2026 г. в 02:32 UTC"),
        (Language.CHINESE, "2026 年 11 月 16 日 02:32（UTC）"),
    ],
)
def test_times_are_in_utc_and_in_the_readers_way(language: Language, expected: str) -> None:
    assert expected in render(sample(LetterKind.ACCOUNT_DELETED, language), MASTHEAD).text


class Tags(HTMLParser):
    """The tags of a page, its attributes, and whether every tag is closed in order."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


ALLOWED = {"html", "head", "meta", "title", "style", "body", "table", "tr", "td", "h1", "p", "a"}
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=https://evil.example/x.png onerror=alert(1)>',
    "</p></td></tr></table><form action=//evil.example>",
    "{pool} {0.__class__} {link}",
    "a\r\nBcc: everyone@example.org\r\n\r\nbody",
    "one\u2028two\u2029three\x85four\x0bfive\x00six",
    "\u202egnp.exe\u2066",
    "&#60;b&#62;",
]


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize(("kind", "language"), EACH)
def test_nothing_that_comes_in_becomes_markup_or_a_line(kind: LetterKind, language: Language, evil: str) -> None:
    changed = {
        name: evil for name, form in PARAMETERS[kind].items() if form in (ParameterForm.TEXT, ParameterForm.CODE)
    }
    rendered = render(sample(kind, language, **changed), MASTHEAD)
    tags = Tags(rendered.html)
    assert {tag for tag, _ in tags.found} <= ALLOWED
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on") or name == "src"]
    links = [attributes["href"] for tag, attributes in tags.found if tag == "a"]
    assert links == [f"https://pool.example{SAMPLES[ParameterForm.LINK]}"] * ("link" in PARAMETERS[kind])
    assert len(rendered.subject.splitlines()) == 1
    assert not [line for line in rendered.text.splitlines() if line.startswith("Bcc:")]
    if changed:
        assert not re.search("[\u2028\u2029\x85\x0b\x00\u202e\u2066]", rendered.text + rendered.html)


@given(st.text(max_size=400))
def test_any_text_becomes_one_short_printable_line(text: str) -> None:
    name = sample(LetterKind.KEY_MADE, name=text).parameters["name"]
    assert isinstance(name, str)
    assert name.isprintable()
    assert len(name) <= TEXT_MAX


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "javascript:alert(1)",
        "evil",
        "",
        "/a b",
        "/a\nb",
        "/\u202e",
        "@evil.example/",
        ".evil.example/",
    ],
)
def test_a_letter_leads_nowhere_but_to_the_pool(link: str) -> None:
    assert not is_own_path(link)
    with pytest.raises(AssertionError):
        sample(LetterKind.CONFIRM_ADDRESS, link=link)


@pytest.mark.parametrize(
    "recipient",
    [
        "ann@example.org\r\nRCPT TO:<bob@example.org>",
        "ann@example.org,bob@example.org",
        "Ann <ann@example.org>",
        "ann@example.org ",
        "ann",
        "",
        "аnn@example.org",
        "a" * 65 + "@example.org",
    ],
)
def test_a_letter_goes_to_exactly_one_mailbox(recipient: str) -> None:
    with pytest.raises(AssertionError):
        Letter(LetterKind.NO_ACCOUNT, recipient, Language.ENGLISH, {})


def test_a_letter_takes_no_other_parameters_than_declared() -> None:
    for parameters in ({}, {"link": "/a"}, {"link": "/a", "code": "1", "more": "x"}):
        with pytest.raises(AssertionError):
            Letter(LetterKind.CONFIRM_ADDRESS, "ann@example.org", Language.ENGLISH, parameters)
        assert not is_understood("confirm_address", parameters)
    assert is_understood("confirm_address", {"link": "/a", "code": "1"})
    assert not is_understood("something_newer", {})


@pytest.mark.parametrize(("kind", "language"), EACH)
def test_the_html_loads_nothing_and_tells_nobody(kind: LetterKind, language: Language) -> None:
    page = render(sample(kind, language), MASTHEAD).html
    assert page.count("https://") == page.count("https://pool.example")
    assert not re.search(r"url\(|@import|<script|<img|<link|http-equiv", page)
    assert f'<html lang="{language.value}">' in page
    assert "The &lt;Mill&gt; &amp; Co" in page


@pytest.mark.parametrize(
    ("code", "answer", "final"),
    [
        (550, "5.1.1 No such user", True),
        (553, "Mailbox name not allowed", True),
        (554, "5.6.0 Content rejected", True),
        (450, "4.2.0 Greylisted", False),
        (421, "Closing", False),
        (0, "broke off", False),
        (550, "5.7.1 Relaying denied", False),
        (530, "5.7.0 Authentication required", False),
        (535, "Authentication failed", False),
        (550, "User 5.7.1 unknown", True),
    ],
)
def test_only_what_concerns_the_letter_itself_is_final(code: int, answer: str, final: bool) -> None:
    assert is_final(code, answer) is final


def test_waits_double_up_to_six_hours_and_the_last_try_is_at_the_end() -> None:
    rules = RetryRules(Backoff(60, 6 * 3600), 72 * HOUR)
    now, waits = AT, []
    while not is_too_late(rules, tried_since=AT, now=now):
        later = next_try(rules, tried_since=AT, tries=len(waits) + 1, now=now)
        waits.append((later - now) // SECOND)
        now = later
    assert waits[:10] == [60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600]
    assert now == AT + 72 * HOUR
    assert len(waits) < 25
