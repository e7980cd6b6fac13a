"""A letter as a message, and the settings that say how it leaves: no header can be slipped in, no secret slips out."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.notices.test_mail_texts import AT, EACH, EVIL, sample
from tidemill.control.notices.smtp import SmtpReply, compose
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address, parse_address
from tidemill.core.faults import SettingsFault
from tidemill.core.notices.mail import Letter, LetterKind, Masthead
from tidemill.core.settings import Settings, build, rows
from tidemill.core.settings.process_addresses import public_url

ID = UUID("0190a000-0000-7000-8000-000000000001")
HEADERS = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Language"]
LOCAL = st.text("abcXYZ019!#$%&'*+/=?^_`{|}~-", min_size=1, max_size=20)


def read_back(message: EmailMessage) -> EmailMessage:
    content = message.as_bytes()
    assert content.isascii(), "any server can take it"
    assert max(map(len, content.split(b"\r\n"))) <= 998
    parsed = message_from_bytes(content, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


@pytest.mark.parametrize(("kind", "language"), EACH)
def test_every_letter_is_a_message_with_the_same_words_twice(kind: LetterKind, language: Language) -> None:
    masthead = Masthead("Мельница", "https://pool.example")
    message = read_back(compose(sample(kind, language), ID, masthead, "pool@pool.example", AT))
    assert [name for name in message if name not in ("MIME-Version", "Content-Type")] == HEADERS
    assert message["From"].addresses[0].display_name == "Мельница"
    assert message["From"].addresses[0].addr_spec == "pool@pool.example"
    assert message["Message-ID"] == f"<{ID}@pool.example>"
    assert message["Date"].datetime.isoformat() == "2026-11-16T02:32:00+00:00"
    assert message["Auto-Submitted"] == "auto-generated"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert "Мельница" in message["Subject"]


@pytest.mark.parametrize("evil", EVIL)
def test_a_pool_with_a_strange_name_adds_no_header(evil: str) -> None:
    message = compose(sample(LetterKind.TEST), ID, Masthead(evil, "https://pool.example"), "pool@pool.example", AT)
    parsed = read_back(message)
    assert [name for name in parsed if name not in ("MIME-Version", "Content-Type")] == HEADERS
    assert [address.addr_spec for address in parsed["To"].addresses] == ["ann@example.org"]
    assert [address.addr_spec for address in parsed["From"].addresses] == ["pool@pool.example"]


@given(local=LOCAL, name=st.text(max_size=60))
def test_a_letter_goes_to_its_recipient_whatever_the_address_and_the_pools_name(local: str, name: str) -> None:
    address = parse_address(f"{local}@example.org")
    assert isinstance(address, Address)
    letter = Letter(LetterKind.NO_ACCOUNT, address.text, Language.RUSSIAN, {})
    parsed = read_back(compose(letter, ID, Masthead(name or "x", "https://pool.example"), "pool@pool.example", AT))
    assert [one.addr_spec for one in parsed["To"].addresses] == [address.text]
    assert [name for name in parsed if name not in ("MIME-Version", "Content-Type")] == HEADERS


@pytest.mark.parametrize(("code", "accepted"), [(250, True), (251, True), (354, False), (450, False), (0, False)])
def test_only_a_clear_yes_is_a_yes(code: int, accepted: bool) -> None:
    assert SmtpReply(code, "said").accepted is accepted


def settings(**mail: object) -> Settings:
    return build(toml={"mail": mail}, toml_name="f", environment={}, home=Path("/srv/tidemill")).settings


@pytest.mark.parametrize(
    ("mail", "told"),
    [
        ({"smtp_host": "smtp.example.com"}, "mail.smtp_host needs mail.sender"),
        ({"smtp_username": "pool"}, "must be set together"),
        ({"smtp_password": "open sesame"}, "must be set together"),
        ({"smtp_host": "smtp.example.com", "sender": "p@example.com", "smtp_tls": "none"}, "only inside TLS"),
        ({"smtp_tls": "maybe"}, "starttls, tls, none"),
        ({"sender": "pool@example.com\nBcc: eve@example.org"}, "mail.sender"),
        ({"sender": "Pool <pool@example.com>"}, "mail.sender"),
        ({"pool_name": "a\nb"}, "mail.pool_name"),
        ({"public_url": "javascript:alert(1)"}, "mail.public_url"),
        ({"retry_first_s": "7h"}, "mail.retry_first_s must be at most mail.retry_most_s"),
        ({"outbox_keep_s": "31d"}, "mail.outbox_keep_s must be at most mail.keep_s"),
    ],
)
def test_settings_that_cannot_work_or_would_leak_are_refused(mail: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsFault, match=told) as caught:
        settings(**mail)
    assert "open sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "mail",
    [
        {"smtp_host": "127.0.0.1", "sender": "p@example.com", "smtp_tls": "none"},
        {"smtp_host": "localhost", "sender": "p@example.com", "smtp_tls": "none"},
        {"smtp_host": "smtp.lan", "sender": "p@example.com", "smtp_tls": "none", "smtp_plain_allowed": True},
        {"smtp_host": "smtp.example.com", "sender": "p@example.com", "smtp_tls": "tls"},
    ],
)
def test_settings_that_are_safe_are_taken(mail: dict[str, object]) -> None:
    assert settings(**mail).mail.sender == "p@example.com"


def test_the_password_is_shown_nowhere() -> None:
    toml = {"mail": {"smtp_username": "pool", "smtp_password": "open sesame"}}
    built = build(toml=toml, toml_name="f", environment={}, home=Path("/srv/tidemill"))
    assert "open sesame" not in repr(built) + str(rows(built))


@pytest.mark.parametrize(
    ("mail", "expected"),
    [
        ({}, "http://127.0.0.1:8420"),
        ({"public_url": "https://pool.example.com/"}, "https://pool.example.com"),
        ({"public_url": "https://example.com/pool"}, "https://example.com/pool"),
    ],
)
def test_links_lead_to_the_public_url_or_to_the_process_itself(mail: dict[str, object], expected: str) -> None:
    assert public_url(settings(**mail)) == expected
