"""A pool that everything happens to: faults by a plan that a seed draws, and a customer who goes on meanwhile.

Three control processes on one database, twenty agents in five processes. Whatever was killed is started again after a
while, by this module as an operator would. The plan is repeated by its seed; what comes of it is up to the machine.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil

from tests.worlds.forks import NOTHING, Forked, fork
from tests.worlds.pools import chaos_crowd
from tests.worlds.pools.chaos_crowd import Mood, mood_file
from tests.worlds.pools.people import People
from tests.worlds.pools.pool import Pool, Running, free_port, pool_in, until
from tests.worlds.pools.wire_agents import Door
from tests.worlds.pools.work_pools import QUICK, activate, door_of
from tidemill.core.faults import DatabaseFault
from tidemill.store.embedded.layout import ServerLayout

CROWDS = 5
EACH = 4
PROCESSES = 3
PAUSE_S = (0.2, 1.0)
AWAY_S = (0.0, 1.5)
LONG_AWAY_S = (4.0, 8.0)
ASLEEP_S = (0.5, 5.0)
RESTARTED_S = 1.0


@dataclass
class Slot:
    """A control process that is started again whenever it is down, as a service is: also when it could not start.

    The first of them keeps the database up.
    """

    pool: Pool
    is_first: bool
    running: Running
    said_before: list[str] = field(default_factory=list)
    down_until_s: float = 0.0

    @property
    def is_up(self) -> bool:
        return self.running.process.poll() is None

    def keep_up(self) -> None:
        now_s = time.monotonic()
        if not self.is_up and now_s >= self.down_until_s:
            self.down_until_s = now_s + RESTARTED_S
            self.said_before.append(self.running.said())
            self.pool.running.remove(self.running)
            self.running = (self.pool.up if self.is_first else self.pool.control)(port=self.running.port)

    def kill(self, away_s: float) -> None:
        self.down_until_s = time.monotonic() + away_s
        self.running.process.kill()
        self.running.process.wait()

    def said(self) -> str:
        return "".join([*self.said_before, self.running.said()])


@dataclass
class CrowdProcess:
    """The agents of one owner, in one process."""

    home: Path
    door: Door
    numbers: range
    random: Random
    process: Forked | None = None

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def start(self) -> None:
        if not self.is_up:
            with (self.home / "said").open("a") as said:
                streams = (NOTHING, said.fileno(), said.fileno())
                seed = self.random.getrandbits(32)
                self.process = fork(chaos_crowd.begin, self.home, self.door, self.numbers, seed, streams=streams)

    def send(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait_here(10)

    def feel(self, mood: Mood) -> None:
        mood_file(self.home).write_text(mood)


class Chaos:
    """Draws faults and does them. What has to be made good later is done while it waits."""

    def __init__(self, slots: list[Slot], crowds: list[CrowdProcess], people: People, random: Random) -> None:
        self.slots, self.crowds, self.people, self.random = slots, crowds, people, random
        self.home = slots[0].running.home
        self.done: list[str] = []
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._faults: tuple[tuple[int, Callable[[], None]], ...] = (
            (7, self._kill_control),
            (2, self._stop_control),
            (4, self._pause_control),
            (3, self._kill_postgres),
            (2, self._kill_backend),
            (6, self._end_backends),
            (3, self._pause_backend),
            (8, self._kill_crowd),
            (5, self._pause_crowd),
            (6, self._cut_links),
            (8, self._deadlines_pass),
            (2, self._jobs_run_out_of_time),
            (1, self._jobs_run_out_of_budget),
        )

    def run(self, faults: int) -> None:
        acts = [act for _, act in self._faults]
        weights = [weight for weight, _ in self._faults]
        for act in self.random.choices(acts, weights, k=faults):
            self.done.append(act.__name__.strip("_"))
            with suppress(psutil.Error, DatabaseFault):  # there is nothing to break just now, which is a fault too
                act()
            self._wait(self.random.uniform(*PAUSE_S))

    def recover(self) -> None:
        """Everything is up and awake again."""
        while self._due:
            self._wait(0.2)
        until(self._is_ready, lambda: str([slot.running.said() for slot in self.slots]), 60)

    def calm(self) -> None:
        """Everybody does their work. Agents begin anew, and hear again what they have."""
        for crowd in self.crowds:
            crowd.feel(Mood.CALM)
        self.begin_anew()

    def begin_anew(self) -> None:
        for crowd in self.crowds:
            crowd.kill()
            crowd.start()

    def _is_ready(self) -> bool:
        """Everybody is, and the database answers, also us, who lost our connection with everybody else's."""
        self._wait(1.0)
        try:
            self.people.rows("SELECT 1")
        except DatabaseFault:
            return False
        return all(slot.running.get("/readyz").status_code == 200 for slot in self.slots)

    def _wait(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while (now_s := time.monotonic()) < until_s:
            for slot in self.slots:
                slot.keep_up()
            for one in [one for one in self._due if one[0] <= now_s]:
                self._due.remove(one)
                one[1]()
            time.sleep(0.02)

    def _later(self, within_s: tuple[float, float], act: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + self.random.uniform(*within_s), act))

    # What happens to control processes

    def _kill_control(self) -> None:
        slot = self.random.choice(self.slots)
        slot.kill(self.random.uniform(*AWAY_S))

    def _stop_control(self) -> None:
        """In order; the first one would take the database with it."""
        self.random.choice(self.slots[1:]).running.send(signal.SIGTERM)

    def _pause_control(self) -> None:
        slot = self.random.choice(self.slots)
        running = slot.running
        running.send(signal.SIGSTOP)
        self._later(ASLEEP_S, lambda: running.send(signal.SIGCONT))

    # What happens to the database

    def _kill_postgres(self) -> None:
        self._postmaster().kill()

    def _kill_backend(self) -> None:
        """The server restarts itself: nobody knows what a process that was killed had done to its memory."""
        self.random.choice(self._backends()).kill()

    def _end_backends(self) -> None:
        backends = self._backends()
        for backend in self.random.sample(backends, min(3, len(backends))):
            backend.terminate()

    def _pause_backend(self) -> None:
        """Somebody else's: while we wait for our own, nobody would wake it."""
        ours = {row["pid"] for row in self.people.rows(_OUR_BACKENDS)}
        others = [one for one in self._backends() if one.pid not in ours]
        if not others:
            return
        backend = self.random.choice(others)
        backend.suspend()
        self._later((0.3, 2.0), lambda: _resume(backend))

    def _postmaster(self) -> psutil.Process:
        try:
            return psutil.Process(int((ServerLayout.of(self.home).data / "postmaster.pid").read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            raise psutil.NoSuchProcess(0) from None

    def _backends(self) -> list[psutil.Process]:
        found = [one for one in self._postmaster().children() if "[local]" in " ".join(one.cmdline())]
        if not found:
            raise psutil.NoSuchProcess(0)
        return found

    # What happens to agents

    def _kill_crowd(self) -> None:
        crowd = self.random.choice(self.crowds)
        crowd.kill()
        self._later(LONG_AWAY_S if self.random.random() < 0.25 else AWAY_S, crowd.start)

    def _pause_crowd(self) -> None:
        crowd = self.random.choice(self.crowds)
        process = crowd.process
        assert process
        process.send_signal(signal.SIGSTOP)
        self._later(ASLEEP_S, lambda: process.send_signal(signal.SIGCONT))

    def _cut_links(self) -> None:
        self.random.choice(self.crowds).send(signal.SIGUSR1)

    # What happens to work

    def _deadlines_pass(self) -> None:
        """For a third of what is at work."""
        third = self.random.randrange(3)
        self._write(
            "UPDATE lease SET due_us = -1 WHERE state <> 'submitted' "
            f"AND get_byte(uuid_send(attempt_id), 15) % 3 = {third}"
        )

    def _jobs_run_out_of_time(self) -> None:
        self._write(f"UPDATE job SET deadline_at = now() WHERE id IN ({_ANY_AT_WORK})")

    def _jobs_run_out_of_budget(self) -> None:
        self._write(f"UPDATE job SET budget_uc = 1 WHERE id IN ({_ANY_AT_WORK})")

    def _write(self, sql: str) -> None:
        self.people.rows(sql)


_OUR_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name')"
_ANY_AT_WORK = "SELECT id FROM job WHERE state = 'running' AND closing IS NULL ORDER BY id DESC LIMIT 1"


def _resume(process: psutil.Process) -> None:
    with suppress(psutil.Error):
        process.resume()


@contextmanager
def processes_in(home: Path) -> Iterator[list[Slot]]:
    """Three control processes; the first has the database, and a set-up pool."""
    with pool_in(home, **QUICK) as pool:
        first = pool.up()
        first.until_ready()
        others = [pool.control(port=free_port()) for _ in range(PROCESSES - 1)]
        first.set_up()
        for other in others:
            other.until_ready()
        yield [Slot(pool, one is first, one) for one in (first, *others)]


@contextmanager
def crowds_in(home: Path, slots: list[Slot], people: People, random: Random) -> Iterator[list[CrowdProcess]]:
    """Twenty nodes of five owners that may get work, all of them wild. They are gone at the end."""
    crowds = []
    for number in range(CROWDS):
        place = home / f"crowd-{number}"
        place.mkdir()
        door = door_of([slot.running for slot in slots], people, EACH)
        crowds.append(CrowdProcess(place, door, range(number * EACH, (number + 1) * EACH), random))
    try:
        for crowd in crowds:
            crowd.feel(Mood.WILD)
            crowd.start()
        people.run(activate(home, CROWDS * EACH))
        yield crowds
    finally:
        for crowd in crowds:
            crowd.kill()
