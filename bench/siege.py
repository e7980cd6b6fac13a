"""Whether a pool under attack serves its customers and agents. Prints one line of JSON.

A pool of its own, with its default limits, serves customers who read and order at a fixed rate, and agents who beat,
work and report; each in a process of their own. Meanwhile somebody attacks it, one way a phase:

- `half_open`: 20 addresses hold requests whose headers never end;
- `many_keys`: an account with 100 keys asks for quotes and holds streams of events;
- `stalled_uploads`: 200 uploads send 4 MiB each, and then nothing;
- `flooding_node`: a node tells long lines, progress and beats without end;
- `sleeping_tasks`: tasks sleep and write random bytes, so that the house executes each of them twice.

Attackers get half a core in all: their process is stopped (SIGSTOP) whenever it has had more, and continued later. By
turns with each attack the same is measured with a burner, which takes just the processor time that the attackers took:
a machine has few cores, and is not always as fast. `ratio` is the p99 during the attack over that with the burner. A
phase holds if at least 99.9 % of reads, orders and reports succeed, no ratio is above 3, and the control process grows
by no more than the memory that bodies may take (`http.body_memory_bytes`) and a quarter. `others_cpu` tells how many
cores were taken by processes that have nothing to do with it: where it is not near zero, the ratios say little.

Agents and the house are simulated at the wire: what tasks cost a node is not what is asked here. A read is over when
its answer is there, an order when it is paid, a report when the pool says that it is safe.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2
import psutil
from siege_attackers import ATTACKS, Target, capped, cpu_s, run_attack
from siege_honest import JOBS, Rates, Served, bearer, run_agents, run_customers

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import house_token
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import Running, pool_in
from tests.worlds.pools.wire_agents import Door
from tests.worlds.pools.work_pools import activate, door_of
from tidemill.core.accounts.keys import KEYS_MAX
from tidemill.core.accounts.roles import Role, Scope

PHASES = [name for name in ATTACKS if name != "burn"]
ATTACKERS_SHARE = 0.5
SUCCESS_LEAST = 0.999
RATIO_MAX = 3.0
GROWTH_MAX_MIB = 320
READS_PER_S, ORDERS_PER_S = 60.0, 2.0
CUSTOMERS = 15
"""So many stay well below what one may ask for: ten times a second."""

OWNERS, HOUSE = range(6), range(100, 101)
CPU_LEAST = 0.01
RAMP_S = {"burn": 2.0, "flooding_node": 20.0}
USUAL_RAMP_S = 6.0
"""Until what an attack begins with has arrived; and until the pool gives tasks to a node that has come back."""

CALM_S, CALMED_S = 180.0, 2.0
MIB = 1024 * 1024

START = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Measured:
    """How everybody was served, what the attackers and others took meanwhile, and what the control process grew by."""

    reads: Served = field(default_factory=Served)
    orders: Served = field(default_factory=Served)
    reports: Served = field(default_factory=Served)
    attackers_cpu: float = 0.0
    others_cpu: float = 0.0
    growth_mib: float = 0.0

    def __add__(self, other: "Measured") -> "Measured":
        """Both together; of what was taken, the most."""
        return Measured(
            self.reads + other.reads,
            self.orders + other.orders,
            self.reports + other.reports,
            max(self.attackers_cpu, other.attackers_cpu),
            max(self.others_cpu, other.others_cpu),
            max(self.growth_mib, other.growth_mib),
        )

    @property
    def kinds(self) -> dict[str, Served]:
        return {"reads": self.reads, "orders": self.orders, "reports": self.reports}

    @property
    def success(self) -> float:
        return min(served.success for served in self.kinds.values())

    def ratios_to(self, burner: "Measured") -> dict[str, float]:
        return {kind: round(served.p99_s / burner.kinds[kind].p99_s, 2) for kind, served in self.kinds.items()}

    def figures(self) -> dict[str, Any]:
        return {
            **{kind: served.figures() for kind, served in self.kinds.items()},
            "attackers_cpu": round(self.attackers_cpu, 3),
            "others_cpu": round(self.others_cpu, 2),
            "growth_mib": round(self.growth_mib),
        }


class OtherWork:
    """What processes took that belong neither to the pool nor to this benchmark, in cores."""

    def __init__(self, pool_pid: int) -> None:
        self._pids = (pool_pid, psutil.Process().pid)
        self._began, self._before_s = time.monotonic(), self._others_s()

    def cores(self) -> float:
        return max(0.0, (self._others_s() - self._before_s) / (time.monotonic() - self._began))

    def _others_s(self) -> float:
        busy = psutil.cpu_times()
        all_s = sum(busy) - busy.idle - getattr(busy, "iowait", 0.0)
        ours = {one for pid in self._pids for one in _family(psutil.Process(pid))}
        return float(all_s - sum(cpu_s(one) for one in ours if one.is_running()))


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


@dataclass
class Siege:
    """A pool, those who must be served, and those who attack."""

    running: Running
    people: People
    shop: Shop
    seconds: float
    rounds: int
    customers_pipe: Connection
    agents_pipe: Connection
    customers: Sequence[Customer]
    flooders_door: Door
    attackers: dict[str, Customer] = field(default_factory=dict)

    def phase(self, name: str) -> dict[str, Any]:
        """An attack, and a burner with the same processor time, by turns."""
        attacked, burner = Measured(), Measured()
        for _ in range(self.rounds):
            attack = self.measured(name, ATTACKERS_SHARE)
            self.calm_down(name)
            attacked += attack
            burner += self.measured("burn", max(CPU_LEAST, attack.attackers_cpu))
        ratios = attacked.ratios_to(burner)
        holds = attacked.success >= SUCCESS_LEAST and max(ratios.values()) <= RATIO_MAX
        return {
            "holds": holds and attacked.growth_mib <= GROWTH_MAX_MIB,
            "ratio": ratios,
            "attacked": attacked.figures(),
            "burner": burner.figures(),
        }

    def make_ready(self) -> None:
        """All nodes are known, the flooding one too, which comes back as the same node; and all is warm."""
        nodes = len(OWNERS) + len(HOUSE) + 1
        with self.attack("flooding_node", self.target("flooding_node"), ATTACKERS_SHARE):
            self.people.run(asyncio.wait_for(activate(self.running.home, nodes), CALM_S))
        self.calm_down("flooding_node")
        self.served()

    def measured(self, name: str, share: float) -> "Measured":
        """How everybody was served during one attack."""
        target = self.target(name)
        control = psutil.Process(self.running.process.pid)
        before_mib = control.memory_info().rss / MIB
        with self.attack(name, target, share) as attacker, watched(control) as peak:
            time.sleep(RAMP_S.get(name, USUAL_RAMP_S))
            before_s, began, others = cpu_s(attacker), time.monotonic(), OtherWork(self.running.process.pid)
            served = self.served()
            taken = (cpu_s(attacker) - before_s) / (time.monotonic() - began)
            busy = others.cores()
        served = replace(served, attackers_cpu=taken, others_cpu=busy, growth_mib=max(peak) / MIB - before_mib)
        say(f"{name}: {json.dumps(served.figures())}")
        return served

    def served(self) -> "Measured":
        """What customers and agents measure, both at once."""
        tokens = [self.people.session(customer.person).access_token for customer in self.customers]
        self.agents_pipe.send(self.seconds)
        self.customers_pipe.send((tokens, Rates(READS_PER_S, ORDERS_PER_S, self.seconds)))
        reads, orders = self.customers_pipe.recv()
        return Measured(reads, orders, self.agents_pipe.recv())

    @contextmanager
    def attack(self, name: str, target: Target, share: float) -> Iterator[psutil.Process]:
        """A process that attacks, gone at the end."""
        attacker = START.Process(target=run_attack, args=(name, target), daemon=True)
        attacker.start()
        assert attacker.pid
        try:
            with capped(attacker.pid, share):
                yield psutil.Process(attacker.pid)
            assert attacker.exitcode is None, f"{name} has ended by itself"
        finally:
            attacker.kill()
            attacker.join()

    def target(self, name: str) -> Target:
        """What an attacker brings: an account with little money, its keys, and what lets a node in."""
        if name not in self.attackers:
            self.attackers[name] = self.shop.customer(10)
        attacker = self.attackers[name]
        tokens = self.keys(attacker) if name == "many_keys" else [self.people.session(attacker.person).access_token]
        return Target(self.running.port, tokens, self.running.home, self.flooders_door)

    def keys(self, attacker: Customer) -> list[str]:
        scopes = (Scope.JOBS_READ, Scope.JOBS_WRITE, Scope.EVENTS_READ)
        return [self.people.key(attacker.person, Role.CUSTOMER, *scopes).secret for _ in range(KEYS_MAX)]

    def calm_down(self, name: str) -> None:
        """What the attacker has ordered is called off, and what was delivered is checked to its end, so that the next
        measurement begins with nothing in hand."""
        headers = bearer(self.people.session(self.attackers[name].person).access_token)
        with httpx2.Client(base_url=self.running.url, headers=headers, timeout=30) as client:
            for state in ("queued", "running"):
                for job in client.get(JOBS, params={"state": state, "limit": 100}).json().get("items", []):
                    with suppress(httpx2.HTTPError):
                        client.post(f"{JOBS}/{job['id']}/cancel")
        deadline = time.monotonic() + CALM_S
        while self.people.rows("SELECT FROM lease UNION ALL SELECT FROM task_queue LIMIT 1"):
            assert time.monotonic() < deadline, f"the work of {name} does not end"
            time.sleep(0.2)
        time.sleep(CALMED_S)


@contextmanager
def watched(process: psutil.Process) -> Iterator[list[int]]:
    """The memory of a process, again and again."""
    seen, over = [process.memory_info().rss], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            seen.append(process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


@contextmanager
def beside(act: Any, *arguments: Any) -> Iterator[Connection]:
    """A process that does something, and the pipe to it; it ends when it is told nothing more."""
    ours, theirs = START.Pipe()
    process = START.Process(target=act, args=(theirs, *arguments), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        with suppress(OSError):
            ours.send(None)
        process.join(10)
        process.kill()
        process.join()


@contextmanager
def besieged(home: Path, seconds: float, rounds: int) -> Iterator[Siege]:
    with pool_in(home, loads=True) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            shop = Shop(running, people)
            owners = (door_of([running], people, len(OWNERS)), OWNERS)
            _, secret, known_by = house_token(running, people).split(".")
            house = (Door([running.port], known_by, secret), HOUSE)
            with (
                beside(run_customers, running.url) as customers_pipe,
                beside(run_agents, home, owners, house) as agents_pipe,
            ):
                customers = [shop.customer(1_000) for _ in range(CUSTOMERS)]
                door = door_of([running], people, 1)
                yield Siege(running, people, shop, seconds, rounds, customers_pipe, agents_pipe, customers, door)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--seconds", type=float, default=12, help="how long one measurement takes")
    parser.add_argument("--rounds", type=int, default=2, help="how often each attack and its burner are measured")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=PHASES, help="only these attacks")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with reachable_directory() as home, besieged(home, options.seconds, options.rounds) as siege:
        siege.make_ready()
        unloaded = siege.served()
        phases = {name: siege.phase(name) for name in options.phases}
    holds = all(phase["holds"] for phase in phases.values())
    sys.stdout.write(json.dumps({"holds": holds, "unloaded": unloaded.figures(), **phases}) + "\n")


if __name__ == "__main__":
    main()
