"""Carries out one attempt: fetches its inputs, runs its program in a sandbox, then checks, hashes and seals its result.

It ends in a receipt, or the attempt is given back. A receipt says that the task is done, or failed by its own fault. A
fault of this machine (an input that cannot be had, a full disk, a broken sandbox) never fails the task: the attempt is
given back, for another node to do. The deadline counts by the steady clock, which nobody can set.
"""

import asyncio
import platform
import secrets
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from uuid import UUID

from tidemill.agent.inside.dialogue import EXIT_UNABLE
from tidemill.agent.runners import OUT
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.agent.sandboxes.interface import OutputStream, RunListener
from tidemill.agent.work.attempt_in_hand import AttemptInHand, Stage
from tidemill.agent.work.sealed_results import ResultRecipients, SealedResult, seal_files
from tidemill.agent.work.workshop import Inputs, grants_for
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import NumericClass, TaskObjection
from tidemill.core.jobs.receipts import CLASS_MAX_BYTES, REASON_MAX_BYTES, AttemptOutcome, Receipt
from tidemill.core.jobs.results import KEY_BYTES, ResultBinding
from tidemill.core.jobs.sandboxes import RunEnding, RunSpecification
from tidemill.core.jobs.sandboxes import RunOutcome as Ran
from tidemill.core.nodes.machine.hardware import Device
from tidemill.host.clocks import steady, wall

_NO_EXIT_CODE = -1


class AttemptGivenBack(Exception):
    """This machine could not carry the attempt out. The text says why."""


class AttemptRun:
    """One attempt, from its inputs to its receipt."""

    def __init__(self, in_hand: AttemptInHand, node_id: UUID, devices: Sequence[Device], processor: str) -> None:
        assert in_hand.feasible_task is not None
        assert in_hand.progress is not None
        self._in_hand, self._feasible, self._progress = in_hand, in_hand.feasible_task, in_hand.progress
        self._node_id = node_id
        self._devices, self._processor = devices, processor
        self._result: SealedResult | str = "It left no result."
        self._is_stopped = threading.Event()
        self._limit_s = 0.0
        """How much of the deadline was left when the run was specified."""

    async def run(self, inputs: Inputs) -> Receipt:
        """Carry it out. Cancelling the caller ends it at once."""
        try:
            return await self._run(inputs)
        except Fault as fault:
            raise AttemptGivenBack(str(fault)) from None
        except OSError as error:
            raise AttemptGivenBack(f"A file could not be used on this machine: {error.strerror or error}.") from None
        finally:
            self._is_stopped.set()

    async def _run(self, inputs: Inputs) -> Receipt:
        await asyncio.to_thread(self._in_hand.attempt.begin)
        async with AsyncExitStack() as used:
            try:
                async with asyncio.timeout(self._remaining_s()):
                    files = await self._fetched(inputs, used)
            except TimeoutError:
                raise AttemptGivenBack("The deadline passed while the inputs were fetched.") from None
            return await self._run_program(self._specification(files))

    async def _fetched(self, inputs: Inputs, used: AsyncExitStack) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for task_input in self._feasible.task.inputs:
            files[task_input.name] = await used.enter_async_context(
                inputs.use(task_input.digest, task_input.size_bytes)
            )
        return files

    def _remaining_s(self) -> float:
        return (self._in_hand.deadline - steady()) / SECOND

    def _specification(self, files: dict[str, Path]) -> RunSpecification:
        """The run as its runner specifies it, limited to the remaining time and the attempt's devices."""
        remaining_s = self._limit_s = max(0.001, self._remaining_s())
        feasible = self._feasible
        specification = feasible.runner.specify_run(feasible.task, self._in_hand.attempt.name, files, python_runtime())
        return replace(
            specification,
            limits=replace(specification.limits, seconds=min(specification.limits.seconds, remaining_s)),
            grants=grants_for(self._devices, specification.grants.network, feasible.sandbox.enforced),
        )

    async def _run_program(self, specification: RunSpecification) -> Receipt:
        self._in_hand.stage = Stage.RUNNING
        await self._progress.tell()  # who calls it off pays from when the pool knows that it runs
        started_at, begun = wall(), steady()
        ran = await self._feasible.sandbox.run(specification, RunListener(heard=self._hear, collected=self._collect))
        took_us = steady() - begun
        await self._progress.tell_rest()
        if ran.exit_code == EXIT_UNABLE and KINDS[self._feasible.task.kind].ours:
            raise AttemptGivenBack(self._progress.last_line or "This machine cannot do it.")
        if ran.ending is RunEnding.KILLED:
            raise AttemptGivenBack(ran.ending.value)
        return self._receipt(ran, started_at, took_us)

    def _hear(self, stream: OutputStream, chunk: bytes) -> None:
        self._progress.heard(stream.value, chunk)

    async def _collect(self, work: Path) -> None:
        """Check and seal the program's result. A wrong result is the task's own fault."""
        self._in_hand.stage = Stage.SEALING
        self._result = await asyncio.to_thread(self._sealed, work)

    def _sealed(self, work: Path) -> SealedResult | str:
        checked = self._feasible.runner.check(self._feasible.task, work)
        if isinstance(checked, TaskObjection):
            return checked.sentence
        readers = self._feasible.task.seal_to
        to = ResultRecipients(readers, secrets.token_bytes(KEY_BYTES), self._binding())
        result = self._in_hand.attempt.result
        sealed = seal_files(work / OUT, checked.files, to, result, lambda: not self._is_stopped.is_set())
        return sealed if isinstance(sealed, SealedResult) else sealed.sentence

    def _binding(self) -> ResultBinding:
        assignment = self._in_hand.attempt.assignment
        return ResultBinding(UUID(bytes=assignment.task_id), self._in_hand.attempt.id, assignment.lease)

    def _receipt(self, ran: Ran, started_at: Instant, took_us: int) -> Receipt:
        result = self._result
        sealed = result if ran.succeeded and isinstance(result, SealedResult) else None
        binding = self._binding()
        return Receipt(
            task_id=binding.task_id,
            attempt_id=binding.attempt_id,
            node_id=self._node_id,
            lease=binding.lease,
            result_sha256=sealed.result_sha256 if sealed else b"",
            artefact=sealed.artefact if sealed else None,
            inline=sealed.inline if sealed else b"",
            envelopes=sealed.envelopes if sealed else (),
            started_at=started_at,
            finished_at=Instant(started_at + took_us),
            device_ms=took_us // 1_000 * max(1, len(self._devices)),
            numeric_class=self._numeric_class(),
            proof=b"",
            outcome=AttemptOutcome.DONE if sealed else AttemptOutcome.FAILED,
            exit_code=_exit_code(ran),
            reason="" if sealed else _printable(self._failure_reason(ran), REASON_MAX_BYTES),
        )

    def _numeric_class(self) -> str:
        """Which machines must produce the same bytes: all, none, or those with the same devices and libraries."""
        kind = KINDS[self._feasible.task.kind].numeric_class(self._feasible.work)
        if kind is not NumericClass.DEVICE:
            return kind.value
        devices = sorted({f"{device.name} {device.driver}" for device in self._devices}) or [self._processor]
        parts = (kind.value, *devices, f"python {platform.python_version()}", f"numpy {version('numpy')}")
        return _printable("; ".join(parts), CLASS_MAX_BYTES)

    def _failure_reason(self, ran: Ran) -> str:
        """Why the task failed, with its last words."""
        if ran.succeeded:
            assert isinstance(self._result, str)
            return self._result
        ending = self._ending(ran)
        return f"{ending} Its last words: {self._progress.last_line!r}." if self._progress.last_line else ending

    def _ending(self, ran: Ran) -> str:
        """How the run ended. A program that used up the time that its customer gave it is told so."""
        if ran.ending is RunEnding.DONE:
            return f"The program ended with {_code_words(ran)}."
        own_s = KINDS[self._feasible.task.kind].needs(self._feasible.work).seconds
        if ran.ending is RunEnding.DEADLINE and 0 < own_s <= self._limit_s:
            return f"It was stopped after {own_s:,} s, the time that it was ordered with: order it with more seconds."
        return str(ran.ending.value)


def _exit_code(ran: Ran) -> int:
    """The exit code as a shell shows it; negative if there is none."""
    if ran.exit_code is not None:
        return ran.exit_code
    return _NO_EXIT_CODE if ran.signal is None else 128 + ran.signal


def _code_words(ran: Ran) -> str:
    return f"signal {ran.signal}" if ran.signal is not None else f"exit code {ran.exit_code}"


def _printable(text: str, most_bytes: int) -> str:
    """The text as a receipt can hold it."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.encode()[:most_bytes].decode(errors="ignore")
