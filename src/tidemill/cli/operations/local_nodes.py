"""The nodes of a demonstration: five agents on this machine, each a process with a home and an identity of its own.

They join as any machine does: with a token of their owner, and by passing the challenge. They differ in speed by their
number of processors, which is in their names, and in price by their owners' rules. Nodes that joined before start all
at once. New nodes that share a processor are challenged one after the other, so that each is measured at its full
speed. None of them outlives the process that started it.
"""

import asyncio
import os
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from tidemill.agent.home.home import Home, prepare
from tidemill.agent.home.identity import read_membership, update_membership
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.home.status_file import read_status
from tidemill.cli.agent.agent_status import sandboxes
from tidemill.cli.client.http_calls import PoolClient
from tidemill.cli.terminal.output import CommandRefused
from tidemill.control.operations.demonstration import key_of
from tidemill.core.faults import Fault
from tidemill.core.operations.demonstration import NODES_FOLDER, OPERATOR, OWNERS
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings
from tidemill.core.settings.process_addresses import own_address
from tidemill.host import bound_child
from tidemill.host.clocks import wall

log = structlog.get_logger()

CHOOSES_PROCESSORS = hasattr(os, "sched_setaffinity")

_NODES = tuple(
    zip((*OWNERS, OPERATOR), (1.0, 0.5, 0.5, 0.25, 0.5), ("0.2", "0.08", "0.12", "0.05", "0.1"), strict=True)
)
"""The owner of each node, its share of the processors, and its price for an hour, in credits."""

_POLL_S = 0.3
_READY_S = 120.0
_LEAVE_S = 5.0
_TOKEN_S = 600
_NOT_LINKED = "It has no link to the pool yet."
_TRIED_KIND = "matmul"


@dataclass(frozen=True)
class LocalNode:
    """A node's owner, its price for an hour in credits, and the processors it may use."""

    owner: str
    price: str
    processors: tuple[int, ...]

    @property
    def name(self) -> str:
        cores = len(self.processors)
        return f"{'house' if self.owner == OPERATOR else self.owner}-{cores}-core{'' if cores == 1 else 's'}"

    @property
    def label(self) -> str:
        return f"cores={len(self.processors)}"


def local_nodes(all_processors: Sequence[int]) -> list[LocalNode]:
    """The nodes on a machine with these processors. Each begins at a different processor."""
    nodes = []
    for index, (owner, share, price) in enumerate(_NODES):
        count = max(1, round(len(all_processors) * share)) if CHOOSES_PROCESSORS else len(all_processors)
        processors = (all_processors[(index + number) % len(all_processors)] for number in range(count))
        nodes.append(LocalNode(owner, price, tuple(processors)))
    return nodes


def waves(nodes: Sequence[LocalNode]) -> list[list[LocalNode]]:
    """Groups of nodes that can be measured at the same time, because they share no processor; in the given order."""
    waves_found: list[list[LocalNode]] = []
    for node in nodes:
        free = (wave for wave in waves_found if not any({*node.processors} & {*other.processors} for other in wave))
        if (wave := next(free, None)) is None:
            waves_found.append(wave := [])
        wave.append(node)
    return waves_found


def local_sandbox(home: Path) -> str | None:
    """The sandboxes of a demonstration's nodes, as their statuses say; None if none says it yet."""
    for file in sorted(Home(path).status for path in (home / NODES_FOLDER).glob("*") if path.is_dir()):
        if (last_status := read_status(file, wall())) and "work" in last_status.fields:
            return sandboxes(last_status.fields)
    return None


class LocalNodes:
    """The nodes' processes, from when the pool serves until it stops."""

    def __init__(self, settings: Settings, announce: Callable[..., None], to_try: Mapping[str, str]) -> None:
        self._home = settings.home
        self._pool = PoolClient(own_address(settings))
        self._announce = announce
        self._to_try = to_try
        self._nodes = local_nodes(_processors())
        self._processes: dict[LocalNode, Process] = {}
        self._starting: asyncio.Task[None] | None = None
        self._began = 0.0
        self._ready = 0

    def begin(self) -> None:
        self._began = time.monotonic()
        self._starting = asyncio.create_task(self._start_all())
        self._starting.add_done_callback(_tell_bug)

    def stop(self) -> None:
        """Tell all of them to end. `stopped` waits for it."""
        if self._starting:
            self._starting.cancel()
        for process in self._running():
            process.terminate()

    async def stopped(self) -> None:
        self.stop()
        if self._starting:
            await asyncio.gather(self._starting, return_exceptions=True)
        self.stop()  # one may have been started before the cancellation took effect
        if leaving := [asyncio.create_task(process.wait()) for process in self._running()]:
            await asyncio.wait(leaving, timeout=_LEAVE_S)
        for process in self._running():
            process.kill()

    def _running(self) -> list[Process]:
        return [process for process in self._processes.values() if process.returncode is None]

    async def _start_all(self) -> None:
        try:
            joined = [node for node in self._nodes if self._node_id(node)]
            links = [await self._return(node) for node in joined]
            await asyncio.gather(*map(self._until_ready, joined, links))
            for wave in waves([node for node in self._nodes if node not in joined]):
                for node in wave:
                    await self._join(node)
                await asyncio.gather(*(self._until_ready(node) for node in wave))
        except (Fault, CommandRefused, OSError) as error:
            self._announce(f"Not all nodes of the demonstration are there. {error}")

    async def _return(self, node: LocalNode) -> str | None:
        """Start an agent that has joined before, with the pool's current address. Returns since when the pool has its
        link: after a crash that is an old link, which no process holds."""
        file = self._home_of(node).membership
        membership = read_membership(file)
        assert membership, "it has joined"
        update_membership(file, membership, urls=[self._pool.url])
        view = await self._ask(node, "GET", f"/nodes/{membership.node_id}")
        await self._start(node, "run")
        linked_at: str | None = view["linked_at"]
        return linked_at

    async def _join(self, node: LocalNode) -> None:
        home = self._home_of(node)
        prepare(home)
        book = RulesFile(home.rules).change({"price": node.price, "labels": [node.label]}, by=node.owner, now=wall())
        assert not isinstance(book, Refusal), "these are rules that anybody may set"
        body = {"name": node.name, "house": node.owner == OPERATOR, "lifetime_s": _TOKEN_S}
        token = (await self._ask(node, "POST", "/nodes/join-tokens", body))["token"]
        process = await self._start(node, "join", self._pool.url)
        assert process.stdin, "it reads its token there"
        process.stdin.write(f"{token}\n".encode())
        process.stdin.close()

    async def _start(self, node: LocalNode, *arguments: str) -> Process:
        """Start an agent in a session of its own, so that a Ctrl-C for the pool does not reach it: the pool ends it."""
        home = self._home_of(node)
        processors = ",".join(map(str, node.processors))
        command = (sys.executable, "-m", "tidemill.cli", "agent", *arguments)
        with home.path.with_suffix(".log").open("wb") as log_file:
            self._processes[node] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", bound_child.__file__, str(os.getpid()), processors, *command),
                env={**os.environ, "TIDEMILL_HOME": str(self._home), "TIDEMILL_AGENT_HOME": str(home.path)},
                stdin=asyncio.subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
        return self._processes[node]

    async def _until_ready(self, node: LocalNode, old_link: str | None = None) -> None:
        """Wait until a node has a link and may get work. After a deadline announce why it gets none."""
        deadline, reason = time.monotonic() + _READY_S, _NOT_LINKED
        while time.monotonic() < deadline and self._processes[node].returncode is None:
            if node_id := self._node_id(node):
                view = await self._ask(node, "GET", f"/nodes/{node_id}")
                reason = _why_no_work(view) if view["linked_at"] not in (None, old_link) else _NOT_LINKED
                if not reason:
                    self._count_ready()
                    return
            await asyncio.sleep(_POLL_S)
        log = self._home_of(node).path.with_suffix(".log")
        self._announce(f"{node.name} gets no work. {reason} What its agent said is in {log}.")

    def _count_ready(self) -> None:
        """Count a ready node. Announce the first, when the pool can be tried, and the last."""
        self._ready += 1
        if self._ready == 1:
            self._announce("The first node may get work. Try, in another terminal:", **self._to_try)
        if self._ready == len(self._nodes):
            after_s = time.monotonic() - self._began
            self._announce(f"All {self._ready} nodes may get work, {after_s:.0f} s after the pool was ready.")

    async def _ask(self, node: LocalNode, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Ask the pool as the node's owner."""
        key = key_of(self._home, node.owner)
        return await asyncio.to_thread(self._pool.ask, method, path, body, token=key)

    def _node_id(self, node: LocalNode) -> UUID | None:
        membership = read_membership(self._home_of(node).membership)
        return membership.node_id if membership else None

    def _home_of(self, node: LocalNode) -> Home:
        return Home(self._home / NODES_FOLDER / node.owner)


def _why_no_work(view: Mapping[str, Any]) -> str:
    """Why a node gets no work; "" if it has passed its challenge and its sandbox works."""
    if view["no_work"]:
        return str(view["no_work"][0]["sentence"])
    if view["carries"] is None:
        return "It has not told yet what it can do."
    if _TRIED_KIND not in view["carries"]["kinds"]:
        reason = next((missing["why"] for missing in view["carries"]["why_not"] if missing["what"] == _TRIED_KIND), "")
        raise Fault(f"No task can run here. {reason}".rstrip())  # waiting does not change that
    return ""


def _tell_bug(bringing: "asyncio.Task[None]") -> None:
    """Log a bug in starting the nodes. The pool goes on without them."""
    if not bringing.cancelled() and (bug := bringing.exception()):
        log.error("nodes not brought", exc_info=bug)


def _processors() -> list[int]:
    """The numbers of the processors that we may use."""
    return sorted(os.sched_getaffinity(0)) if CHOOSES_PROCESSORS else list(range(os.cpu_count() or 1))
