"""The nodes of a demonstration: five agents on this machine, each a process with a home and an identity of its own.

They join as any machine does: by a token that their owner made, and by passing the challenge. They differ in speed by
the number of processors that they keep to, which is in their names, and in price by their owners' rules. Those that
joined before come back all at once; newcomers that share a processor are challenged one after the other, so that each
is measured as fast as it is. None of them outlives the process that started it.
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
from tidemill.control.operations.demonstration import OPERATOR, OWNERS, key_of
from tidemill.core.faults import Fault
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings
from tidemill.core.settings.process_addresses import own_address
from tidemill.host import bound_child
from tidemill.host.clocks import wall

log = structlog.get_logger()

FOLDER = "nodes"
CHOOSES_PROCESSORS = hasattr(os, "sched_setaffinity")

_NODES = tuple(
    zip((*OWNERS, OPERATOR), (1.0, 0.5, 0.5, 0.25, 0.5), ("0.2", "0.08", "0.12", "0.05", "0.1"), strict=True)
)
"""Who has a node, which share of the processors it keeps to, and its price for an hour, in credits."""

_UNNAMED = "node-"
_POLL_S = 0.3
_READY_S = 120.0
_LEAVE_S = 5.0
_TOKEN_S = 600
_NOT_LINKED = "It has no link to the pool yet."
_TRIED = "matmul"


@dataclass(frozen=True)
class LocalNode:
    """Whose it is, its price for an hour in credits, and the processors that it keeps to."""

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


def local_nodes(every: Sequence[int]) -> list[LocalNode]:
    """The nodes on a machine with these processors. Those that keep to a few of them begin at different ones."""
    found = []
    for place, (owner, share, price) in enumerate(_NODES):
        count = max(1, round(len(every) * share)) if CHOOSES_PROCESSORS else len(every)
        processors = (every[(place + number) % len(every)] for number in range(count))
        found.append(LocalNode(owner, price, tuple(processors)))
    return found


def waves(nodes: Sequence[LocalNode]) -> list[list[LocalNode]]:
    """Those that may be measured at the same time, because they share no processor; in the order they came."""
    found: list[list[LocalNode]] = []
    for node in nodes:
        free = (wave for wave in found if not any({*node.processors} & {*other.processors} for other in wave))
        if (wave := next(free, None)) is None:
            found.append(wave := [])
        wave.append(node)
    return found


def local_sandbox(home: Path) -> str | None:
    """What the tasks of a demonstration's nodes run in, as the nodes say; None if they have not said it."""
    for file in sorted(Home(place).status for place in (home / FOLDER).glob("*") if place.is_dir()):
        if (found := read_status(file, wall())) and "work" in found.fields:
            return sandboxes(found.fields)
    return None


class LocalNodes:
    """Their processes, from the moment that the pool serves until it stops."""

    def __init__(self, settings: Settings, announce: Callable[..., None], to_try: Mapping[str, str]) -> None:
        self._home = settings.home
        self._pool = PoolClient(own_address(settings))
        self._announce = announce
        self._to_try = to_try
        self._nodes = local_nodes(_processors())
        self._processes: dict[LocalNode, Process] = {}
        self._bringing: asyncio.Task[None] | None = None
        self._began = 0.0
        self._ready = 0

    def begin(self) -> None:
        self._began = time.monotonic()
        self._bringing = asyncio.create_task(self._bring())
        self._bringing.add_done_callback(_tell_bug)

    def stop(self) -> None:
        """Tell all of them to leave. `stopped` waits for it."""
        if self._bringing:
            self._bringing.cancel()
        for process in self._running():
            process.terminate()

    async def stopped(self) -> None:
        self.stop()
        if self._bringing:
            await asyncio.gather(self._bringing, return_exceptions=True)
        self.stop()  # one may have been started while that was cancelled
        if leaving := [asyncio.create_task(process.wait()) for process in self._running()]:
            await asyncio.wait(leaving, timeout=_LEAVE_S)
        for process in self._running():
            process.kill()

    def _running(self) -> list[Process]:
        return [process for process in self._processes.values() if process.returncode is None]

    async def _bring(self) -> None:
        try:
            known = [node for node in self._nodes if self._node_id(node)]
            links = [await self._return(node) for node in known]
            await asyncio.gather(*map(self._until_ready, known, links))
            for wave in waves([node for node in self._nodes if node not in known]):
                for node in wave:
                    await self._join(node)
                await asyncio.gather(*(self._until_ready(node) for node in wave))
        except (Fault, CommandRefused, OSError) as error:
            self._announce(f"Not all nodes of the demonstration are there. {error}")

    async def _return(self, node: LocalNode) -> str | None:
        """Start an agent that has joined; the pool may have another port than it had. Answers since when the pool has
        had a link of it, which after a crash is one that nobody holds."""
        file = self._home_of(node).membership
        kept = read_membership(file)
        assert kept, "it has joined"
        update_membership(file, kept, urls=[self._pool.url])
        shown = await self._ask(node, "GET", f"/nodes/{kept.node_id}")
        await self._start(node, "run")
        linked_at: str | None = shown["linked_at"]
        return linked_at

    async def _join(self, node: LocalNode) -> None:
        home = self._home_of(node)
        prepare(home)
        book = RulesFile(home.rules).change({"price": node.price, "labels": [node.label]}, by=node.owner, now=wall())
        assert not isinstance(book, Refusal), "these are rules that anybody may set"
        asked = {"name": node.name, "house": node.owner == OPERATOR, "lifetime_s": _TOKEN_S}
        token = (await self._ask(node, "POST", "/nodes/join-tokens", asked))["token"]
        process = await self._start(node, "join", self._pool.url)
        assert process.stdin, "it reads its token there"
        process.stdin.write(f"{token}\n".encode())
        process.stdin.close()

    async def _start(self, node: LocalNode, *what: str) -> Process:
        """An agent in a session of its own: a Ctrl-C that means the pool does not reach it before the pool says so."""
        home = self._home_of(node)
        processors = ",".join(map(str, node.processors))
        command = (sys.executable, "-m", "tidemill.cli", "agent", *what)
        with home.path.with_suffix(".log").open("wb") as said:
            self._processes[node] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", bound_child.__file__, str(os.getpid()), processors, *command),
                env={**os.environ, "TIDEMILL_HOME": str(self._home), "TIDEMILL_AGENT_HOME": str(home.path)},
                stdin=asyncio.subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        return self._processes[node]

    async def _until_ready(self, node: LocalNode, old_link: str | None = None) -> None:
        """Wait until a node has a link and may get work. One that cannot is said, and keeps nobody waiting for ever."""
        deadline, why = time.monotonic() + _READY_S, _NOT_LINKED
        while time.monotonic() < deadline and self._processes[node].returncode is None:
            if node_id := self._node_id(node):
                shown = await self._ask(node, "GET", f"/nodes/{node_id}")
                if shown["name"].startswith(_UNNAMED):
                    await self._ask(node, "PATCH", f"/nodes/{node_id}", {"name": node.name})
                why = _why_no_work(shown) if shown["linked_at"] not in (None, old_link) else _NOT_LINKED
                if not why:
                    self._came()
                    return
            await asyncio.sleep(_POLL_S)
        log = self._home_of(node).path.with_suffix(".log")
        self._announce(f"{node.name} gets no work. {why} What its agent said is in {log}.")

    def _came(self) -> None:
        """The first node is the moment to try it; the last is the end of waiting."""
        self._ready += 1
        if self._ready == 1:
            self._announce("The first node may get work. Try, in another terminal:", **self._to_try)
        if self._ready == len(self._nodes):
            after_s = time.monotonic() - self._began
            self._announce(f"All {self._ready} nodes may get work, {after_s:.0f} s after the pool was ready.")

    async def _ask(self, node: LocalNode, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """As the node's owner."""
        key = key_of(self._home, node.owner)
        return await asyncio.to_thread(self._pool.ask, method, path, body, token=key)

    def _node_id(self, node: LocalNode) -> UUID | None:
        kept = read_membership(self._home_of(node).membership)
        return kept.node_id if kept else None

    def _home_of(self, node: LocalNode) -> Home:
        return Home(self._home / FOLDER / node.owner)


def _why_no_work(shown: Mapping[str, Any]) -> str:
    """Nothing, if it may get work: it has passed its challenge, and a sandbox works."""
    if shown["no_work"]:
        return str(shown["no_work"][0]["sentence"])
    if shown["carries"] is None:
        return "It has not told yet what it can do."
    if _TRIED not in shown["carries"]["kinds"]:
        why = next((one["why"] for one in shown["carries"]["why_not"] if one["what"] == _TRIED), "")
        raise Fault(f"No task can run here. {why}".rstrip())  # nothing that we could wait for changes that
    return ""


def _tell_bug(bringing: "asyncio.Task[None]") -> None:
    """The pool goes on without its nodes, but not silently."""
    if not bringing.cancelled() and (bug := bringing.exception()):
        log.error("nodes not brought", exc_info=bug)


def _processors() -> list[int]:
    """The numbers of those that we may use."""
    return sorted(os.sched_getaffinity(0)) if CHOOSES_PROCESSORS else list(range(os.cpu_count() or 1))
