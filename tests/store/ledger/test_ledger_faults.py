"""The ledger while PostgreSQL and its clients are killed: nothing acknowledged is lost, nothing is applied twice."""

import asyncio
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from tests.worlds.databases.embedded_server import postmaster_pid, running, until_answers
from tests.worlds.databases.ledger_client import BANK, CUSTOMERS
from tests.worlds.forks import Waited, module
from tidemill.core.ids import Ids
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import EmbeddedServer
from tidemill.store.ledger import books, ledger
from tidemill.store.migrate import migrate


def start_client(home: Path, output: Path) -> Waited:
    with output.open("wb") as out:
        return Waited(module("tests.worlds.databases.ledger_client", str(home), output.name, said=out.fileno()))


def said(outputs: list[Path], word: str) -> Iterator[tuple[UUID, list[str]]]:
    """What the clients said, line by line; a line that a kill cut short does not count."""
    for output in outputs:
        for line in output.read_text().splitlines(keepends=True):
            what, transfer_id, *more = line.split()
            if what == word and line.endswith("\n"):
                yield UUID(transfer_id), more


async def storm(home: Path, server: EmbeddedServer, random: Random, kills: int) -> list[Path]:
    """Kill the clients' process and the database in turn; each comes back."""
    outputs = [home / "client-0"]
    client = start_client(home, outputs[0])
    for kill in range(kills):
        await asyncio.sleep(0.3 + random.random() * 0.6)
        if kill % 2:
            client.kill()
            client.wait()
            outputs.append(home / f"client-{len(outputs)}")
            client = start_client(home, outputs[-1])
        else:
            before = postmaster_pid(home)
            os.kill(before, signal.SIGKILL)
            await until_answers(home, other_than=before)
            if client.poll() is not None:  # it found no database when it began
                outputs.append(home / f"client-{len(outputs)}")
                client = start_client(home, outputs[-1])
    await asyncio.sleep(1)
    client.kill()
    client.wait()
    return outputs


async def survive(place: Path, seed: int, kills: int) -> None:
    async with running(place) as server:
        watching = asyncio.create_task(server.watch())
        await migrate(server.urls, Ids(secrets.randbits), "1.0")
        connection = await connect(server.urls.program)
        await ledger.open_accounts(connection, [BANK, *CUSTOMERS], await read_clock(connection))
        await connection.close()
        outputs = await storm(place, server, Random(seed), kills)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

        owner = await connect(server.urls.owner)
        rows = await owner.fetch("SELECT id, debit_id, credit_id, amount_uc FROM transfer")
        posted = {row["id"]: [str(row["debit_id"]), str(row["credit_id"]), str(row["amount_uc"])] for row in rows}
        refused = {row["id"] for row in await owner.fetch("SELECT id FROM refused_entry")}
        assert [check for check in await books.check_books(owner) if not check.ok] == []
        await owner.close()
    asked, told = dict(said(outputs, "asked")), dict(said(outputs, "told"))
    assert len(told) > 20 * kills
    assert len(posted) == len(rows)
    for transfer_id, (answer,) in told.items():
        assert (transfer_id in posted) == (answer == "posted"), f"seed {seed}: {transfer_id} was told {answer}"
        assert (transfer_id in refused) == (answer != "posted")
    for transfer_id, body in posted.items():
        assert asked[transfer_id] == body
    assert not refused & posted.keys()


async def test_eight_kills_lose_nothing_and_post_nothing_twice(place: Path) -> None:
    await survive(place, seed=1, kills=8)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_thousand_kills_lose_nothing_and_post_nothing_twice(place: Path) -> None:
    await survive(place, seed=2, kills=1000)
