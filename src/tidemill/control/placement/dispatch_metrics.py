"""The metrics of dispatch: attempts that are over, and the length of the queue.

The metrics of loops count placed tasks and the time of placing: `tidemill_loop_applied_total` and
`tidemill_loop_tick_seconds`, of the loop `placing`.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.attempt import AttemptState
from tidemill.store.jobs.job_views import QueueState


class DispatchMetrics:
    """The process that writes an attempt's end counts it; one that a late result overtakes is cancelled."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "tidemill_attempts_ended",
            "Attempts that are over, by how (judged, declined, lost, expired, cancelled) and by verdict.",
            ["state", "verdict"],
            registry=registry,
        )
        self._waiting = Gauge(
            "tidemill_tasks_waiting", "Tasks of the pool that wait for a node.", ["priority"], registry=registry
        )
        self._oldest = Gauge(
            "tidemill_tasks_waiting_oldest_seconds", "How long the oldest of them has waited.", registry=registry
        )
        self._at_nodes = Gauge(
            "tidemill_tasks_at_nodes", "Tasks of the pool that a node has, or that are checked.", registry=registry
        )

    def ended(self, counts: Mapping[tuple[AttemptState, str], int]) -> None:
        for (state, verdict), count in counts.items():
            self._ended.labels(state.value, verdict).inc(count)

    def queue(self, queue: QueueState, now: Instant) -> None:
        for priority, tasks in queue.waiting.items():
            self._waiting.labels(priority).set(tasks)
        self._oldest.set(0 if queue.oldest_at is None else max(0, now - queue.oldest_at) / SECOND)
        self._at_nodes.set(queue.placed)
