"""Mail as an operator meets it: the outbox, the commands, and processes that are killed while they send."""

import asyncio
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, pool_in, until
from tests.worlds.pools.post_office import PostOffice, post_office
from tests.worlds.pools.smtp_server import PASSWORD
from tidemill.control.operations.master_key import open_keyring
from tidemill.core.accounts.account import Language
from tidemill.core.ids import Ids
from tidemill.core.notices.mail import Letter, LetterKind
from tidemill.core.settings import build
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded import attach
from tidemill.store.notices import mail


@pytest.fixture
def home() -> Iterator[Path]:
    with reachable_directory() as directory:
        yield directory


@pytest.fixture
def office(tmp_path: Path) -> Iterator[PostOffice]:
    with post_office(tmp_path) as opened:
        yield opened


def write(pool: Pool, *recipients: str) -> None:
    """Letters as the program writes them, from another process."""
    asyncio.run(_write(pool, recipients))


async def _write(pool: Pool, recipients: tuple[str, ...]) -> None:
    ids = Ids(secrets.randbits)
    settings = build(toml={}, toml_name="", environment={}, home=pool.home).settings
    database = await Database.open(attach(pool.home).program, DatabaseLimits(4, 30, 10), "test")
    try:
        async with database.connection() as connection:
            now = await read_clock(connection)
        keyring = await open_keyring(database, settings, ids, now)
        async with database.transaction() as transaction:
            for recipient in recipients:
                said = {"link": f"/confirm#{recipient}", "code": "7K2M-94QX"}
                letter = Letter(LetterKind.CONFIRM_ADDRESS, recipient, Language.CHINESE, said)
                await mail.write(transaction, keyring, letter, ids, now)
    finally:
        await database.close()


def states(pool: Pool) -> dict[str, str]:
    return asyncio.run(_states(pool))


async def _states(pool: Pool) -> dict[str, str]:
    connection = await connect(attach(pool.home).program)
    try:
        return {letter.recipient: letter.state for letter in await mail.newest(connection, 1000)}
    finally:
        await connection.close()


def test_letters_are_read_in_the_outbox_and_sent_once_there_is_a_server(home: Path, office: PostOffice) -> None:
    with pool_in(home) as pool:
        running = pool.up()
        running.until_ready()
        until(lambda: "outbox (" in running.said(), "the greeting tells where mail goes")
        write(pool, "ann@example.org")
        until(lambda: states(pool) == {"ann@example.org": "outbox"}, "the letter lies in the outbox")
        [letter] = pool.json("mail")
        shown = pool.run("mail", "show", letter["id"])
        assert shown.returncode == 0, shown.stderr
        assert "To: ann@example.org\n" in shown.stdout
        assert "Subject: 请确认您在 Tidemill 的邮箱地址\n" in shown.stdout
        assert f"{running.url}/confirm#ann@example.org\n" in shown.stdout
        assert "    7K2M-94QX\n" in shown.stdout
        assert "\\x" not in shown.stdout
        assert "7K2M-94QX" in pool.json("mail", "show", letter["id"])["text"]
        assert "7K2M-94QX" not in pool.run("mail").stdout + running.said()
        assert "outbox" in pool.run("mail").stdout
        test = pool.run("mail", "test", "ann@example.org")
        assert (test.returncode, "mail.smtp_host" in test.stderr) == (1, True)
        strange = pool.run("mail", "show", "0190a000-0000-7000-8000-000000000000")
        assert (strange.returncode, "no letter with this id" in strange.stderr) == (1, True)
        assert running.end() == 0
        pool.running.clear()
        pool.up(**office.settings()).until_ready()
        time.sleep(0.3)
        assert office.recipients == {}, "old letters do not surprise anybody by themselves"
        assert pool.run("mail", "retry", letter["id"]).returncode == 0
        until(lambda: office.recipients == {"ann@example.org": 1}, "the letter arrives")
        until(lambda: states(pool) == {"ann@example.org": "sent"}, "and is known to be sent")
        again = pool.run("mail", "retry", letter["id"])
        assert (again.returncode, "only a failed one" in again.stderr) == (1, True)
        emptied = pool.run("mail", "show", letter["id"])
        assert (emptied.returncode, "was emptied" in emptied.stderr) == (1, True)
        assert pool.json("mail", "show", letter["id"])["text"] == ""


def test_the_test_letter_tells_what_the_server_said(home: Path, office: PostOffice) -> None:
    pool = Pool(home, office.settings())
    sent = pool.run("mail", "test", "ann@example.org")
    assert (sent.returncode, sent.stderr) == (
        0,
        "127.0.0.1 took the letter to ann@example.org: it said “250 2.0.0 Queued as 42”.\n",
    )
    assert office.message("ann@example.org")["Subject"] == "A test letter from Tidemill"
    refused = pool.run("mail", "test", "unknown-bob@example.org")
    assert (refused.returncode, "it said “550 5.1.1 No such user here [31m”" in refused.stderr) == (5, True)
    wrong = pool.run("mail", "test", "ann@example.org", TIDEMILL_MAIL_SMTP_PASSWORD="hunter22")
    assert wrong.returncode == 5
    assert "535" in wrong.stderr
    assert "check mail.smtp_username and mail.smtp_password" in wrong.stderr
    assert "hunter22" not in wrong.stderr
    assert pool.run("mail", "test", "ann@example.org\r\nBcc: eve@example.org").returncode == 1
    config = pool.run("config")
    assert PASSWORD not in config.stdout + config.stderr
    assert set(office.recipients) == {"ann@example.org"}


def test_a_server_that_is_down_leaves_the_pool_ready(home: Path, office: PostOffice) -> None:
    office.close()
    with pool_in(home, **office.settings()) as pool:
        running = pool.up()
        running.until_ready()
        write(pool, "ann@example.org")
        until(lambda: "cannot be used" in pool.json("mail")[0]["last_error"], "the trouble is told")
        assert running.get("/readyz").status_code == 200
        assert "mail waits for its server" in running.said()
        assert PASSWORD not in running.said()
        office.open()
        until(lambda: office.recipients == {"ann@example.org": 1}, "the letter arrives")


def test_a_process_killed_while_it_sends_loses_no_letter(home: Path, office: PostOffice) -> None:
    everybody = [f"slow-ann{number}@example.org" for number in range(12)]
    with pool_in(home, **office.settings(TIDEMILL_MAIL_SMTP_DEADLINE_S="2s")) as pool:
        pool.up().until_ready()
        second = pool.control()
        second.until_ready()
        write(pool, *everybody)
        until(lambda: len(office.taken) >= 2, "some letters have left")
        assert second.end(signal.SIGKILL) == -signal.SIGKILL
        pool.running[0].end(signal.SIGKILL)
        first = pool.up()
        pool.running[0] = first
        first.until_ready()
        until(lambda: set(states(pool).values()) == {"sent"}, lambda: str(states(pool)), within_s=60)
    assert set(office.recipients) == set(everybody)
    assert max(office.recipients.values()) <= 2
    assert office.recipients.total() <= len(everybody) + 2, "only what was under way is sent again"
