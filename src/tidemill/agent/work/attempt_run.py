"""One attempt carried out: inputs fetched, the program run in its sandbox, its result checked, hashed and sealed.

It ends in a receipt, or it is given back. A receipt tells of the task: done, or failed by its own doing. What is this
machine's doing (an input that cannot be had, a full disk, a sandbox that broke) is never a failed task: the attempt is
given back, for another node to do. The deadline counts by a clock that nobody sets.
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
from tidemill.agent.work.device_grants import grants_for
from tidemill.agent.work.sealed_results import ResultRecipients, SealedResult, seal_files
from tidemill.agent.work.workshop import Inputs
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
    """The attempt was not carried out, for a reason that lies with this machine. The text says which."""


class AttemptRun:
    """One attempt, from its inputs to its receipt."""

    def __init__(self, held: AttemptInHand, node_id: UUID, devices: Sequence[Device], processor: str) -> None:
        assert held.feasible_task is not None
        assert held.progress is not None
        self._held, self._doable, self._telling = held, held.feasible_task, held.progress
        self._node_id = node_id
        self._devices, self._processor = devices, processor
        self._left: SealedResult | str = "It left no result."
        self._is_stopped = threading.Event()

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
        await asyncio.to_thread(self._held.attempt.begin)
        async with AsyncExitStack() as used:
            try:
                async with asyncio.timeout(self._left_s()):
                    files = await self._fetched(inputs, used)
            except TimeoutError:
                raise AttemptGivenBack("The deadline passed while the inputs were fetched.") from None
            return await self._run_program(self._order(files))

    async def _fetched(self, inputs: Inputs, used: AsyncExitStack) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for one in self._doable.task.inputs:
            files[one.name] = await used.enter_async_context(inputs.use(one.digest, one.size_bytes))
        return files

    def _left_s(self) -> float:
        return (self._held.deadline - steady()) / SECOND

    def _order(self, files: dict[str, Path]) -> RunSpecification:
        """What the sandbox is to do: as the runner says, within the time that is left and on the devices given."""
        left_s = max(0.001, self._left_s())
        doable = self._doable
        order = doable.runner.specify_run(doable.task, self._held.attempt.name, files, python_runtime())
        return replace(
            order,
            limits=replace(order.limits, seconds=min(order.limits.seconds, left_s)),
            grants=grants_for(self._devices, order.grants.network, doable.sandbox.enforced),
        )

    async def _run_program(self, order: RunSpecification) -> Receipt:
        self._held.stage = Stage.RUNNING
        started_at, begun = wall(), steady()
        ran = await self._doable.sandbox.run(order, RunListener(heard=self._heard, collected=self._collect))
        took_us = steady() - begun
        await self._telling.tell_rest()
        if ran.exit_code == EXIT_UNABLE and KINDS[self._doable.task.kind].ours:
            raise AttemptGivenBack(self._telling.last_line or "This machine cannot do it.")
        if ran.ending is RunEnding.KILLED:
            raise AttemptGivenBack(ran.ending.value)
        return self._receipt(ran, started_at, took_us)

    def _heard(self, stream: OutputStream, chunk: bytes) -> None:
        self._telling.heard(stream.value, chunk)

    async def _collect(self, work: Path) -> None:
        """Check and seal what the program left. What is wrong with it is the task's own fault."""
        self._held.stage = Stage.SEALING
        self._left = await asyncio.to_thread(self._sealed, work)

    def _sealed(self, work: Path) -> SealedResult | str:
        checked = self._doable.runner.check(self._doable.task, work)
        if isinstance(checked, TaskObjection):
            return checked.sentence
        readers = self._doable.task.seal_to
        to = ResultRecipients(readers, secrets.token_bytes(KEY_BYTES), self._bound())
        result = self._held.attempt.result
        sealed = seal_files(work / OUT, checked.files, to, result, lambda: not self._is_stopped.is_set())
        return sealed if isinstance(sealed, SealedResult) else sealed.sentence

    def _bound(self) -> ResultBinding:
        offer = self._held.attempt.assignment
        return ResultBinding(UUID(bytes=offer.task_id), self._held.attempt.id, offer.lease)

    def _receipt(self, ran: Ran, started_at: Instant, took_us: int) -> Receipt:
        left = self._left
        sealed = left if ran.succeeded and isinstance(left, SealedResult) else None
        bound = self._bound()
        return Receipt(
            task_id=bound.task_id,
            attempt_id=bound.attempt_id,
            node_id=self._node_id,
            lease=bound.lease,
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
            reason="" if sealed else _printable(self._why(ran), REASON_MAX_BYTES),
        )

    def _numeric_class(self) -> str:
        """Which machines must come to the same bytes: all, none, or those with the same devices and libraries."""
        kind = KINDS[self._doable.task.kind].numeric_class(self._doable.work)
        if kind is not NumericClass.DEVICE:
            return kind.value
        devices = sorted({f"{device.name} {device.driver}" for device in self._devices}) or [self._processor]
        parts = (kind.value, *devices, f"python {platform.python_version()}", f"numpy {version('numpy')}")
        return _printable("; ".join(parts), CLASS_MAX_BYTES)

    def _why(self, ran: Ran) -> str:
        """Why the task failed, with its last words."""
        if ran.succeeded:
            assert isinstance(self._left, str)
            return self._left
        how = ran.ending.value if ran.ending is not RunEnding.DONE else f"The program ended with {_code_words(ran)}."
        return f"{how} It said: {self._telling.last_line}" if self._telling.last_line else how


def _exit_code(ran: Ran) -> int:
    """As a shell shows it; below zero where there is none."""
    if ran.exit_code is not None:
        return ran.exit_code
    return _NO_EXIT_CODE if ran.signal is None else 128 + ran.signal


def _code_words(ran: Ran) -> str:
    return f"signal {ran.signal}" if ran.signal is not None else f"exit code {ran.exit_code}"


def _printable(text: str, most_bytes: int) -> str:
    """As a receipt can hold it."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    return printable.encode()[:most_bytes].decode(errors="ignore")
