"""Readers over HTTP that hop between control processes while those, and the database, are killed."""

import json
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import httpx2
import psutil
import pytest

from tests.worlds.databases.event_history import judge
from tests.worlds.forks import Waited, module
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tidemill.store.embedded import attach

WRITERS = 4  # processes of four connections each


class HoppingReader(threading.Thread):
    """Follows the stream of a random process for a random while, and goes on at another where it stopped."""

    def __init__(self, pool: Pool, seed: int) -> None:
        super().__init__()
        self._pool = pool
        self._random = Random(seed)
        self._cursor = "start"
        self._done = threading.Event()
        self.seen: list[tuple[str, str]] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._done.is_set():
                with suppress(httpx2.HTTPError):
                    self._follow(self._random.choice(self._pool.running), self._random.randint(1, 400))
        except BaseException as error:  # noqa: BLE001  # the test's own thread raises it again
            self.failure = error

    def history(self, last: str) -> list[tuple[str, str]]:
        """Everything read up to one event; the reader stops once it has come there."""
        until(lambda: self.failure is not None or self._cursor_key() >= _key(last), "a reader has caught up", 120)
        self._done.set()
        self.join(20)
        if self.failure:
            raise self.failure
        return [(cursor, reason) for cursor, reason in self.seen if _key(cursor) <= _key(last)]

    def _cursor_key(self) -> tuple[int, ...]:
        return _key(self.seen[-1][0]) if self.seen else (0, 0, 0)

    def _follow(self, process: Running, events: int) -> None:
        headers = {**process.operator, "Last-Event-ID": self._cursor}
        with (
            httpx2.Client(timeout=5) as client,
            client.stream("GET", process.url + "/api/v1/events", headers=headers) as stream,
        ):
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    self.seen.append((event["cursor"], event["body"].get("reason", "")))
                    self._cursor = event["cursor"]
                    events -= 1
                if events == 0 or self._done.is_set():
                    return


def start_writer(home: Path, output: Path, transactions: int) -> Waited:
    arguments = (attach(home).program, output.name, output.name, str(transactions))
    with output.open("wb") as out:
        return Waited(module("tests.worlds.databases.event_writer", *arguments, said=out.fileno()))


def kill_database(home: Path) -> None:
    psutil.Process(int((home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])).kill()


def storm(place: Path, seed: int, transactions: int, rounds: int) -> None:
    settings = {"TIDEMILL_HTTP_EVENT_HEARTBEAT_S": "1", "TIDEMILL_EVENTS_KEEP_IN_MEMORY": "1000"}
    with pool_in(place, **settings) as pool:
        up = pool.up()
        up.set_up()
        pool.control().until_ready()
        readers = [HoppingReader(pool, seed + number) for number in range(3)]
        outputs = [place / f"writer-{seed}-{number}" for number in range(WRITERS)]
        for reader in readers:
            reader.start()
        writers = [start_writer(place, output, transactions) for output in outputs]
        random = Random(seed)
        for _ in range(rounds):
            time.sleep(0.5 + random.random())
            pool.running.pop().end(signal.SIGKILL)
            other = pool.control()
            time.sleep(0.5 + random.random())
            kill_database(place)
            up.until_ready()
            if other.process.poll() is not None:  # it found no database when it started, and said so
                pool.running.remove(other)
                pool.control().until_ready()
        for writer in writers:
            writer.wait(120)
        until(lambda: up.get("/readyz").status_code == 200, "the pool is well again")
        assert pool.run("admin", "stop", "payouts", "--reason", "the end").returncode == 0
        # A process whose database was killed may hear of the last event by its poll only, up to a second later.
        until(lambda: "the end" in [event["body"].get("reason") for event in up.events()], "the last event is shown")
        whole = [(event["cursor"], event["body"].get("reason", "")) for event in up.events()]
        last = next(index for index, (_, reason) in enumerate(whole) if reason == "the end")
        for reader in readers:
            assert reader.history(whole[last][0]) == whole[: last + 1]
        judge([reason for _, reason in whole if reason.startswith("writer")], outputs)


def _key(cursor: str) -> tuple[int, ...]:
    return tuple(map(int, cursor.split(".")))


def test_readers_that_hop_between_dying_processes_miss_and_repeat_nothing(place: Path) -> None:
    storm(place, seed=1, transactions=150, rounds=1)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_long_storm_loses_nothing(place: Path, seed: int) -> None:
    storm(place, seed, transactions=1500, rounds=8)
