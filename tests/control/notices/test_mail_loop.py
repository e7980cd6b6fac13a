"""The mail loop against a real SMTP server that misbehaves: all is retried, nothing is lost, nothing goes astray."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.worlds.clocks import HandClock
from tests.worlds.databases.keyrings import keyring_of
from tests.worlds.pools.post_office import PostOffice, post_office
from tidemill.control.loops.frame import LoopRunner
from tidemill.control.metrics import Metrics
from tidemill.control.notices.mail_loop import MailForgettingLoop, MailLoop
from tidemill.control.parts import Parts
from tidemill.core.accounts.account import Language
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.ids import Ids
from tidemill.core.notices.mail import Letter, LetterKind
from tidemill.core.settings import build
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import monotonic_us, read_clock
from tidemill.store.database import Database, connect
from tidemill.store.events import events
from tidemill.store.ledger.poster import Poster
from tidemill.store.notices import mail
from tidemill.store.notices.mail import StoredLetter


@pytest.fixture
def office(tmp_path: Path) -> Iterator[PostOffice]:
    with post_office(tmp_path) as opened:
        yield opened


class RunningClock(HandClock):
    """Goes on by itself from where it was set."""

    def __init__(self, at: Instant) -> None:
        super().__init__(at)
        self._since_us = monotonic_us()

    def now(self) -> Instant:
        return Instant(self.at + monotonic_us() - self._since_us)


async def parts_with(database: Database, ids: Ids, home: Path, settings: dict[str, str]) -> Parts:
    async with database.connection() as connection:
        now = await read_clock(connection)
    clock = RunningClock(now)
    return Parts(
        settings=build(toml={}, toml_name="", environment=settings, home=home).settings,
        process_id=ids.new(now),
        loop_database=database,
        clock=clock,
        ids=ids,
        metrics=Metrics("test"),
        poster=Poster(database, clock, ids),
        keyring=await keyring_of(database, ids, now),
    )


@pytest.fixture
async def parts(database: Database, ids: Ids, office: PostOffice) -> AsyncIterator[Parts]:
    made = await parts_with(database, ids, office.folder, office.settings())
    yield made
    await made.poster.close()


async def write(parts: Parts, *recipients: str) -> None:
    async with parts.loop_database.transaction() as transaction:
        for recipient in recipients:
            letter = Letter(
                LetterKind.CONFIRM_ADDRESS,
                recipient,
                Language.ENGLISH,
                {"link": f"/confirm#{recipient}", "code": f"code of {recipient}"},
            )
            await mail.write(transaction, parts.keyring, letter, parts.ids, parts.clock.now())


async def states(parts: Parts) -> dict[str, StoredLetter]:
    async with parts.loop_database.connection() as connection:
        return {letter.recipient: letter for letter in await mail.newest(connection, 10_000)}


async def run_until_settled(parts: Parts, *, copies: int = 1, within_s: float = 60) -> dict[str, StoredLetter]:
    """Run copies of the loop until nothing waits any more."""
    runners = [LoopRunner(MailLoop(parts), Random(number)) for number in range(copies)]
    tasks = [asyncio.create_task(runner.run()) for runner in runners]
    try:
        async with asyncio.timeout(within_s):
            while await mail.waiting(parts.loop_database):
                assert not [task for task in tasks if task.done()], "a loop does not die of mail"
                await asyncio.sleep(0.05)
    finally:
        for runner in runners:
            runner.stop()
        await asyncio.gather(*tasks)
    return await states(parts)


async def test_two_hundred_letters_arrive_once_each_with_their_own_words(parts: Parts, office: PostOffice) -> None:
    everybody = [f"ann{number}@example.org" for number in range(200)]
    await write(parts, *everybody)
    settled = await run_until_settled(parts, copies=2)
    assert {letter.state for letter in settled.values()} == {"sent"}
    assert office.recipients == dict.fromkeys(everybody, 1)
    assert all(one["tls"] and one["as"] and one["sender"] == "pool@pool.example" for one in office.taken)
    assert len({one["connection"] for one in office.taken}) < 50, "a connection serves many letters"
    for recipient in everybody:
        message = office.message(recipient)
        assert message["To"] == recipient
        assert message["Message-ID"] == f"<{settled[recipient].id}@pool.example>"
        for kind in ("plain", "html"):
            body = message.get_body((kind,))
            assert body
            assert re.search(rf"code of {recipient}(\r\n|<)", body.get_content())
    assert 'tidemill_mail_letters_total{outcome="sent"} 200.0' in parts.metrics.exposition().decode()


async def test_every_misbehaviour_is_outlasted_and_nobody_else_suffers(parts: Parts, office: PostOffice) -> None:
    strange = ["busy3-a@example.org", "drop2-b@example.org", "hang1-c@example.org", "closing1-d@example.org"]
    strange += ["relay2-e@example.org", "forgetful1-f@example.org"]
    plain = [f"ann{number}@example.org" for number in range(30)]
    await write(parts, *strange[:3], *plain, *strange[3:])
    settled = await run_until_settled(parts, copies=2)
    assert {letter.state for letter in settled.values()} == {"sent"}
    assert office.recipients["forgetful1-f@example.org"] == 2, "what was taken without a word is sent again"
    ids = {one["content"].split("Message-ID: ")[1].split("\r\n")[0] for one in office.taken if "forgetful" in str(one)}
    assert len(ids) == 1, "and can be recognised"
    others = {name: count for name, count in office.recipients.items() if "forgetful" not in name}
    assert others == dict.fromkeys([*plain, *strange[:5]], 1)
    assert settled["busy3-a@example.org"].tries == 4
    for recipient in (*plain, *strange):
        assert office.message(recipient)["To"] == recipient


async def test_what_is_refused_for_good_fails_at_once_and_operators_are_told(parts: Parts, office: PostOffice) -> None:
    await write(parts, "unknown-a@example.org", "content-b@example.org", "ann@example.org")
    settled = await run_until_settled(parts)
    failed = settled["unknown-a@example.org"]
    assert (failed.state, failed.tries) == ("failed", 1)
    assert failed.last_error == "550 5.1.1 No such user here [31m"
    assert settled["content-b@example.org"].state == "failed"
    assert list(office.recipients) == ["ann@example.org"]
    async with parts.loop_database.connection() as connection:
        told = [event for event in await events.read(connection, LOG_START, 100) if event.kind == "mail.failed"]
    assert {event.body["cause"] for event in told} == {"rejected"}
    assert len(told) == 2
    assert "example.org" not in str([event.body for event in told])


async def test_letters_wait_while_the_server_is_away_and_lose_no_try(parts: Parts, office: PostOffice) -> None:
    office.close()
    everybody = [f"ann{number}@example.org" for number in range(30)]
    await write(parts, *everybody)
    running = asyncio.create_task(run_until_settled(parts))
    await asyncio.sleep(1)
    waiting = await states(parts)
    assert {letter.tries for letter in waiting.values()} == {0}
    assert any("cannot be used" in letter.last_error for letter in waiting.values())
    office.open()
    settled = await running
    assert {letter.state for letter in settled.values()} == {"sent"}
    assert office.recipients == dict.fromkeys(everybody, 1)


async def test_a_refused_sender_costs_no_letter_a_try(parts: Parts, office: PostOffice) -> None:
    (office.folder / "refuse-sender").touch()
    await write(parts, "ann@example.org", "bob@example.org")
    running = asyncio.create_task(run_until_settled(parts))
    await asyncio.sleep(0.7)
    waiting = await states(parts)
    assert {(letter.state, letter.tries) for letter in waiting.values()} == {("waiting", 0)}
    assert "does not take letters from pool@pool.example" in waiting["ann@example.org"].last_error
    (office.folder / "refuse-sender").unlink()
    assert {letter.state for letter in (await running).values()} == {"sent"}


async def test_letters_are_given_up_in_the_end(database: Database, ids: Ids, office: PostOffice) -> None:
    settings = office.settings(TIDEMILL_MAIL_GIVE_UP_S="2s", TIDEMILL_MAIL_RETRY_MOST_S="500ms")
    parts = await parts_with(database, ids, office.folder, settings)
    await write(parts, "busy-ann@example.org")
    settled = await run_until_settled(parts)
    assert settled["busy-ann@example.org"].state == "failed"
    assert 4 <= settled["busy-ann@example.org"].tries <= 9
    office.close()
    await write(parts, "bob@example.org")
    settled = await run_until_settled(parts)
    assert (settled["bob@example.org"].state, settled["bob@example.org"].tries) == ("failed", 0)
    async with database.connection() as connection:
        told = [event.body for event in await events.read(connection, LOG_START, 100) if event.kind == "mail.failed"]
    assert [body["cause"] for body in told] == ["too_late", "too_late"]
    await parts.poster.close()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"TIDEMILL_MAIL_SMTP_PASSWORD": "wrong"}, "check mail.smtp_username and mail.smtp_password"),
        ({"TIDEMILL_MAIL_SMTP_CA_FILE": "/nowhere/ca.pem"}, "mail.smtp_ca_file (/nowhere/ca.pem) cannot be used"),
        ({"TIDEMILL_MAIL_SMTP_HOST": "localhost"}, "a certificate that is not trusted"),
        ({"TIDEMILL_MAIL_SMTP_TLS": "tls"}, "check mail.smtp_host, mail.smtp_port and mail.smtp_tls"),
        ({"TIDEMILL_MAIL_SMTP_TLS": "none"}, "cannot be used"),  # it will not hear of a password outside TLS
    ],
)
async def test_what_is_wrong_with_the_settings_is_told_and_nothing_is_lost(
    database: Database, ids: Ids, office: PostOffice, changed: dict[str, str], told: str
) -> None:
    parts = await parts_with(database, ids, office.folder, office.settings(**changed))
    await write(parts, "ann@example.org")
    await MailLoop(parts).tick(parts.clock.now())
    letter = (await states(parts))["ann@example.org"]
    assert (letter.state, letter.tries) == ("waiting", 0)
    assert told in letter.last_error
    assert office.taken == []
    await parts.poster.close()


async def test_a_certificate_of_a_stranger_gets_neither_password_nor_letter(
    database: Database, ids: Ids, office: PostOffice
) -> None:
    settings = office.settings()
    del settings["TIDEMILL_MAIL_SMTP_CA_FILE"]
    parts = await parts_with(database, ids, office.folder, settings)
    await write(parts, "ann@example.org")
    await MailLoop(parts).tick(parts.clock.now())
    assert "not trusted" in (await states(parts))["ann@example.org"].last_error
    assert office.taken == []
    await parts.poster.close()


@pytest.mark.parametrize("mode", ["tls", "deaf"])
async def test_a_server_with_tls_from_the_start_and_one_that_says_nothing(
    database: Database, ids: Ids, tmp_path: Path, mode: str
) -> None:
    with post_office(tmp_path, mode) as office:
        parts = await parts_with(database, ids, tmp_path, office.settings())
        await write(parts, "ann@example.org")
        loop = MailLoop(parts)
        async with asyncio.timeout(30):
            await loop.tick(parts.clock.now())
        letter = (await states(parts))["ann@example.org"]
        assert letter.state == ("sent" if mode == "tls" else "waiting")
        assert office.recipients == ({"ann@example.org": 1} if mode == "tls" else {})
        await parts.poster.close()


async def test_a_changed_row_is_not_sent_and_holds_nobody_back(
    parts: Parts, urls: DatabaseUrls, office: PostOffice
) -> None:
    await write(parts, "ann@example.org", "bob@example.org")
    owner = await connect(urls.owner)
    await owner.execute("UPDATE mail SET recipient = 'eve@example.org' WHERE recipient = 'ann@example.org'")
    await owner.close()
    await MailLoop(parts).tick(parts.clock.now())
    after = await states(parts)
    assert list(office.recipients) == ["bob@example.org"]
    assert (after["eve@example.org"].state, after["eve@example.org"].tries) == ("waiting", 1)


async def test_a_loop_that_is_stopped_leaves_its_letters_to_others_at_once(parts: Parts, office: PostOffice) -> None:
    everybody = [f"slow-ann{number}@example.org" for number in range(6)]
    await write(parts, *everybody)
    sending = asyncio.create_task(MailLoop(parts).tick(parts.clock.now()))
    async with asyncio.timeout(20):
        while not office.taken:
            await asyncio.sleep(0.05)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    left = await mail.lease(parts.loop_database, parts.ids, lease_us=SECOND, limit=10, now=parts.clock.now())
    assert 4 <= len(left.letters) <= 6
    assert {letter.tries for letter in left.letters} == {0}


async def test_without_a_server_letters_go_to_the_outbox(database: Database, ids: Ids, tmp_path: Path) -> None:
    parts = await parts_with(database, ids, tmp_path, {})
    await write(parts, "ann@example.org")
    now = parts.clock.now()
    assert (await MailLoop(parts).tick(Instant(now + 9 * SECOND))).applied == 0
    assert (await MailLoop(parts).tick(Instant(now + 11 * SECOND))).applied == 1
    forgetting = MailForgettingLoop(parts)
    assert (await forgetting.tick(Instant(now + 6 * DAY))).applied == 0
    assert (await states(parts))["ann@example.org"].state == "outbox"
    assert (await forgetting.tick(Instant(now + 7 * DAY + SECOND))).applied == 1
    assert (await forgetting.tick(Instant(now + 30 * DAY + SECOND))).applied == 1
    assert await states(parts) == {}
    assert "tidemill_mail_waiting 0.0" in parts.metrics.exposition().decode()
    await parts.poster.close()
