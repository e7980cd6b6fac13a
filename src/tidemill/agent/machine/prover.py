"""The prover: it does on this machine's devices what a challenge asks, and shows what is drawn.

All devices work at once, each in a thread of its own: first the multiplication, which is timed by the pool, then the
memory, which is kept until places were drawn from it. A newer challenge, or the time the pool names, ends an older one
and frees its memory. A device that cannot be used says why, and what to do about it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar

import structlog

from tidemill.agent.machine.bench import TROUBLE, Bench, DeviceUnable
from tidemill.core.bounded_json import Malformed
from tidemill.core.nodes.challenge.messages import (
    CHALLENGE,
    AnswerStep,
    ChallengeAnswer,
    ChallengeInstruction,
    ChallengePart,
    DeviceDraw,
    DevicePair,
    DeviceTask,
    LinkRate,
    answer_bytes,
    as_text,
    instruction_of,
)
from tidemill.core.nodes.machine.hardware import DEVICES_MAX, Device
from tidemill.wire.messages import Facts, Report

log = structlog.get_logger()

KIND = CHALLENGE

T = TypeVar("T")


@dataclass
class _Work:
    """One challenge in hand."""

    tasks: dict[int, DeviceTask]
    benches: dict[int, Bench] = field(default_factory=dict)
    stopped: Event = field(default_factory=Event)
    drawn: bool = False


class Prover:
    """Takes the pool's orders about challenges, and reports what they ask for."""

    def __init__(self, devices: Callable[[], Sequence[Device]], report: Callable[[Report], Awaitable[bool]]) -> None:
        self._devices = devices
        self._report = report
        self._threads = ThreadPoolExecutor(DEVICES_MAX, thread_name_prefix="challenge")
        self._challenge = ""
        self._work: _Work | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def take(self, body: bytes) -> None:
        """Begin what an order asks for. One that comes twice is begun once."""
        order = instruction_of(body)
        if isinstance(order, Malformed):
            log.warning("order not understood", kind=KIND, cause=order.sentence)
        elif len({task.index for task in order.tasks}) < len(order.tasks):
            log.warning("order not understood", kind=KIND, cause="A device is asked for two things at once.")
        elif order.tasks and order.challenge != self._challenge:
            self._free()
            self._challenge = order.challenge
            self._work = _Work({task.index: task for task in order.tasks})
            self._start(self._prove(order, self._work))
        elif order.draws and order.challenge == self._challenge and self._work and not self._work.drawn:
            self._work.drawn = True
            self._start(self._show(order, self._work))

    async def close(self) -> None:
        """Stop, and free the memory."""
        self._free()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _free(self) -> None:
        if self._work:
            self._work.stopped.set()
            self._work.benches.clear()  # the timer that ends a challenge holds its work until then
            self._work = None

    async def _prove(self, order: ChallengeInstruction, work: _Work) -> None:
        asyncio.get_running_loop().call_later(order.keep_s, self._free_if, work)
        await asyncio.gather(*(self._prove_device(order, work, task) for task in order.tasks))
        if rates := await self._link_rates(order.pairs, work):
            await self._say(ChallengeAnswer(order.challenge, rates[0].one, AnswerStep.LINKS, links=tuple(rates)))

    def _free_if(self, work: _Work) -> None:
        if self._work is work:
            self._free()

    async def _prove_device(self, order: ChallengeInstruction, work: _Work, task: DeviceTask) -> None:
        try:
            bench = work.benches[task.index] = await self._in_thread(self._bench, work, task.index)
            root = await self._in_thread(bench.multiply, task.speed)
            await self._commit(order, task, ChallengePart.SPEED, root)
            root = await self._in_thread(bench.fill, task.memory)
            await self._commit(order, task, ChallengePart.MEMORY, root)
        except TROUBLE as trouble:
            await self._cannot(order, work, task.index, trouble)

    async def _show(self, order: ChallengeInstruction, work: _Work) -> None:
        await asyncio.gather(*(self._show_device(order, work, draw) for draw in order.draws))
        self._free_if(work)

    async def _show_device(self, order: ChallengeInstruction, work: _Work, draw: DeviceDraw) -> None:
        task, bench = work.tasks.get(draw.index), work.benches.get(draw.index)
        if task is None or bench is None or ChallengePart.MEMORY not in bench.trees:
            return
        try:
            for place in draw.rows:
                await self._open(order, bench, ChallengePart.SPEED, place, bench.shown_row, task.speed)
            for place in draw.pages:
                await self._open(order, bench, ChallengePart.MEMORY, place, bench.shown_page, task.memory)
        except TROUBLE as trouble:
            await self._cannot(order, work, draw.index, trouble)

    async def _open(
        self,
        order: ChallengeInstruction,
        bench: Bench,
        part: ChallengePart,
        place: int,
        shown: Callable[[T, int], bytes],
        task: T,
    ) -> None:
        content = as_text(await self._in_thread(shown, task, place))
        await self._say(ChallengeAnswer(order.challenge, bench.device.index, AnswerStep.OPENING, part, place, content))

    async def _commit(self, order: ChallengeInstruction, task: DeviceTask, part: ChallengePart, root: bytes) -> None:
        await self._say(ChallengeAnswer(order.challenge, task.index, AnswerStep.COMMITMENT, part, shown=as_text(root)))

    async def _cannot(self, order: ChallengeInstruction, work: _Work, index: int, trouble: Exception) -> None:
        log.warning("challenge impossible", device=index, cause=str(trouble))
        if not work.stopped.is_set():
            words = str(trouble) or type(trouble).__name__
            await self._say(ChallengeAnswer(order.challenge, index, AnswerStep.CANNOT, words=words))

    async def _link_rates(self, pairs: Sequence[DevicePair], work: _Work) -> list[LinkRate]:
        """One pair after the other, when nothing else is going on. What cannot be measured counts as no link."""
        rates = []
        for pair in pairs:
            one, other = work.benches.get(pair.one), work.benches.get(pair.other)
            if one and other and not work.stopped.is_set():
                with contextlib.suppress(*TROUBLE):
                    rate = await self._in_thread(one.copied_mb_per_s, other)
                    rates.append(LinkRate(pair.one, pair.other, rate))
        return rates

    async def _say(self, answer: ChallengeAnswer) -> None:
        await self._report(Facts(KIND, answer_bytes(answer)))

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def _bench(self, work: _Work, index: int) -> Bench:
        devices = self._devices()
        device = next((one for one in devices if one.index == index), None)
        if device is None:
            raise DeviceUnable(f"There is no device {index} any more: let the agent detect the hardware again.")
        ordinal = sum(one.kind is device.kind for one in devices[: devices.index(device)])
        return Bench(device, ordinal, work.stopped)
