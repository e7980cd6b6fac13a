"""Whether a receipt's times can be true: checked for every receipt, and again where the first look finds a doubt.

The first look handles receipts by the thousand, and knows only the lease: how long the task was quoted at the node's
measured speed, and when it was assigned. Doubtful results are not paid at once. The second look knows the task and the
device, and says what is wrong in words. Nobody fails by time alone: a right result is paid, and the doubt is recorded
and reported with it, so that earlier results of the node can be checked.
"""

from dataclasses import dataclass

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import CheckMethod, TaskObjection
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.placement.supply import SPREAD, START_MS
from tidemill.core.trust.checks import timing
from tidemill.core.trust.checks.timing import CLOCK_SLACK_MS, MEASURED_MARGIN, NumberType, ReceiptTimes, TimingEvidence


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
    return " ".join(
        timing.check(ReceiptTimes(receipt.started_at, receipt.finished_at, receipt.device_ms), evidence).reasons
    )
