"""Letters on their way: written in the transaction of their cause, leased in batches, sent at least once.

The text of a letter is sealed together with its recipient, so a changed row is never sent. Whoever writes the outcome
of a letter must still hold its lease. Sent letters are emptied at once; unsent ones are emptied later, then deleted.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.accounts.account import Language
from tidemill.core.clock import DAY, Instant
from tidemill.core.faults import MailFault
from tidemill.core.ids import Ids
from tidemill.core.notices.mail import FailureCause, Letter, LetterKind, LetterRefusal, is_understood
from tidemill.core.notices.mail.events import MailFailed
from tidemill.core.notices.mail.letters import ONCE_A_DAY
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.operations.keyring import Keyring, SealedColumn
from tidemill.store.query import Connection, Query

_PARAMETERS = SealedColumn("mail", "parameters")


@dataclass(frozen=True)
class StoredLetter:
    """A letter's row. `sealed` is None once the letter was emptied."""

    id: UUID
    recipient: str
    kind: str
    language: str
    sealed: bytes | None
    made_at: Instant
    state: str
    tries: int
    next_at: Instant
    tried_since: Instant
    sent_at: Instant | None
    last_error: str


@dataclass(frozen=True)
class LetterBatch:
    """Leased letters, all with one token."""

    token: UUID
    letters: Sequence[StoredLetter]


@dataclass(frozen=True)
class PostponedLetter:
    """A letter that will be tried again later."""

    id: UUID
    tries: int
    next_at: Instant
    error: str


@dataclass(frozen=True)
class FailedLetter:
    """A letter that will not arrive."""

    id: UUID
    kind: str
    tries: int
    error: str
    cause: FailureCause


_WRITE = Query("notices/mail/write")
_LEASE = Query("notices/mail/lease", StoredLetter)
_SENT = Query("notices/mail/sent", UUID)
_LATER = Query("notices/mail/later", UUID)
_FAIL = Query("notices/mail/fail", UUID)
_PUT_ASIDE = Query("notices/mail/put_aside", UUID)
_RETRY = Query("notices/mail/retry", UUID)
_FIND = Query("notices/mail/find", StoredLetter)
_LIST = Query("notices/mail/list", StoredLetter)
_EMPTY = Query("notices/mail/empty", UUID)
_FORGET = Query("notices/mail/forget", UUID)
_WAITING = Query("notices/mail/waiting", int)


async def write(transaction: Connection, keyring: Keyring, letter: Letter, ids: Ids, now: Instant) -> None:
    """Write a letter; it is sent after the caller's commit, or never."""
    assert transaction.is_in_transaction(), "a letter is written in the transaction of its cause"
    letter_id = ids.new(now)
    await _WRITE.run(
        transaction,
        id=letter_id,
        recipient=letter.recipient,
        kind=letter.kind.value,
        language=letter.language.value,
        parameters=keyring.seal(_content(letter), row=_PARAMETERS.row(letter_id)),
        quiet_since=now - DAY if letter.kind in ONCE_A_DAY else None,
        now=now,
    )


async def opened(keyring: Keyring, stored: StoredLetter) -> Letter:
    """The content of a stored letter. A fault if it cannot be unsealed, differs from its row, or is too new."""
    assert stored.sealed is not None, "an emptied letter is not opened"
    content = json.loads(await keyring.unseal_fresh(stored.sealed, row=_PARAMETERS.row(stored.id)))
    if (content["recipient"], content["kind"], content["language"]) != (stored.recipient, stored.kind, stored.language):
        raise MailFault("The row of this letter was changed after it was written: it is not sent.")
    if not is_understood(stored.kind, content["parameters"]):
        raise MailFault("This letter was written by another version of the program, which may send it.")
    return Letter(LetterKind(stored.kind), stored.recipient, Language(stored.language), content["parameters"])


async def lease(database: Database, ids: Ids, *, lease_us: int, limit: int, now: Instant) -> LetterBatch:
    token = ids.new(now)
    async with database.connection() as connection:
        letters = await _LEASE.rows(
            connection,
            token=token,
            leased_until=now + lease_us,
            implausible=now + 2 * lease_us,
            limit=limit,
            now=now,
        )
    return LetterBatch(token, sorted(letters, key=lambda letter: (letter.next_at, letter.id)))


async def mark_sent(database: Database, token: UUID, letter_id: UUID, now: Instant) -> bool:
    """Empty a sent letter. False if its lease is no longer ours."""
    async with database.connection() as connection:
        return bool(await _SENT.row(connection, id=letter_id, token=token, now=now))


async def postpone(database: Database, token: UUID, letters: Sequence[PostponedLetter]) -> int:
    """Give letters back to be tried later. Returns how many were still ours."""
    async with database.connection() as connection:
        postponed = await _LATER.rows(
            connection,
            token=token,
            ids=[letter.id for letter in letters],
            tries=[letter.tries for letter in letters],
            next_ats=[letter.next_at for letter in letters],
            errors=[letter.error for letter in letters],
        )
    return len(postponed)


async def give_up(database: Database, token: UUID, letters: Sequence[FailedLetter], ids: Ids, now: Instant) -> int:
    """Give letters up; operators get one event for each. Returns how many were still ours."""
    async with database.transaction() as transaction:
        rows = await _FAIL.rows(
            transaction,
            token=token,
            ids=[letter.id for letter in letters],
            tries=[letter.tries for letter in letters],
            errors=[letter.error for letter in letters],
        )
        failed = set(rows)
        failures = [MailFailed(letter.id, letter.kind, letter.cause.value) for letter in letters if letter.id in failed]
        if failures:
            await events.append(transaction, failures, ids, now)
    return len(failed)


async def put_aside(database: Database, due_before: Instant, limit: int, now: Instant) -> int:
    """Put waiting letters that were due before an instant into the outbox. Returns how many."""
    async with database.connection() as connection:
        return len(await _PUT_ASIDE.rows(connection, due_before=due_before, limit=limit, now=now))


async def retry(transaction: Connection, letter_id: UUID, now: Instant) -> LetterRefusal | None:
    """Try a failed letter, or one in the outbox, again. None means that it will be tried."""
    if await _RETRY.row(transaction, id=letter_id, now=now):
        return None
    letter = await find(transaction, letter_id)
    if letter is None:
        return LetterRefusal.UNKNOWN_LETTER
    unsent = letter.state in {"failed", "outbox"}
    return LetterRefusal.LETTER_EMPTIED if unsent else LetterRefusal.LETTER_UNDER_WAY


async def find(connection: Connection, letter_id: UUID) -> StoredLetter | None:
    return await _FIND.row(connection, id=letter_id)


async def newest(connection: Connection, limit: int) -> Sequence[StoredLetter]:
    """The newest letters, newest first, without their text."""
    return await _LIST.rows(connection, limit=limit)


async def empty(database: Database, made_before: Instant, limit: int) -> int:
    """Empty old letters that were never sent. Returns how many."""
    async with database.connection() as connection:
        return len(await _EMPTY.rows(connection, made_before=made_before, limit=limit))


async def forget(database: Database, made_before: Instant, limit: int) -> int:
    """Delete old letters, except those that still wait. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, made_before=made_before, limit=limit))


async def waiting(database: Database) -> int:
    """How many letters wait to be sent."""
    async with database.connection() as connection:
        return await _WAITING.only(connection)


def _content(letter: Letter) -> bytes:
    return json.dumps(
        {
            "recipient": letter.recipient,
            "kind": letter.kind.value,
            "language": letter.language.value,
            "parameters": dict(letter.parameters),
        }
    ).encode()
