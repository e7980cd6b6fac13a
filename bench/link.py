"""What links cost: thousands of agents on one control process, on real sockets with signed hellos.

Prints one line of JSON. `cpu_pct_per_1000` is the processor time of the control process with heartbeats every 30 s and
telemetry kept, `rss_mib_per_1000` what its memory grew by, `storm_s` how long it takes until all are back after all
links were cut at once, and `channel_ratio` the bytes a second through one channel over those of a plain asyncio stream
with 64 KiB frames, the lesser of both directions, measured in turns. `--memory` leaves the database out of it: the
same server with a registry in memory, to know its own share.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import resource
import secrets
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import psutil
import uvloop
from pools import pool_of_its_own

from tidemill.core.clock import Instant
from tidemill.core.settings import Settings
from tidemill.core.signatures import Identity, fingerprint
from tidemill.link.held.door import LinkRules
from tidemill.link.held.registry import (
    Acknowledgement,
    AdmissionGrant,
    AgentCall,
    BeatArrival,
    LinkGeneration,
    ReportsAnswer,
    ReportsArrival,
    Supersession,
)
from tidemill.link.held.server import Links
from tidemill.wire.channels import ChannelEnded, ChannelHasRoom, ChannelReceived
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink, Closed, Joined, LinkEvent, TurnedAway
from tidemill.wire.link_frames import agent_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import BeatMessage, DeviceBeatMessage

BEAT_S = 30
CLIENTS = 2
FRAME = 64 * 1024
TRANSFER = 16 * 1024 * 1024
ROUNDS = 50
AT_ONCE = 200


def now() -> Instant:
    return Instant(time.monotonic_ns() // 1000)


# The agents


class Agent(asyncio.Protocol):
    """One agent's end. It comes back by itself, from an address of its own, until it is told to stop."""

    def __init__(self, crowd: "Crowd", number: int) -> None:
        self.crowd = crowd
        self.identity = Identity(secrets.token_bytes(32))
        self.instance = secrets.token_bytes(16)
        self.node_id: bytes | None = None
        self.address = f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"
        self.beats = 0
        self.transport: asyncio.Transport | None = None
        self.link: AgentLink | None = None
        self.arrived = 0
        self.channel_over = asyncio.Event()
        self.room = asyncio.Event()

    async def dial(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        crowd = self.crowd
        token = crowd.token if self.node_id is None else None
        applicant = CallingAgent(self.identity, crowd.fingerprint, "tidemill/0.1.0", self.instance, self.node_id, token)
        self.link = AgentLink(applicant, secrets.token_bytes(32), None, now())
        self.framed = agent_end(self.link, f"ws://127.0.0.1:{crowd.port}/link")
        self.full = False
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self, "127.0.0.1", crowd.port, local_addr=(self.address, 0)
            )
        except OSError:
            crowd.again(self)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=4 * FRAME)
        self.flush()

    def data_received(self, data: bytes) -> None:
        for event in self.framed.receive(data, now()):
            self.meant(event)
        self.flush()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.here.discard(self)
        if not self.crowd.stopping:
            self.crowd.again(self)

    def flush(self) -> None:
        while not self.full and self.transport and not self.transport.is_closing():
            pieces, events = self.framed.to_send(FRAME)
            if not pieces:
                return
            self.transport.writelines(pieces)
            if any(isinstance(event, ChannelHasRoom) for event in events):
                self.room.set()

    def meant(self, event: LinkEvent) -> None:
        match event:
            case Joined(node_id):
                self.node_id = node_id
                self.crowd.joined(self)
            case TurnedAway(code):
                self.crowd.refused[code] = self.crowd.refused.get(code, 0) + 1
            case Closed(code):
                self.crowd.refused[code] = self.crowd.refused.get(code, 0) + 1
                assert self.transport
                self.transport.abort()
            case ChannelReceived(number, chunk):
                assert self.link
                self.arrived += len(chunk)
                self.link.channels.use_up(number, len(chunk))
            case ChannelEnded():
                self.channel_over.set()

    def beat(self) -> None:
        assert self.link
        self.beats += 1
        device = DeviceBeatMessage(50 + self.beats % 40, 20_000, 60 + self.beats % 9, 250)
        self.link.beat(BeatMessage(self.beats, 20, 16_000, 500_000, 12, [device] * 2))
        self.link.tick(now())
        self.flush()

    async def transfer(self, *, down: int, up: int) -> float:
        """Bytes a second through a channel of the purpose that agents measure their links by."""
        assert self.link
        self.arrived = 0
        self.channel_over.clear()
        began = time.perf_counter()
        about = json.dumps({"down_bytes": down, "up_bytes": up}).encode()
        number = self.link.channels.open("speed", about)
        assert number
        self.flush()
        for _ in range(0, up, FRAME):
            self.room.clear()
            room = self.link.channels.write(number, bytes(FRAME))
            self.flush()
            if not room:
                await self.room.wait()
        await asyncio.wait_for(self.channel_over.wait(), 60)
        assert self.arrived == down, (self.arrived, down)
        took = time.perf_counter() - began
        self.link.channels.end(number)
        self.flush()
        return (down + up) / took


class Crowd:
    """The agents of one client process."""

    def __init__(self, port: int, known_by: str, token: str | None, numbers: range) -> None:
        self.port = port
        self.fingerprint = known_by
        self.token = token
        self.agents = [Agent(self, number) for number in numbers]
        self.here: set[Agent] = set()
        self.refused: dict[str, int] = {}
        self.stopping = False
        self.all_here = asyncio.Event()
        self.tasks: set[asyncio.Future[None]] = set()

    def again(self, agent: Agent) -> None:
        self._start(agent.dial(random.uniform(0.2, 1.2)))

    def joined(self, agent: Agent) -> None:
        self.here.add(agent)
        if len(self.here) == len(self.agents):
            self.all_here.set()

    async def join(self, spread_s: float) -> float:
        began = time.monotonic()
        self.all_here.clear()
        for agent in self.agents:
            self._start(agent.dial(random.uniform(0, spread_s)))
        await asyncio.wait_for(self.all_here.wait(), 300)
        return time.monotonic() - began

    async def storm(self) -> float:
        """All links are reset at once; each agent waits up to a second, as agents do, and comes back."""
        began = time.monotonic()
        self.all_here.clear()
        for agent in list(self.here):
            if agent.transport:
                reset = agent.transport.get_extra_info("socket")
                reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                agent.transport.abort()
        await asyncio.wait_for(self.all_here.wait(), 120)
        return time.monotonic() - began

    async def beat(self, for_s: float) -> None:
        """Each agent beats every 30 s, all of them evenly."""
        began, sent = time.monotonic(), 0
        while (passed := time.monotonic() - began) < for_s:
            due = int(passed * len(self.agents) / BEAT_S)
            for number in range(sent, due):
                agent = self.agents[number % len(self.agents)]
                if agent.link and agent.link.state is LinkPhase.OPEN:
                    agent.beat()
            sent = due
            await asyncio.sleep(0.05)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)


async def client(pipe: Connection, crowd: Crowd, plain: int) -> None:
    """Do what the benchmark says until it says no more."""
    loop = asyncio.get_running_loop()
    while asked := await loop.run_in_executor(None, pipe.recv):
        what, *arguments = asked
        match what:
            case "join":
                pipe.send(await crowd.join(*arguments))
            case "storm":
                pipe.send(await crowd.storm())
            case "beat":
                await crowd.beat(*arguments)
                pipe.send(len(crowd.here))
            case "channel":
                pipe.send(await crowd.agents[0].transfer(**arguments[0]))
            case "plain":
                pipe.send(await plain_transfer(plain, **arguments[0]))
            case "refused":
                pipe.send(crowd.refused)
    crowd.stopping = True
    for agent in crowd.agents:
        if agent.transport:
            agent.transport.abort()


def run_client(pipe: Connection, port: int, known_by: str, token: str | None, numbers: range, plain: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def run() -> None:
        await client(pipe, Crowd(port, known_by, token, numbers), plain)

    uvloop.run(run())


# The plain stream that channels are compared with


async def plain_transfer(port: int, *, down: int, up: int) -> float:
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * FRAME)
    writer.write(down.to_bytes(8, "big") + up.to_bytes(8, "big"))
    await send_frames(writer, up)
    await read_frames(reader, down)
    if up:
        await reader.readexactly(1)
    took = time.perf_counter() - began
    writer.close()
    return (down + up) / took


async def send_frames(writer: asyncio.StreamWriter, count: int) -> None:
    for _ in range(0, count, FRAME):
        writer.write(FRAME.to_bytes(4, "big"))
        writer.write(bytes(FRAME))
        await writer.drain()


async def read_frames(reader: asyncio.StreamReader, count: int) -> None:
    while count > 0:
        size = int.from_bytes(await reader.readexactly(4), "big")
        count -= len(await reader.readexactly(size))


async def plain_serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    down = int.from_bytes(await reader.readexactly(8), "big")
    up = int.from_bytes(await reader.readexactly(8), "big")
    await read_frames(reader, up)
    if up:
        writer.write(b"!")
    await send_frames(writer, down)
    writer.close()


def run_plain(listener: socket.socket) -> None:
    async def run() -> None:
        server = await asyncio.start_server(plain_serve, sock=listener, limit=4 * FRAME)
        await server.serve_forever()

    uvloop.run(run())


# The control process


class MemoryRegistry:
    """A registry that keeps what it must and writes nothing."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, UUID] = {}
        self.generations: dict[UUID, int] = {}
        self.newest: dict[UUID, BeatArrival] = {}

    async def admit(self, callers: Sequence[AgentCall]) -> Sequence[AdmissionGrant]:
        answers = []
        for caller in callers:
            node_id = self.nodes.setdefault(caller.hello.key, UUID(bytes=secrets.token_bytes(16)))
            self.generations[node_id] = self.generations.get(node_id, 0) + 1
            answers.append(AdmissionGrant(LinkGeneration(node_id, self.generations[node_id]), 0))
        return answers

    async def heard(self, beats: Sequence[BeatArrival], links: Sequence[LinkGeneration]) -> Sequence[Supersession]:
        self.newest.update({beat.link.node_id: beat for beat in beats})
        return ()

    async def reported(self, heard: Sequence[ReportsArrival]) -> Sequence[ReportsAnswer]:
        return [Acknowledgement(one.link, one.reports.first + len(one.reports.items) - 1) for one in heard]

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        pass

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        pass


class MonotonicClock:
    trusted = True

    def now(self) -> Instant:
        return now()


def run_memory_server(listener: socket.socket, identity: Identity) -> None:
    """The server of a control process with nothing behind it."""
    from tidemill.serving.http_server import create_server

    async def app(*_: Any) -> None:
        raise AssertionError("nothing but links is asked for")

    async def run() -> None:
        links = Links(MemoryRegistry(), identity, MonotonicClock(), LinkRules(beat_ms=BEAT_S * 1000))
        server = create_server(app, Settings(home=Path("/nowhere")), links)
        server.on_started = lambda: None
        running = asyncio.create_task(links.run())
        await server.serve([listener])
        running.cancel()

    uvloop.run(run())


def listening() -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(4096)
    return listener


class Clients:
    """The client processes: each is told the same, and answers."""

    def __init__(self, start: Any, port: int, known_by: str, token: str | None, agents: int, plain: int) -> None:
        self.pipes: list[Connection] = []
        self.processes = []
        for number in range(CLIENTS):
            ours, theirs = start.Pipe()
            numbers = range(agents * number // CLIENTS, agents * (number + 1) // CLIENTS)
            process = start.Process(target=run_client, args=(theirs, port, known_by, token, numbers, plain))
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)

    def all(self, *asked: object) -> list[Any]:
        for pipe in self.pipes:
            pipe.send(asked)
        return [pipe.recv() for pipe in self.pipes]

    def first(self, *asked: object) -> Any:
        self.pipes[0].send(asked)
        return self.pipes[0].recv()

    def stop(self) -> None:
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            pipe.send(None)
            process.join(20)
            if process.is_alive():
                process.kill()


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def mib(process: psutil.Process) -> float:
    return process.memory_info().rss / 1024 / 1024


@contextmanager
def seated(servers: Sequence[int], client: int) -> Iterator[None]:
    """Both servers on one processor and the client on another: where a scheduler puts them makes half of the speed."""
    every = psutil.Process().cpu_affinity()
    seats = [(pid, every[:1]) for pid in servers] + [(client, every[-1:])]
    for pid, seat in seats:
        psutil.Process(pid).cpu_affinity(seat)
    try:
        yield
    finally:
        for pid, _ in seats:
            psutil.Process(pid).cpu_affinity(every)


def channel_ratio(clients: Clients) -> float:
    """The lesser of both directions: plain time over time through the channel, all turns together."""
    ratios = []
    for wanted in ({"down": TRANSFER, "up": 0}, {"down": 0, "up": TRANSFER}):
        through_s = plain_s = 0.0
        for _ in range(ROUNDS):
            through_s += TRANSFER / clients.first("channel", wanted)
            plain_s += TRANSFER / clients.first("plain", wanted)
        ratios.append(plain_s / through_s)
        total_mb = ROUNDS * TRANSFER / 1e6
        say(f"{wanted}: {total_mb / through_s:.0f} MB/s of {total_mb / plain_s:.0f} MB/s")
    return min(ratios)


def await_links(port: int) -> None:
    """Until the control process takes links, which is when it has loaded what it needs."""
    asked = b"GET /elsewhere HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as probe:
        probe.sendall(asked)
        assert b"404" in probe.recv(1000)


def measure(clients: Clients, process: psutil.Process, plain: int, agents: int, beat_s: float) -> dict[str, float]:
    idle_mib, before, began = mib(process), cpu_s(process), time.monotonic()
    time.sleep(3)
    idle = (cpu_s(process) - before) / (time.monotonic() - began)
    say(f"joined in {max(clients.all('join', agents / AT_ONCE / 2)):.1f} s; refused {clients.all('refused')}")
    with seated((process.pid, plain), clients.processes[0].pid):
        ratio = channel_ratio(clients)
    clients.all("beat", 5)
    grown_mib = mib(process) - idle_mib
    before, began = cpu_s(process), time.monotonic()
    here = sum(clients.all("beat", beat_s))
    share = (cpu_s(process) - before) / (time.monotonic() - began)
    before = cpu_s(process)
    storm_s = max(clients.all("storm"))
    say(f"storm took {cpu_s(process) - before:.1f} s of the processor; refused {clients.all('refused')}")
    return {
        "agents": here,
        "cpu_pct_per_1000": round(100 * share / here * 1000, 2),
        "rss_mib_per_1000": round(grown_mib / here * 1000, 1),
        "storm_s": round(storm_s, 1),
        "channel_ratio": round(ratio, 2),
        "idle_cpu_pct": round(100 * idle, 2),
        "mib_after_storm": round(mib(process)),
    }


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def bench(start: Any, process: psutil.Process, door: tuple[int, str, str | None], options: Any) -> dict[str, float]:
    await_links(door[0])
    plain = listening()
    plain_server = start.Process(target=run_plain, args=(plain,), daemon=True)
    plain_server.start()
    clients = Clients(start, *door, options.agents, plain.getsockname()[1])
    try:
        return measure(clients, process, plain_server.pid, options.agents, options.seconds)
    finally:
        clients.stop()
        plain_server.terminate()


def in_memory(start: Any, options: Any) -> dict[str, float]:
    identity, listener = Identity(secrets.token_bytes(32)), listening()
    server = start.Process(target=run_memory_server, args=(listener, identity))
    server.start()
    port = listener.getsockname()[1]
    try:
        return bench(start, psutil.Process(server.pid), (port, fingerprint(identity.key), None), options)
    finally:
        server.terminate()
        server.join(10)


def with_a_pool(start: Any, options: Any) -> dict[str, float]:
    """A pool of its own, with its database, and a join token that is good for every agent."""
    with pool_of_its_own() as pool:
        _, secret, known_by = join_token(pool.url, pool.setup_token, options.agents).split(".")
        return bench(start, psutil.Process(pool.pid), (pool.port, known_by, secret), options)


def join_token(api: str, setup: str, uses: int) -> str:
    known = {"address": "bench@pool.example", "password": secrets.token_hex(12)}
    httpx2.post(f"{api}/setup", json=known | {"token": setup}).raise_for_status()
    token = httpx2.post(f"{api}/auth/login", json=known).raise_for_status().json()["access_token"]
    bearer = {"authorization": f"Bearer {token}"}
    httpx2.post(f"{api}/account/roles", json={"roles": ["provider"]}, headers=bearer).raise_for_status()
    wanted = {"name": "bench", "uses": uses}
    made = httpx2.post(f"{api}/nodes/join-tokens", json=wanted, headers=bearer)
    return str(made.raise_for_status().json()["token"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--agents", type=int, default=5_000, help="how many agents connect")
    parser.add_argument("--seconds", type=float, default=60, help="how long beats are measured")
    parser.add_argument("--memory", action="store_true", help="without a database: the server's own share")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    start = multiprocessing.get_context("spawn")
    figures = in_memory(start, options) if options.memory else with_a_pool(start, options)
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
