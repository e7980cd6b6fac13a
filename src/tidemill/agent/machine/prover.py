"""The prover: it works on a challenge with this machine's devices, and shows the parts that the pool draws.

All devices work at once, and the machine itself with all its cores: first they multiply, which the pool times, then
they fill their memory and keep it until the pool has drawn pages from it. A newer challenge, or the time that the pool
names, ends an older one and frees its memory. For a device that cannot be used, the answer says why, and what to do.
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
    CHALLENGED_MAX,
    HOST,
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
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.wire.messages import Facts, Report

log = structlog.get_logger()

KIND = CHALLENGE

T = TypeVar("T")


@dataclass
class _ChallengeInHand:
    """One challenge in hand."""

    tasks: dict[int, DeviceTask]
    benches: dict[int, Bench] = field(default_factory=dict)
    stopped: Event = field(default_factory=Event)
    drawn: bool = False


class Prover:
    """Takes the pool's instructions about challenges, and reports the answers."""

    def __init__(self, machine: Callable[[], Machine | None], report: Callable[[Report], Awaitable[bool]]) -> None:
        self._machine = machine
        self._report = report
        self._threads = ThreadPoolExecutor(CHALLENGED_MAX, thread_name_prefix="challenge")
        self._challenge = ""
        self._work: _ChallengeInHand | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def take(self, body: bytes) -> None:
        """Begin what an instruction asks for. One that comes twice is begun once."""
        instruction = instruction_of(body)
        if isinstance(instruction, Malformed):
            log.warning("order not understood", kind=KIND, cause=instruction.sentence)
        elif len({task.index for task in instruction.tasks}) < len(instruction.tasks):
            log.warning("order not understood", kind=KIND, cause="A device is asked for two things at once.")
        elif instruction.tasks and instruction.challenge != self._challenge:
            self._free()
            self._challenge = instruction.challenge
            self._work = _ChallengeInHand({task.index: task for task in instruction.tasks})
            self._start(self._prove(instruction, self._work))
        elif instruction.draws and instruction.challenge == self._challenge and self._work and not self._work.drawn:
            self._work.drawn = True
            self._start(self._show(instruction, self._work))

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
            self._work.benches.clear()  # the timer that ends a challenge keeps a reference to its work
            self._work = None

    async def _prove(self, instruction: ChallengeInstruction, work: _ChallengeInHand) -> None:
        asyncio.get_running_loop().call_later(instruction.keep_s, self._free_if, work)
        await asyncio.gather(*(self._prove_device(instruction, work, task) for task in instruction.tasks))
        if rates := await self._link_rates(instruction.pairs, work):
            await self._answer(
                ChallengeAnswer(instruction.challenge, rates[0].one, AnswerStep.LINKS, links=tuple(rates))
            )

    def _free_if(self, work: _ChallengeInHand) -> None:
        if self._work is work:
            self._free()

    async def _prove_device(self, instruction: ChallengeInstruction, work: _ChallengeInHand, task: DeviceTask) -> None:
        try:
            bench = work.benches[task.index] = await self._in_thread(self._bench, work, task.index)
            root = await self._in_thread(bench.multiply, task.speed)
            await self._commit(instruction, task, ChallengePart.SPEED, root)
            root = await self._in_thread(bench.fill, task.memory)
            await self._commit(instruction, task, ChallengePart.MEMORY, root)
        except TROUBLE as trouble:
            await self._cannot(instruction, work, task.index, trouble)

    async def _show(self, instruction: ChallengeInstruction, work: _ChallengeInHand) -> None:
        await asyncio.gather(*(self._show_device(instruction, work, draw) for draw in instruction.draws))
        self._free_if(work)

    async def _show_device(self, instruction: ChallengeInstruction, work: _ChallengeInHand, draw: DeviceDraw) -> None:
        task, bench = work.tasks.get(draw.index), work.benches.get(draw.index)
        if task is None or bench is None or ChallengePart.MEMORY not in bench.trees:
            return
        try:
            for number in draw.rows:
                await self._open(instruction, bench, ChallengePart.SPEED, number, bench.shown_row, task.speed)
            for number in draw.pages:
                await self._open(instruction, bench, ChallengePart.MEMORY, number, bench.shown_page, task.memory)
        except TROUBLE as trouble:
            await self._cannot(instruction, work, draw.index, trouble)

    async def _open(
        self,
        instruction: ChallengeInstruction,
        bench: Bench,
        part: ChallengePart,
        number: int,
        open_part: Callable[[T, int], bytes],
        task: T,
    ) -> None:
        content = as_text(await self._in_thread(open_part, task, number))
        await self._answer(
            ChallengeAnswer(instruction.challenge, bench.device.index, AnswerStep.OPENING, part, number, content)
        )

    async def _commit(
        self, instruction: ChallengeInstruction, task: DeviceTask, part: ChallengePart, root: bytes
    ) -> None:
        await self._answer(
            ChallengeAnswer(instruction.challenge, task.index, AnswerStep.COMMITMENT, part, shown=as_text(root))
        )

    async def _cannot(
        self, instruction: ChallengeInstruction, work: _ChallengeInHand, index: int, trouble: Exception
    ) -> None:
        log.warning("challenge impossible", device=index, cause=str(trouble))
        if not work.stopped.is_set():
            words = str(trouble) or type(trouble).__name__
            await self._answer(ChallengeAnswer(instruction.challenge, index, AnswerStep.CANNOT, words=words))

    async def _link_rates(self, pairs: Sequence[DevicePair], work: _ChallengeInHand) -> list[LinkRate]:
        """Measure one pair after the other, while the devices do nothing else. A pair that fails counts as no link."""
        rates = []
        for pair in pairs:
            first, second = work.benches.get(pair.one), work.benches.get(pair.other)
            if first and second and not work.stopped.is_set():
                with contextlib.suppress(*TROUBLE):
                    rate = await self._in_thread(first.copied_mb_per_s, second)
                    rates.append(LinkRate(pair.one, pair.other, rate))
        return rates

    async def _answer(self, answer: ChallengeAnswer) -> None:
        await self._report(Facts(KIND, answer_bytes(answer)))

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def _bench(self, work: _ChallengeInHand, index: int) -> Bench:
        machine = self._machine()
        devices = (*machine.devices, _host(machine)) if machine else ()
        device = next((earlier for earlier in devices if earlier.index == index), None)
        if machine is None or device is None:
            raise DeviceUnable(f"There is no device {index} any more: let the agent detect the hardware again.")
        ordinal = sum(earlier.kind is device.kind for earlier in devices[: devices.index(device)])
        return Bench(device, ordinal, work.stopped, machine.cores if device.kind is DeviceKind.CPU else 1)


def _host(machine: Machine) -> Device:
    """The machine around its GPUs, as if its processors were one more device."""
    return Device(HOST, DeviceKind.CPU, machine.cpu, "", machine.memory_mib, machine.kernel)
