"""Letters in the database: written with their cause, sealed, leased, sent at least once, emptied and forgotten."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.keyrings import keyring_of
from tidemill.core.accounts.account import Language
from tidemill.core.clock import DAY, HOUR, SECOND, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.faults import MailFault, SecretsFault
from tidemill.core.ids import Ids
from tidemill.core.notices.mail import FailureCause, Letter, LetterKind, LetterRefusal
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.events import events
from tidemill.store.notices import mail
from tidemill.store.notices.mail import FailedLetter, PostponedLetter, StoredLetter
from tidemill.store.operations.keyring import Keyring

LEASE = 60 * SECOND
CODE, TOKEN = "7K2M-94QX", "topsecrettoken"
CONFIRM = {"link": f"/confirm#{TOKEN}", "code": CODE}


def to(recipient: str, kind: LetterKind = LetterKind.CONFIRM_ADDRESS, **parameters: str | int) -> Letter:
    given = parameters or (CONFIRM if kind is LetterKind.CONFIRM_ADDRESS else {})
    return Letter(kind, recipient, Language.RUSSIAN, given)


@pytest.fixture
async def now(database: Database) -> Instant:
    async with database.connection() as connection:
        return await read_clock(connection)


@pytest.fixture
async def keyring(database: Database, ids: Ids, now: Instant) -> Keyring:
    return await keyring_of(database, ids, now)


Write = Callable[..., Awaitable[None]]


@pytest.fixture
def write(database: Database, keyring: Keyring, ids: Ids, now: Instant) -> Write:
    async def write_all(*letters: Letter, at: Instant = now) -> None:
        async with database.transaction() as transaction:
            for letter in letters:
                await mail.write(transaction, keyring, letter, ids, at)

    return write_all


async def listed(database: Database) -> list[StoredLetter]:
    async with database.connection() as connection:
        return list(await mail.newest(connection, 1000))


async def found(database: Database, letter_id: UUID) -> StoredLetter:
    async with database.connection() as connection:
        letter = await mail.find(connection, letter_id)
    assert letter
    return letter


async def leased(database: Database, ids: Ids, now: Instant, limit: int = 10) -> mail.LetterBatch:
    return await mail.lease(database, ids, lease_us=LEASE, limit=limit, now=now)


async def test_a_letter_is_written_with_its_cause_or_not_at_all(
    database: Database, keyring: Keyring, ids: Ids, now: Instant, write: Write
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            await mail.write(transaction, keyring, to("ann@example.org"), ids, now)
            raise ZeroDivisionError
    assert await listed(database) == []
    async with database.connection() as connection:
        with pytest.raises(AssertionError):
            await mail.write(connection, keyring, to("ann@example.org"), ids, now)
    await write(to("ann@example.org"))
    assert [(letter.recipient, letter.state) for letter in await listed(database)] == [("ann@example.org", "waiting")]


async def test_what_a_letter_says_opens_again_and_is_nowhere_in_the_open(
    database: Database, keyring: Keyring, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("ann@example.org"))
    [stored] = (await leased(database, ids, now)).letters
    assert await mail.opened(keyring, stored) == to("ann@example.org")
    async with database.connection() as connection:
        row = await connection.fetchval("SELECT mail::text FROM mail")
    plain = bytes.fromhex(row.split("\\\\x")[1].split('"')[0])
    for secret in (CODE, TOKEN):
        assert secret not in row
        assert secret.encode() not in plain


async def test_copies_never_hold_the_same_letter(database: Database, ids: Ids, now: Instant, write: Write) -> None:
    await write(*(to(f"ann{number}@example.org") for number in range(100)))
    batches = await asyncio.gather(*(leased(database, ids, now, limit=40) for _ in range(4)))
    held = [letter.id for batch in batches for letter in batch.letters]
    assert len(held) == len(set(held)) == 100


async def test_letters_are_taken_oldest_first(database: Database, ids: Ids, now: Instant, write: Write) -> None:
    for number in range(5):
        await write(to(f"ann{number}@example.org"), at=Instant(now - (5 - number) * SECOND))
    batch = await leased(database, ids, now, limit=3)
    assert [letter.recipient for letter in batch.letters] == [f"ann{number}@example.org" for number in range(3)]


async def test_a_copy_that_slept_through_its_lease_changes_nothing(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("ann@example.org"))
    slept = await leased(database, ids, now)
    later = Instant(now + LEASE)
    awake = await leased(database, ids, later)
    [letter] = awake.letters
    failed = FailedLetter(letter.id, letter.kind, 1, "no", FailureCause.REJECTED)
    assert not await mail.mark_sent(database, slept.token, letter.id, later)
    assert await mail.postpone(database, slept.token, [PostponedLetter(letter.id, 1, later, "no")]) == 0
    assert await mail.give_up(database, slept.token, [failed], ids, later) == 0
    assert (await found(database, letter.id)).state == "waiting"
    assert await mail.mark_sent(database, awake.token, letter.id, later)
    assert not await mail.mark_sent(database, awake.token, letter.id, later)


async def test_a_lease_from_a_clock_that_ran_ahead_holds_nobody_back(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("ann@example.org"))
    await leased(database, ids, Instant(now + 300 * DAY))
    assert len((await leased(database, ids, now)).letters) == 1
    assert len((await leased(database, ids, now)).letters) == 0


async def test_a_sent_letter_is_emptied_at_once(database: Database, ids: Ids, now: Instant, write: Write) -> None:
    await write(to("ann@example.org"))
    batch = await leased(database, ids, now)
    await mail.mark_sent(database, batch.token, batch.letters[0].id, now)
    sent = await found(database, batch.letters[0].id)
    assert (sent.state, sent.sealed, sent.tries, sent.sent_at) == ("sent", None, 1, now)


async def test_a_letter_waits_for_its_next_try(database: Database, ids: Ids, now: Instant, write: Write) -> None:
    await write(to("ann@example.org"))
    batch = await leased(database, ids, now)
    again = PostponedLetter(batch.letters[0].id, 1, Instant(now + HOUR), "450 busy")
    assert await mail.postpone(database, batch.token, [again]) == 1
    assert not (await leased(database, ids, Instant(now + HOUR - 1))).letters
    [letter] = (await leased(database, ids, Instant(now + HOUR))).letters
    assert (letter.tries, letter.last_error) == (1, "450 busy")


async def test_a_failure_is_told_once_and_without_the_address(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("ann@example.org"))
    batch = await leased(database, ids, now)
    failed = FailedLetter(
        batch.letters[0].id, "confirm_address", 1, "550 ann@example.org unknown", FailureCause.REJECTED
    )
    assert [await mail.give_up(database, batch.token, [failed], ids, now) for _ in range(2)] == [1, 0]
    async with database.connection() as connection:
        told = [event for event in await events.read(connection, LOG_START, 100) if event.kind == "mail.failed"]
    assert [event.body for event in told] == [
        {"mail_id": str(failed.id), "letter": "confirm_address", "cause": "rejected"}
    ]
    assert not told[0].public


@pytest.mark.parametrize("kind", [LetterKind.ADDRESS_TAKEN, LetterKind.NO_ACCOUNT])
async def test_a_stranger_can_have_one_letter_a_day_written_to_somebody(
    database: Database, now: Instant, write: Write, kind: LetterKind
) -> None:
    parameters = {"link": "/login"} if kind is LetterKind.ADDRESS_TAKEN else {}
    for recipient in ("ann@example.org", "ann@example.org", "ANN@example.org", "Ann@example.org"):
        await write(Letter(kind, recipient, Language.ENGLISH, parameters))
    await write(Letter(kind, "bob@example.org", Language.ENGLISH, parameters))
    assert sorted(one.recipient for one in await listed(database)) == ["ann@example.org", "bob@example.org"]
    await write(Letter(kind, "ann@example.org", Language.ENGLISH, parameters), at=Instant(now + DAY))
    assert len(await listed(database)) == 3


async def test_letters_that_people_ask_for_are_written_each_time(database: Database, write: Write) -> None:
    for _ in range(3):
        await write(to("ann@example.org"))
    assert len(await listed(database)) == 3


async def test_the_program_cannot_send_a_letter_to_somebody_else(database: Database, write: Write) -> None:
    await write(to("ann@example.org"))
    async with database.connection() as connection:
        for column in ("recipient", "kind", "language", "id", "made_at"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"UPDATE mail SET {column} = {column}")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE mail SET recipient = 'eve@example.org' WHERE recipient = 'ann@example.org'",
        "UPDATE mail SET kind = 'reset_password' WHERE recipient = 'ann@example.org'",
        "UPDATE mail SET language = 'en' WHERE recipient = 'ann@example.org'",
        "UPDATE mail SET parameters = (SELECT parameters FROM mail WHERE recipient = 'bob@example.org') "
        "WHERE recipient = 'ann@example.org'",
        "UPDATE mail SET parameters = set_byte(parameters, 60, get_byte(parameters, 60) # 1) "
        "WHERE recipient = 'ann@example.org'",
    ],
)
async def test_a_row_that_was_changed_is_never_opened(
    database: Database, urls: DatabaseUrls, keyring: Keyring, ids: Ids, write: Write, change: str
) -> None:
    await write(to("ann@example.org"))
    await write(to("bob@example.org"))
    now = (await listed(database))[0].made_at
    owner = await connect(urls.owner)
    assert await owner.execute(change) == "UPDATE 1"
    await owner.close()
    ann, bob = (await leased(database, ids, now)).letters
    with pytest.raises((MailFault, SecretsFault)):
        await mail.opened(keyring, ann)
    assert (await mail.opened(keyring, bob)).recipient == "bob@example.org"


async def test_a_letter_of_a_newer_version_is_left_to_it(
    database: Database, keyring: Keyring, ids: Ids, now: Instant, write: Write
) -> None:
    newer = to("ann@example.org")
    object.__setattr__(newer, "parameters", {**CONFIRM, "mood": "good"})
    await write(newer)
    [stored] = (await leased(database, ids, now)).letters
    with pytest.raises(MailFault, match="another version"):
        await mail.opened(keyring, stored)


async def retried(database: Database, letter_id: UUID, now: Instant) -> LetterRefusal | None:
    async with database.transaction() as transaction:
        return await mail.retry(transaction, letter_id, now)


async def test_only_what_was_not_sent_and_is_still_whole_can_be_tried_again(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    assert await retried(database, ids.new(now), now) is LetterRefusal.UNKNOWN_LETTER
    await write(to("ann@example.org"))
    [letter] = await listed(database)
    assert await retried(database, letter.id, now) is LetterRefusal.LETTER_UNDER_WAY
    assert await mail.put_aside(database, now, 10, now) == 1
    both = await asyncio.gather(*(retried(database, letter.id, now) for _ in range(2)))
    assert set(both) == {None, LetterRefusal.LETTER_UNDER_WAY}
    batch = await leased(database, ids, now)
    await mail.give_up(database, batch.token, [FailedLetter(letter.id, "x", 1, "550", FailureCause.REJECTED)], ids, now)
    later = Instant(now + 8 * DAY)
    assert await retried(database, letter.id, later) is None
    batch = await leased(database, ids, later)
    assert (batch.letters[0].tries, batch.letters[0].tried_since) == (0, later)
    await mail.give_up(
        database, batch.token, [FailedLetter(letter.id, "x", 1, "550", FailureCause.REJECTED)], ids, later
    )
    assert await mail.empty(database, later, 10) == 1
    assert await retried(database, letter.id, later) is LetterRefusal.LETTER_EMPTIED


async def test_letters_in_the_hands_of_a_copy_are_not_put_aside(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("ann@example.org"), to("bob@example.org"))
    await leased(database, ids, now, limit=1)
    assert await mail.put_aside(database, Instant(now - 1), 10, now) == 0
    assert await mail.put_aside(database, now, 10, now) == 1
    assert await mail.put_aside(database, now, 10, Instant(now + LEASE)) == 1


async def test_unsent_letters_are_emptied_and_all_but_waiting_ones_are_forgotten(
    database: Database, ids: Ids, now: Instant, write: Write
) -> None:
    await write(to("sent@example.org"))
    batch = await leased(database, ids, now)
    await mail.mark_sent(database, batch.token, batch.letters[0].id, now)
    await write(to("outbox@example.org"))
    await mail.put_aside(database, now, 10, now)
    await write(to("waiting@example.org"))
    soon = Instant(now + SECOND)
    assert await mail.empty(database, now, 10) == 0
    assert await mail.empty(database, soon, 10) == 1
    assert await mail.waiting(database) == 1
    assert await mail.forget(database, now, 10) == 0
    assert await mail.forget(database, soon, 10) == 2
    [left] = await listed(database)
    assert (left.recipient, (await found(database, left.id)).sealed is not None) == ("waiting@example.org", True)
