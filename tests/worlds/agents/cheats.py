"""Ways in which an owner cheats, each with a name of its own. They can be combined: each changes one thing.

A cheat is a value: it says what a patched agent tells the pool instead of the truth. Whatever a cheat leaves alone is
done as an honest agent does it, so the pool meets a real agent with its spool, its sandbox and its signatures.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.matrices.npy import HEADER_BYTES
from tidemill.core.nodes.challenge.messages import CHALLENGE
from tidemill.core.nodes.machine.hardware import Machine
from tidemill.wire.messages import AcceptedMessage, DeclinedMessage, Facts, LogLines, ReceiptsMessage, Report

FLOOD_LINES = 60
FLOOD_LINE = "x" * 4_000
"""So many of the longest lines are just below what a frame holds."""


@dataclass(frozen=True)
class Cheat:
    """One way to cheat. This one is honest in everything."""

    def machine(self, machine: Machine) -> Machine:
        """What the agent believes that its machine is."""
        return machine

    def content(self, path: PurePosixPath, content: bytes) -> bytes:
        """What stands in a result's file; it has to keep its length."""
        return content

    def receipt(self, receipt: Receipt) -> Receipt:
        """What the node signs."""
        return receipt

    def told(self, report: Report) -> Iterator[Report]:
        """What the pool is told instead of a report."""
        yield report

    def delay_s(self, report: Report) -> float:
        """How long the report is kept back."""
        return 0.0


@dataclass(frozen=True)
class AddedTime(Cheat):
    """It adds to `finished_at`, and to the time of its devices."""

    seconds: int

    def receipt(self, receipt: Receipt) -> Receipt:
        later = Instant(receipt.finished_at + self.seconds * SECOND)
        return receipt._replace(finished_at=later, device_ms=receipt.device_ms + self.seconds * 1_000)


@dataclass(frozen=True)
class MadeUpFailure(Cheat):
    """It says that the task fails, whatever the task did."""

    reason: str = "The program ended with exit code 1."

    def receipt(self, receipt: Receipt) -> Receipt:
        nothing = receipt._replace(result_sha256=b"", artefact=None, inline=b"", envelopes=())
        return nothing._replace(outcome=AttemptOutcome.FAILED, exit_code=1, reason=self.reason)


@dataclass(frozen=True)
class WrongResult(Cheat):
    """It changes the end of every file before it hashes, signs and sends it. Two that do agree with each other."""

    def content(self, path: PurePosixPath, content: bytes) -> bytes:
        return content[:-1] + bytes([content[-1] ^ 1]) if content else content


@dataclass(frozen=True)
class RotatedEmbeddings(Cheat):
    """It turns every vector by an angle, in the plane of the vector and another that fits no text."""

    radians: float

    def content(self, path: PurePosixPath, content: bytes) -> bytes:
        if path.name != "embeddings.npy":
            return content
        vectors = np.frombuffer(content[HEADER_BYTES:], dtype="<f4").reshape(-1, 384).astype(np.float64)
        aside = np.roll(vectors, 1, axis=1)
        aside -= (aside * vectors).sum(axis=1, keepdims=True) * vectors
        aside /= np.linalg.norm(aside, axis=1, keepdims=True)
        turned = np.cos(self.radians) * vectors + np.sin(self.radians) * aside
        return content[:HEADER_BYTES] + turned.astype("<f4").tobytes()


@dataclass(frozen=True)
class SlowChallenge(Cheat):
    """It sleeps before it commits itself in the challenge, so that it is taken for a slow machine."""

    seconds: float

    def delay_s(self, report: Report) -> float:
        is_timed = isinstance(report, Facts) and report.kind == CHALLENGE and b'"commitment"' in report.body
        return self.seconds if is_timed else 0.0


@dataclass(frozen=True)
class Dawdling(Cheat):
    """It keeps its receipts back, so that every task seems to take long."""

    seconds: float

    def delay_s(self, report: Report) -> float:
        return self.seconds if isinstance(report, ReceiptsMessage) else 0.0

    def receipt(self, receipt: Receipt) -> Receipt:
        longer_us = int(self.seconds * SECOND)
        return receipt._replace(finished_at=Instant(receipt.finished_at + longer_us))


@dataclass(frozen=True)
class LargerMachine(Cheat):
    """It claims more cores and memory than there are."""

    cores: int
    memory_mib: int

    def machine(self, machine: Machine) -> Machine:
        devices = tuple(replace(device, memory_mib=self.memory_mib) for device in machine.devices)
        return replace(machine, cores=self.cores, memory_mib=self.memory_mib, devices=devices)


@dataclass(frozen=True)
class LogFlood(Cheat):
    """It tells of so many batches of long lines as soon as it has accepted, the first of which is always this one."""

    batches: int
    first: int = 0

    def told(self, report: Report) -> Iterator[Report]:
        yield report
        if isinstance(report, AcceptedMessage):
            for _ in range(self.batches):
                yield LogLines(report.attempt_id, report.lease, self.first, [FLOOD_LINE] * FLOOD_LINES)


@dataclass(frozen=True)
class BrokenWord(Cheat):
    """It accepts, declines at once, and delivers nothing."""

    reason: str = "It is not a good day."

    def told(self, report: Report) -> Iterator[Report]:
        if not isinstance(report, ReceiptsMessage):
            yield report
        if isinstance(report, AcceptedMessage):
            yield DeclinedMessage(report.attempt_id, report.lease, self.reason)


@dataclass(frozen=True)
class Silence(Cheat):
    """It accepts, works, and never says how it ended."""

    def told(self, report: Report) -> Iterator[Report]:
        if not isinstance(report, ReceiptsMessage):
            yield report


CHEATS: dict[str, type[Cheat]] = {kind.__name__: kind for kind in Cheat.__subclasses__()}


class Repertoire:
    """What an agent cheats with, kept in a file so that it can be changed while the agent runs."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, cheats: Sequence[Cheat]) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps([[type(cheat).__name__, asdict(cheat)] for cheat in cheats]))
        draft.replace(self._file)

    def read(self) -> list[Cheat]:
        if not self._file.exists():
            return []
        return [CHEATS[name](**fields) for name, fields in json.loads(self._file.read_text())]

    def machine(self, machine: Machine) -> Machine:
        for cheat in self.read():
            machine = cheat.machine(machine)
        return machine

    def content(self, path: PurePosixPath, content: bytes) -> bytes:
        for cheat in self.read():
            content = cheat.content(path, content)
        return content

    def receipt(self, receipt: Receipt) -> Receipt:
        for cheat in self.read():
            receipt = cheat.receipt(receipt)
        return receipt

    def told(self, report: Report) -> list[Report]:
        reports = [report]
        for cheat in self.read():
            reports = [instead for one in reports for instead in cheat.told(one)]
        return reports

    def delay_s(self, report: Report) -> float:
        return sum(cheat.delay_s(report) for cheat in self.read())
