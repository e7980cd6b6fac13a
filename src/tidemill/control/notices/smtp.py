"""Hands letters to an SMTP server: composes messages, and sends many over one connection.

Headers are made of checked parts, so nothing in a letter can add one. The server's certificate is always checked, and
STARTTLS is required where it is set. Everything has a deadline. The server's answer to one letter is a reply; trouble
with the server or our login is a `MailFault` whose text tells an operator what to do.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from uuid import UUID

import aiosmtplib

from tidemill.core.clock import Instant, as_datetime
from tidemill.core.faults import MailFault
from tidemill.core.notices.mail import Letter, Masthead, render
from tidemill.core.notices.mail.letters import one_line
from tidemill.core.settings.sections.mail import PORTS, MailSettings, SmtpTls

_FAREWELL_S = 2.0
_BROKEN = 0


@dataclass(frozen=True)
class SmtpReply:
    """What a server said of one letter. Code 0: it broke off, or said nothing in time."""

    code: int
    text: str

    @property
    def accepted(self) -> bool:
        return 200 <= self.code < 300

    def __str__(self) -> str:
        return f"{self.code} {self.text}" if self.code else self.text


def compose(letter: Letter, letter_id: UUID, masthead: Masthead, sender: str, now: Instant) -> EmailMessage:
    """The message of a letter. Its Message-ID contains the letter's id, so that duplicates can be recognised."""
    rendered = render(letter, masthead)
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = Address(one_line(masthead.pool), addr_spec=sender)
    message["To"] = Address(addr_spec=letter.recipient)
    message["Subject"] = one_line(rendered.subject)
    message["Date"] = format_datetime(as_datetime(now))
    message["Message-ID"] = f"<{letter_id}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(rendered.text, cte="quoted-printable")
    message.add_alternative(rendered.html, subtype="html", cte="quoted-printable")
    message["Content-Language"] = (
        letter.language.value
    )  # set last: earlier it would become a header of the text part only
    return message


class SmtpConnection:
    """An open connection to the server."""

    def __init__(self, client: aiosmtplib.SMTP, settings: MailSettings) -> None:
        self._client = client
        self._settings = settings

    async def send(self, message: EmailMessage, recipient: str) -> SmtpReply:
        """Hand one letter over."""
        if not self._client.is_connected:
            raise MailFault(f"{_server(self._settings)} closed the connection: letters wait until it takes them again.")
        sender = self._settings.sender or ""
        try:
            async with asyncio.timeout(self._settings.smtp_deadline_s):
                _, reply = await self._client.sendmail(sender, [recipient], message.as_bytes())
        except aiosmtplib.SMTPSenderRefused as refused:
            raise MailFault(_sender_refused(self._settings, refused)) from refused
        except aiosmtplib.SMTPRecipientsRefused as refused:
            first = refused.recipients[0]
            return SmtpReply(first.code, one_line(first.message))
        except aiosmtplib.SMTPResponseException as refused:
            return SmtpReply(refused.code, one_line(refused.message))
        except (aiosmtplib.SMTPException, OSError) as error:
            self._client.close()
            return SmtpReply(_BROKEN, f"{_server(self._settings)} broke off: {_cause(error)}.")
        return SmtpReply(250, one_line(reply))


@asynccontextmanager
async def connected(settings: MailSettings) -> AsyncIterator[SmtpConnection]:
    """Connect, guard the connection, log in. The connection ends with the block."""
    client = _client(settings)
    try:
        async with asyncio.timeout(settings.smtp_deadline_s):
            await client.connect()
    except aiosmtplib.SMTPAuthenticationError as refused:
        raise MailFault(_login_refused(settings, refused)) from refused
    except (aiosmtplib.SMTPException, OSError) as error:
        raise MailFault(_unreachable(settings, error)) from error
    try:
        yield SmtpConnection(client, settings)
    finally:
        await _leave(client)


def _client(settings: MailSettings) -> aiosmtplib.SMTP:
    assert settings.sender, "the settings were checked"
    try:
        context = (
            None if settings.smtp_tls is SmtpTls.NONE else ssl.create_default_context(cafile=settings.smtp_ca_file)
        )
    except OSError as error:
        raise MailFault(f"mail.smtp_ca_file ({settings.smtp_ca_file}) cannot be used: {_cause(error)}.") from error
    return aiosmtplib.SMTP(
        hostname=settings.smtp_host,
        port=_port(settings),
        username=settings.smtp_username,
        password=settings.smtp_password,
        # Not this machine's name: it is private, and looking it up may wait for a name server.
        local_hostname=settings.sender.rpartition("@")[2],
        timeout=settings.smtp_deadline_s,
        use_tls=settings.smtp_tls is SmtpTls.TLS,
        start_tls=settings.smtp_tls is SmtpTls.STARTTLS,
        tls_context=context,
    )


async def _leave(client: aiosmtplib.SMTP) -> None:
    with suppress(aiosmtplib.SMTPException, OSError):
        async with asyncio.timeout(_FAREWELL_S):
            await client.quit()
    client.close()


def _port(settings: MailSettings) -> int:
    return settings.smtp_port or PORTS[settings.smtp_tls]


def _server(settings: MailSettings) -> str:
    return f"The SMTP server {settings.smtp_host}:{_port(settings)}"


def _login_refused(settings: MailSettings, refused: aiosmtplib.SMTPResponseException) -> str:
    reply = f"{refused.code} {one_line(refused.message)}"
    return f"{_server(settings)} does not let us log in ({reply}): check mail.smtp_username and mail.smtp_password."


def _sender_refused(settings: MailSettings, refused: aiosmtplib.SMTPResponseException) -> str:
    reply = f"{refused.code} {one_line(refused.message)}"
    return (
        f"{_server(settings)} does not take letters from {settings.sender} ({reply}): check mail.sender and the login."
    )


def _unreachable(settings: MailSettings, error: Exception) -> str:
    untrusted = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if untrusted:
        why = untrusted.verify_message.rstrip(".")
        return (
            f"{_server(settings)} shows a certificate that is not trusted ({why}): check mail.smtp_host, "
            "or name its authority's certificate in mail.smtp_ca_file."
        )
    return (
        f"{_server(settings)} cannot be used ({_cause(error)}): check mail.smtp_host, mail.smtp_port and mail.smtp_tls."
    )


def _causes(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *_causes(error.__cause__ or error.__context__)]


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return one_line(str(error)).rstrip(".") or type(error).__name__
