"""Whether a receipt's times can be true: checked for every receipt, and again where the first look finds a doubt.

The first look handles receipts by the thousand, and knows only the lease: how long the task was quoted at the node's
measured speed, and when it was assigned. Doubtful results are not paid at once. The second look knows the task and the
device, and says what is wrong in words. Nobody fails by time alone: a better algorithm is no fraud. A right result is
paid, and the doubt is recorded and reported with it, so that earlier results of the node can be checked.

The ceiling of a device is its model's figure in the catalogue, for the type of number, with a margin for clocks above
the data sheet; and a multiple of the speed that a challenge measured, where one did. A device without either has no
ceiling. Processors are often busy when they are challenged, so what the fastest core does is never too fast for them.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.kind import CheckMethod, TaskObjection
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.nodes.machine.gpu_types import GpuType
from tidemill.core.placement.supply import SPREAD, START_MS
from tidemill.core.trust.checks.verdict import Verdict, passed, review

CLOCK_MARGIN = 1.25
"""Clocks exceed the data sheet by less than this."""

MEASURED_MARGIN = 4.0
"""A challenge includes the round trip, and small products; a device does not exceed it by more than this."""

CORE_MARGIN = 8.0
"""No core does more than so many times the reference speed."""

CLOCK_SLACK_MS = 1_000


class NumberType(StrEnum):
    """The type of numbers. Tensor cores do int8 at twice the rate of float16, and float32 as TF32 at half of it."""

    INT8 = "int8"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


@dataclass(frozen=True)
class ReceiptTimes:
    """The times in a receipt."""

    started_at: Instant
    finished_at: Instant
    device_ms: int


@dataclass(frozen=True)
class TimingEvidence:
    """What the task needed, and what is known of the device: its model, and its measured speed; zero means unknown."""

    operations: float
    numbers: NumberType
    devices: int
    gpu: GpuType | None
    measured_ops_per_s: int
    offered_at: Instant
    received_at: Instant


@dataclass(frozen=True, slots=True)
class MeasuredSpeeds:
    """What is known of a node's fastest GPU and of its processors; zero and an empty name mean unknown."""

    device_model: str = ""
    memory_mib: int = 0
    gpu_ops_per_s: int = 0
    cpu_ops_per_s: int = 0


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """When a task was assigned to its node, and when its receipt arrived."""

    offered_at: Instant
    received_at: Instant


def is_doubtful(receipt: Receipt, times: AttemptTimes, quoted_ms: int) -> bool:
    """The first look: whether the times need a second one."""
    passed_ms = (times.received_at - times.offered_at) / 1_000
    told_ms = (receipt.finished_at - receipt.started_at) / 1_000
    if told_ms > passed_ms + CLOCK_SLACK_MS or receipt.device_ms > passed_ms + CLOCK_SLACK_MS:
        return True
    estimate_ms = (quoted_ms - START_MS) / SPREAD
    return max(1.0, min(passed_ms, told_ms)) * MEASURED_MARGIN < estimate_ms


def doubt_about(receipt: Receipt, task: Task, device: MeasuredSpeeds, times: AttemptTimes) -> str:
    """The second look: what cannot be true, in words; empty if everything can."""
    work = work_of(task)
    assert not isinstance(work, TaskObjection), "a placed task can be read"
    kind = KINDS[task.kind]
    needs = kind.needs(work)
    is_counted = kind.check(work) is CheckMethod.FREIVALDS
    evidence = TimingEvidence(
        operations=0.0 if needs.seconds else needs.operations / (1.0 if is_counted else SPREAD),
        numbers=NumberType.INT8 if isinstance(work, Matmul) and work.element is Element.INT8 else NumberType.FLOAT32,
        devices=needs.devices,
        gpu=recognised(device.device_model, device.memory_mib) if needs.devices else None,
        measured_ops_per_s=device.gpu_ops_per_s if needs.devices else device.cpu_ops_per_s,
        offered_at=times.offered_at,
        received_at=times.received_at,
    )
    return " ".join(check(ReceiptTimes(receipt.started_at, receipt.finished_at, receipt.device_ms), evidence).reasons)


def check(claim: ReceiptTimes, evidence: TimingEvidence) -> Verdict:
    """Whether the times can be true."""
    reasons = []
    passed_ms = (evidence.received_at - evidence.offered_at) / 1_000
    told_ms = (claim.finished_at - claim.started_at) / 1_000
    if told_ms > passed_ms + CLOCK_SLACK_MS:
        reasons.append(f"The receipt tells of {told_ms:,.0f} ms; only {passed_ms:,.0f} passed from offer to receipt.")
    if claim.device_ms > told_ms * max(1, evidence.devices) + CLOCK_SLACK_MS:
        reasons.append(f"{claim.device_ms:,} ms of devices do not fit into the {told_ms:,.0f} ms that the task took.")
    speed = evidence.operations * 1_000 / max(1.0, min(passed_ms, told_ms))
    most = ceiling_ops_per_s(evidence)
    if most and speed > most:
        reasons.append(f"{speed:.3g} operations a second are more than the {most:.3g} that the device can do.")
    figures = {"ops_per_s": speed, "ceiling_ops_per_s": most}
    return review(*reasons, **figures) if reasons else passed(**figures)


def ceiling_ops_per_s(evidence: TimingEvidence) -> float:
    """The most that all devices of the task can do; zero where nothing is known."""
    ceilings = []
    if evidence.gpu is not None:
        ceilings.append(_catalogue_ops_per_s(evidence.gpu, evidence.numbers) * CLOCK_MARGIN)
    if evidence.measured_ops_per_s:
        on_a_core = 0.0 if evidence.devices else OPERATIONS_PER_CORE_S * CORE_MARGIN
        ceilings.append(max(evidence.measured_ops_per_s * MEASURED_MARGIN, on_a_core))
    return min(ceilings, default=0.0) * max(1, evidence.devices)


def _catalogue_ops_per_s(gpu: GpuType, numbers: NumberType) -> float:
    tera = {
        NumberType.INT8: max(2 * gpu.fp16_tflops, 4 * gpu.fp32_tflops),
        NumberType.FLOAT16: max(gpu.fp16_tflops, gpu.fp32_tflops),
        NumberType.FLOAT32: max(gpu.fp16_tflops / 2, gpu.fp32_tflops),
    }
    return tera[numbers] * 1e12
