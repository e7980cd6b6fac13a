"""The prover on a machine: it does what orders ask, once, says why it cannot, and frees what it took."""

import asyncio
import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from tidemill.agent.machine.prover import Prover
from tidemill.core.nodes.challenge.judgement import is_memory_shown, is_speed_shown
from tidemill.core.nodes.challenge.messages import (
    CHALLENGE,
    HOST,
    AnswerStep,
    ChallengeAnswer,
    ChallengeInstruction,
    ChallengePart,
    DeviceOpenings,
    DevicePair,
    DeviceTask,
    answer_of,
    instruction_bytes,
)
from tidemill.core.nodes.challenge.sizes import device_draw
from tidemill.core.nodes.challenge.tasks import MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.wire.messages import Facts, Report

CPU = Device(0, DeviceKind.CPU, "A CPU", "cpu-0", 16_000, "none")
GPUS = [Device(index, DeviceKind.NVIDIA, "A GPU", f"GPU-{index}", 8_192, "550") for index in (0, 1)]
CORES = 3
TASK = DeviceTask(0, SpeedTask(5, 256, 2), MemoryTask(6, 64, 8, 1))
ASK = ChallengeInstruction(UUID(int=1).hex, 600, tasks=(TASK,))
DRAW = ChallengeInstruction(ASK.challenge, 600, draws=(device_draw(TASK, b"draw"),))


class Desk:
    """Where a prover's reports arrive."""

    def __init__(self, *devices: Device) -> None:
        self.answers: list[ChallengeAnswer] = []
        machine = Machine("Linux", "6", "x86_64", "A CPU", CORES, 16_000, 10**6, devices)
        self.prover = Prover(lambda: machine, self._report)

    async def _report(self, report: Report) -> bool:
        assert isinstance(report, Facts)
        assert report.kind == CHALLENGE
        answer = answer_of(report.body)
        assert isinstance(answer, ChallengeAnswer)
        self.answers.append(answer)
        return True

    async def take(self, order: ChallengeInstruction) -> None:
        await self.prover.take(instruction_bytes(order))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.01)

    async def proved(self, order: ChallengeInstruction) -> None:
        await self.take(order)
        await self.until(lambda: len(self.answers) >= 2 * len(order.tasks))

    def shown(self, index: int = 0) -> DeviceOpenings:
        mine = [answer for answer in self.answers if answer.device == index]
        roots = {answer.part: answer.content or b"" for answer in mine if answer.step is AnswerStep.COMMITMENT}
        opened = {
            part: {
                answer.place: answer.content or b""
                for answer in mine
                if answer.step is AnswerStep.OPENING and answer.part is part
            }
            for part in ChallengePart
        }
        return DeviceOpenings(
            roots[ChallengePart.SPEED],
            roots[ChallengePart.MEMORY],
            opened[ChallengePart.MEMORY],
            opened[ChallengePart.SPEED],
        )


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk(CPU)
    yield made
    await made.prover.close()


async def test_what_is_asked_is_committed_to_and_what_is_drawn_is_shown(desk: Desk) -> None:
    await desk.proved(ASK)
    assert [(answer.step, answer.part) for answer in desk.answers] == [
        (AnswerStep.COMMITMENT, ChallengePart.SPEED),
        (AnswerStep.COMMITMENT, ChallengePart.MEMORY),
    ]
    await desk.take(DRAW)
    await desk.until(lambda: len(desk.answers) == 2 + 4 + 24)
    assert is_memory_shown(TASK, DRAW.draws[0], desk.shown())
    assert is_speed_shown(TASK, DRAW.draws[0], desk.shown(), b"vector!!" * 256)


async def test_orders_that_come_again_and_orders_that_make_no_sense_change_nothing(desk: Desk) -> None:
    await desk.take(DRAW)
    for body in (b"", b"{}", b"\xff", b'{"challenge":"x"}', b'{"challenge":"x","keep_s":0}'):
        await desk.prover.take(body)
    await desk.proved(ASK)
    await desk.take(ASK)
    for _ in range(3):
        await desk.take(DRAW)
    await desk.until(lambda: len(desk.answers) == 30)
    await desk.take(ASK)
    await asyncio.sleep(0.2)
    assert len(desk.answers) == 30


async def test_a_draw_of_devices_that_were_not_asked_is_left_alone(desk: Desk) -> None:
    await desk.proved(ASK)
    await desk.take(replace(DRAW, draws=(replace(DRAW.draws[0], index=3),)))
    await asyncio.sleep(0.1)
    assert len(desk.answers) == 2


async def test_a_device_that_is_gone_says_so(desk: Desk) -> None:
    await desk.take(replace(ASK, tasks=(replace(TASK, index=1),)))
    await desk.until(lambda: bool(desk.answers))
    assert desk.answers[0].step is AnswerStep.CANNOT
    assert "no device 1" in desk.answers[0].words


async def test_more_memory_than_an_owner_can_spare_is_not_taken(desk: Desk) -> None:
    huge = MemoryTask(6, 2**32, 2**16, 1)
    await desk.take(replace(ASK, tasks=(replace(TASK, memory=huge),)))
    await desk.until(lambda: len(desk.answers) == 2)
    assert desk.answers[1].step is AnswerStep.CANNOT
    assert "are free" in desk.answers[1].words


async def test_memory_is_freed_when_its_time_is_over_and_when_another_challenge_comes(desk: Desk) -> None:
    await desk.proved(replace(ASK, keep_s=1))
    await asyncio.sleep(1.1)
    await desk.take(DRAW)
    await asyncio.sleep(0.1)
    assert len(desk.answers) == 2
    await desk.take(replace(ASK, challenge=UUID(int=2).hex))
    await desk.take(replace(ASK, challenge=UUID(int=3).hex))
    await desk.until(lambda: sum(answer.challenge == UUID(int=3).hex for answer in desk.answers) == 2)
    assert not [answer for answer in desk.answers if answer.step is AnswerStep.CANNOT], "what was stopped is not told"


async def test_closing_stops_a_long_fill(desk: Desk) -> None:
    await desk.take(replace(ASK, tasks=(replace(TASK, memory=MemoryTask(6, 512, 512, 1)),)))
    await desk.until(lambda: len(desk.answers) == 1)
    async with asyncio.timeout(3):
        await desk.prover.close()


async def test_a_gpu_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    desk = Desk(*GPUS)
    await desk.take(ASK)
    await desk.until(lambda: bool(desk.answers))
    assert desk.answers[0].step is AnswerStep.CANNOT
    assert "install the CuPy package" in desk.answers[0].words
    await desk.prover.close()


async def test_a_machine_with_gpus_shows_its_own_cores_and_memory_too() -> None:
    desk, task = Desk(*GPUS), replace(TASK, index=HOST)
    draw = device_draw(task, b"draw")
    await desk.proved(replace(ASK, tasks=(task,)))
    await desk.take(ChallengeInstruction(ASK.challenge, 600, draws=(draw,)))
    await desk.until(lambda: len(desk.answers) == 2 + 4 + 24)
    assert is_memory_shown(task, draw, desk.shown(HOST))
    assert is_speed_shown(task, draw, desk.shown(HOST), b"vector!!" * 256)
    await desk.prover.close()


class OnDevice(np.ndarray):  # type: ignore[type-arg]
    """An array that has to be fetched, as CuPy's have."""

    def get(self) -> np.ndarray:  # type: ignore[type-arg]
        return np.ascontiguousarray(self).view(np.ndarray)


def compiled(takes: str, gives: str, body: str, name: str) -> Callable[[OnDevice, int], OnDevice]:
    """CuPy compiles such a body for a GPU; we do it for this machine, so that the very text is tried."""
    assert (takes, gives) == ("uint64 word, int64 rounds", "uint64 out")
    folder = Path(tempfile.mkdtemp())
    (folder / "kernel.c").write_text(
        f"void {name}(unsigned long long *words, long long rounds, long long count) {{"
        f" for (long long at = 0; at < count; ++at) {{"
        f" unsigned long long word = words[at], out; {{ {body} }} words[at] = out; }} }}"
    )
    library = folder / "kernel.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(folder / "kernel.c")], check=True)
    run = getattr(ctypes.CDLL(str(library)), name)
    shutil.rmtree(folder)

    def call(words: OnDevice, rounds: int) -> OnDevice:
        made = np.ascontiguousarray(words).copy()
        run(ctypes.c_void_p(made.ctypes.data), ctypes.c_longlong(rounds), ctypes.c_longlong(made.size))
        return made.view(OnDevice)

    return call


def cupy_stand_in(chosen: list[int], memory_bytes: int) -> ModuleType:
    """What the prover uses of CuPy, computed by numpy: there is no GPU here. Its names are those of CuPy 13."""
    module = ModuleType("cupy")
    for name in ("uint64", "uint32", "uint8", "int64", "int32", "float32", "arange", "roll", "empty_like"):
        setattr(module, name, getattr(np, name))

    def empty(shape: object, dtype: type) -> OnDevice:
        if np.prod(np.array(shape)) * np.dtype(dtype).itemsize > memory_bytes:
            raise MemoryError("Out of memory allocating what was asked for.")
        return np.empty(shape, dtype).view(OnDevice)  # type: ignore[call-overload, no-any-return]

    def device(ordinal: int = 0) -> object:
        chosen.append(ordinal)
        return _Chosen()

    class _Chosen(nullcontext):  # type: ignore[type-arg]
        def synchronize(self) -> None: ...

    vars(module).update(empty=empty, zeros=np.zeros, cuda=SimpleNamespace(Device=device))
    vars(module).update(ElementwiseKernel=compiled)
    return module


@pytest.mark.needs("gcc")
async def test_gpus_run_the_same_code_each_on_its_own_and_tell_how_fast_they_are_linked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in(chosen, 10**9))
    monkeypatch.setattr("tidemill.agent.machine.bench._COPIED_BYTES", 2**20)
    desk = Desk(*GPUS)
    tasks = (TASK, replace(TASK, index=1, memory=replace(TASK.memory, seed=9, rounds=500)))
    order = replace(ASK, tasks=tasks, pairs=(DevicePair(0, 1), DevicePair(0, 5)))
    await desk.take(order)
    await desk.until(lambda: any(answer.step is AnswerStep.LINKS for answer in desk.answers))
    (links,) = [answer for answer in desk.answers if answer.step is AnswerStep.LINKS]
    assert [(rate.one, rate.other) for rate in links.links] == [(0, 1)]
    assert links.links[0].mb_per_s > 0
    assert set(chosen) == {0, 1}
    draws = tuple(device_draw(task, b"draw") for task in tasks)
    await desk.take(ChallengeInstruction(ASK.challenge, 600, draws=draws))
    await desk.until(lambda: sum(answer.step is AnswerStep.OPENING for answer in desk.answers) == 56)
    for task, draw in zip(tasks, draws, strict=True):
        assert is_memory_shown(task, draw, desk.shown(task.index))
        assert is_speed_shown(task, draw, desk.shown(task.index), b"vector!!" * 256)
    await desk.prover.close()


async def test_a_gpu_with_less_memory_than_it_claims_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy_stand_in([], 600_000))
    desk = Desk(*GPUS)
    await desk.take(ASK)
    await desk.until(lambda: len(desk.answers) == 2)
    assert desk.answers[1].step is AnswerStep.CANNOT
    assert "Out of memory" in desk.answers[1].words
    await desk.prover.close()
