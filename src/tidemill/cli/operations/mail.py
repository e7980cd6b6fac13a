"""`tidemill mail`: the pool's letters, on the machine that has its database and its master key.

Without an SMTP server, letters are read here. Their text is shown here and nowhere else.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.client.local_references import meant
from tidemill.cli.client.references import BY_ID
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import parse_address
from tidemill.core.clock import Instant, as_datetime
from tidemill.core.faults import MailFault
from tidemill.core.ids import Ids, short_id
from tidemill.core.notices.mail import Letter, LetterKind, LetterRefusal
from tidemill.core.references import ObjectKind
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.notices import mail as store
from tidemill.store.notices.mail import StoredLetter

if TYPE_CHECKING:
    from email.message import EmailMessage

    from tidemill.control.notices.smtp import SmtpReply

app = CommandGroup("This machine's letters: list, read, send again, test.")

Which = Annotated[str, typer.Argument(metavar="LETTER", help=f"The letter: {BY_ID}.")]

_LIMITS = DatabaseLimits(connections=2, statement_s=30, lock_s=10)
_COLUMNS = ("letter", "state", "written", "to", "kind", "tries", "what was wrong")
_SHOWN_HEADERS = ("From", "To", "Subject", "Date", "Message-ID")
_NO_SENDER = "outbox@localhost.localdomain"
"""The sender in the headers of letters that nobody sends."""


@app.callback(invoke_without_command=True)
def newest(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="List at most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the newest letters, or do one of these to a letter."""
    if context.invoked_subcommand is not None:
        return
    letters = asyncio.run(_newest(limit))
    if as_json:
        print_json([_fields(letter) for letter in letters])
    else:
        print_table(_COLUMNS, [_row(letter) for letter in letters])


@app.command()
def show(letter: Which, as_json: AsJson = False) -> None:
    """Read a letter that was not sent: its headers and its text, with links and codes."""
    stored, message = asyncio.run(_read(letter))
    text = "" if message is None else _text(message)
    if as_json:
        headers = {} if message is None else {name: str(message[name]) for name in _SHOWN_HEADERS}
        print_json({**_fields(stored), "headers": headers, "text": text})
    elif message is None:
        raise CommandRefused(f"This letter ({stored.kind} to {stored.recipient}) is {stored.state} and was emptied.")
    else:
        for name in _SHOWN_HEADERS:
            print_line(f"{name}: {message[name]}")
        print_line("\n" + text.rstrip("\n"))


@app.command()
def retry(letter: Which, as_json: AsJson = False) -> None:
    """Have a letter tried again that has failed, or that lies in the outbox."""
    letter_id = asyncio.run(_retry(letter))
    report("The letter waits to be sent again.", {"id": str(letter_id), "state": "waiting"}, as_json=as_json)


@app.command("test")
def send_test(
    address: Annotated[str, typer.Argument(help="Where to send it.")],
    as_json: AsJson = False,
) -> None:
    """Send a test letter now, and tell what the SMTP server said."""
    settings = load_configuration().settings
    if settings.mail.smtp_host is None:
        raise CommandRefused(
            "No SMTP server is set: name it in mail.smtp_host, and the address to write from in mail.sender."
        )
    recipient = parse_address(address)
    if isinstance(recipient, Refusal):
        raise CommandRefused(recipient.sentence)
    reply = asyncio.run(_test(settings, recipient.text))
    if not reply.accepted:
        raise MailFault(f"{settings.mail.smtp_host} did not take the letter: it said “{reply}”.")
    sentence = f"{settings.mail.smtp_host} took the letter to {recipient.text}: it said “{reply}”."
    report(sentence, {"recipient": recipient.text, "code": reply.code, "answer": reply.text}, as_json=as_json)


async def _newest(limit: int) -> Sequence[StoredLetter]:
    async with connected(running_urls(load_configuration().settings).program) as connection:
        return await store.newest(connection, limit)


async def _read(reference: str) -> "tuple[StoredLetter, EmailMessage | None]":
    """A letter, and its message as it was or would be sent; None if the letter was emptied."""
    from tidemill.control.notices.mail_loop import masthead_of
    from tidemill.control.notices.smtp import compose
    from tidemill.control.operations.master_key import open_keyring

    settings = load_configuration().settings
    async with _database(settings) as database:
        async with database.connection() as connection:
            stored = await store.find(connection, await meant(connection, ObjectKind.LETTER, reference))
            now = await read_clock(connection)
        if stored is None:
            raise CommandRefused(LetterRefusal.UNKNOWN_LETTER.sentence)
        if stored.sealed is None:
            return stored, None
        keyring = await open_keyring(database, settings, Ids(secrets.randbits), now)
        letter = await store.opened(keyring, stored)
    sender = settings.mail.sender or _NO_SENDER
    return stored, compose(letter, stored.id, masthead_of(settings), sender, stored.made_at)


async def _retry(reference: str) -> UUID:
    """Have a letter tried again; returns its id."""
    async with connected(running_urls(load_configuration().settings).program) as connection:
        now = await read_clock(connection)
        async with connection.transaction():
            letter_id = await meant(connection, ObjectKind.LETTER, reference)
            if refusal := await store.retry(connection, letter_id, now):
                raise CommandRefused(refusal.sentence)
            return letter_id


async def _test(settings: Settings, recipient: str) -> "SmtpReply":
    from tidemill.control.notices.mail_loop import masthead_of
    from tidemill.control.notices.smtp import compose
    from tidemill.control.notices.smtp import connected as post_office

    now = _now()
    letter = Letter(LetterKind.TEST, recipient, Language.ENGLISH, {"at": now})
    assert settings.mail.sender, "the settings were checked"
    message = compose(letter, Ids(secrets.randbits).new(now), masthead_of(settings), settings.mail.sender, now)
    async with post_office(settings.mail) as post:
        return await post.send(message, recipient)


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[Database]:
    database = await Database.open(running_urls(settings).program, _LIMITS, "tidemill mail")
    try:
        yield database
    finally:
        await database.close()


def _now() -> Instant:
    """This machine's time: a test needs no database."""
    import time

    return Instant(time.time_ns() // 1000)


def _text(message: "EmailMessage") -> str:
    body = message.get_body(("plain",))
    assert body, "every letter has a text"
    text: str = body.get_content()
    return text.replace("\r\n", "\n")


def _fields(letter: StoredLetter) -> dict[str, object]:
    return {
        "id": str(letter.id),
        "state": letter.state,
        "recipient": letter.recipient,
        "kind": letter.kind,
        "language": letter.language,
        "made_at": as_datetime(letter.made_at).isoformat(),
        "sent_at": None if letter.sent_at is None else as_datetime(letter.sent_at).isoformat(),
        "tries": letter.tries,
        "next_at": as_datetime(letter.next_at).isoformat() if letter.state == "waiting" else None,
        "last_error": letter.last_error,
    }


def _row(letter: StoredLetter) -> tuple[str, ...]:
    written_at = f"{as_datetime(letter.made_at):%Y-%m-%d %H:%M:%S}"
    tries = str(letter.tries)
    return short_id(letter.id), letter.state, written_at, letter.recipient, letter.kind, tries, letter.last_error
