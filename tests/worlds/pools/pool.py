"""A real pool in real processes, started and ended as a user would."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.worlds.clusters import give_cluster
from tests.worlds.forks import Waited, begun, ended
from tidemill.store.database import connect
from tidemill.store.embedded import attach

TIDEMILL = Path(sys.executable).with_name("tidemill")
READY_S = 60.0
"""Bounds a failure only: whoever waits goes on as soon as it may."""
OPERATOR_ADDRESS = "operator@pool.example"
OPERATOR_PASSWORD = "tide mill wheel 7"
TRUST = ssl.create_default_context()
"""Made once: it costs more than ten requests."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def clean_environment(home: Path, port: int, settings: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without its own Tidemill settings; bytecode is kept, as it is for users."""
    left_out = ("TIDEMILL_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "TIDEMILL_HOME": str(home), "TIDEMILL_PORT": str(port), **settings}


@dataclass
class Running:
    """One process of the pool."""

    process: "subprocess.Popen[str] | Waited"
    port: int
    home: Path
    scheme: str = "http"
    verify: bool | ssl.SSLContext = TRUST

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.get(self.url + path, verify=self.verify, timeout=30, **options)

    def post(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.post(self.url + path, verify=self.verify, timeout=30, **options)

    def put(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.put(self.url + path, verify=self.verify, timeout=30, **options)

    def delete(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.delete(self.url + path, verify=self.verify, timeout=30, **options)

    @property
    def operator(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {(self.home / 'operator.token').read_text().strip()}"}

    def metrics(self) -> str:
        return self.get("/metrics", headers=self.operator).text

    def events(self) -> list[dict[str, Any]]:
        """The whole log, page by page, with everything that was committed before."""
        with ThreadPoolExecutor(1) as aside:  # whoever asks may be in a loop of its own
            aside.submit(asyncio.run, _all_is_shown(self.home)).result()
        headers = {"Accept": "application/json", **self.operator}
        items: list[dict[str, Any]] = []
        after, more = "start", True
        while more:
            page = self.get(f"/api/v1/events?limit=500&after={after}", headers=headers).json()
            items += page["items"]
            after, more = page["after"], page["has_more"]
        return items

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events()]

    def until_ready(self) -> None:
        until(self._is_ready, lambda: f"the pool is ready; it said: {self.said()}")

    def set_up(self) -> str:
        """Become the first operator, with the link in the greeting; strangers are answered from then on."""
        self.until_ready()
        until(lambda: "/setup#" in self.said(), "the greeting shows the link")
        token = re.findall(r"/setup#([\w-]+)", self.said())[-1]
        asked = {"token": token, "address": OPERATOR_ADDRESS, "password": OPERATOR_PASSWORD}
        answer = self.post("/api/v1/setup", json=asked)
        assert answer.status_code == 201, answer.text
        account_id: str = answer.json()["account_id"]
        return account_id

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, f"the process ended: {self.said()}"
        return self.get("/readyz").status_code == 200

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM, within_s: float = READY_S) -> int:
        self.send(number)
        return self.process.wait(within_s)

    def said(self) -> str:
        return (self.home / f"said-{self.port}.txt").read_text()


@dataclass
class Pool:
    """A home, and the processes that work on it."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    loads: bool = False
    """Whether each process loads the program and makes its cluster, as a user's does: seconds of a processor."""

    def up(self, *arguments: str, port: int | None = None, **settings: str) -> Running:
        return self._start("up", arguments, settings, port or free_port())

    def control(self, *arguments: str, port: int | None = None, **settings: str) -> Running:
        return self._start("control", arguments, settings, port or free_port())

    def run(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """One command, to its end. It talks to the process that was started first."""
        port = self.running[0].port if self.running else free_port()
        environment = clean_environment(self.home, port, {**self.settings, **settings})
        return ended(*arguments, stdin="", environment=environment, within_s=60)

    def json(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _start(self, command: str, arguments: tuple[str, ...], settings: Mapping[str, str], port: int) -> Running:
        environment = clean_environment(self.home, port, {**self.settings, **settings})
        if not self.loads and "TIDEMILL_DATABASE_URL" not in environment:
            give_cluster(self.home)
        with (self.home / f"said-{port}.txt").open("w") as said:
            process = (
                subprocess.Popen([TIDEMILL, command, *arguments], env=environment, stdout=said, stderr=said, text=True)
                if self.loads
                else begun(command, *arguments, environment=environment, said=said.fileno())
            )
        started = Running(process, port, self.home)
        self.running.append(started)
        return started


@contextmanager
def pool_in(home: Path, *, loads: bool = False, **settings: str) -> Iterator[Pool]:
    """A pool whose processes are all gone at the end, whatever the test did."""
    pool = Pool(home, settings, loads=loads)
    try:
        yield pool
    finally:
        for started in reversed(pool.running):
            if started.process.poll() is None:
                started.process.terminate()
                with suppress(subprocess.TimeoutExpired, AssertionError):
                    started.process.wait(20)
                started.process.kill()
                started.process.wait()


async def _all_is_shown(home: Path) -> None:
    """An event is shown when all older transactions have ended. One of a loop may just take its time."""
    if not (home / "postgres").exists():
        return  # the database is elsewhere
    connection = await connect(attach(home).program)
    try:
        begun = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())")
        while await connection.fetchval("SELECT pg_snapshot_xmin(pg_current_snapshot())") < begun:
            await asyncio.sleep(0.01)
    finally:
        await connection.close()


def until(condition: Callable[[], bool], what: str | Callable[[], str], within_s: float = READY_S) -> None:
    """Wait for a condition; errors of the connection count as not yet."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            if condition():
                return
        except (httpx2.HTTPError, OSError):
            pass
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)
