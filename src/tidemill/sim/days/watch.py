"""What must hold at every step of a run, written a second time, independently of the rules under test.

Lives go forward only, as the tables here say; a task ends once, and a job with its last task; what attempts have of a
node is what the pool says is taken, and never more than there is; and no money comes from nowhere. A run that breaks a
rule ends at once, and says which.
"""

from tidemill.core.jobs.attempt import AT_WORK, AttemptState
from tidemill.core.jobs.job import JobLife, JobState
from tidemill.core.jobs.task import ENDED, RetryLimits, TaskLife, TaskState
from tidemill.core.placement.demand import WHOLE_MILLI
from tidemill.core.placement.index.node import PoolNode

_A, _T, _J = AttemptState, TaskState, JobState

_WORKING = (_A.OFFERED, _A.ACCEPTED, _A.RUNNING)
ATTEMPTS = frozenset({
    *((before, after) for index, before in enumerate(_WORKING) for after in _WORKING[index + 1 :]),
    *((before, after) for before in _WORKING for after in set(_A) - set(_WORKING)),
    (_A.LOST, _A.SUBMITTED), (_A.EXPIRED, _A.SUBMITTED), (_A.SUBMITTED, _A.JUDGED),
})  # fmt: skip

_CAME_TO_NOTHING = (_T.PENDING, _T.FAILED, _T.CANCELLED)
TASKS = frozenset({
    (_T.PENDING, _T.ASSIGNED), (_T.PENDING, _T.PROOF_SUBMITTED), (_T.PENDING, _T.CANCELLED),
    (_T.ASSIGNED, _T.ASSIGNED), (_T.ASSIGNED, _T.COMPUTING), (_T.ASSIGNED, _T.PROOF_SUBMITTED),
    (_T.COMPUTING, _T.PROOF_SUBMITTED), (_T.PROOF_SUBMITTED, _T.VERIFYING), (_T.PROOF_SUBMITTED, _T.COMPLETED),
    (_T.VERIFYING, _T.COMPLETED),
    *((before, after)
      for before in (_T.ASSIGNED, _T.COMPUTING, _T.PROOF_SUBMITTED, _T.VERIFYING) for after in _CAME_TO_NOTHING),
})  # fmt: skip

_OVER = (_J.COMPLETED, _J.FAILED, _J.CANCELLED, _J.EXPIRED)
JOBS = frozenset({
    (_J.DRAFT, _J.QUOTED), (_J.QUOTED, _J.QUEUED), (_J.QUEUED, _J.RUNNING), (_J.QUEUED, _J.QUEUED),
    (_J.RUNNING, _J.RUNNING), *((before, after) for before in (_J.QUEUED, _J.RUNNING) for after in _OVER),
})  # fmt: skip


class BrokenRule(AssertionError):
    """A rule was broken: a bug in the rules or in the simulator."""


class RuleWatch:
    """Watches a run. `ended` has a mark for each task that has ended."""

    def __init__(self, tasks: int, patience: RetryLimits) -> None:
        self._patience = patience
        self.ended = bytearray(tasks)

    def attempt(self, before: AttemptState, after: AttemptState) -> None:
        if (before, after) not in ATTEMPTS:
            raise BrokenRule(f"An attempt that was {before} is {after}.")

    def task(self, task: int, before: TaskLife, after: TaskLife) -> None:
        """One step of a task. A waiting task has no holder, and no task is tried for ever."""
        if (before.state, after.state) not in TASKS:
            raise BrokenRule(f"Task {task} was {before.state} and is {after.state}.")
        if (after.holder is not None) and after.state is TaskState.PENDING:
            raise BrokenRule(f"Task {task} waits, and an attempt has it.")
        patience = self._patience
        if not before.tries <= after.tries <= patience.tries_max or after.failures > after.tries:
            raise BrokenRule(f"Task {task} was tried {after.tries} times and failed {after.failures} times.")
        if after.state in ENDED:
            if self.ended[task]:
                raise BrokenRule(f"Task {task} has ended twice.")
            self.ended[task] = 1

    def job(self, job: int, before: JobLife, after: JobLife) -> None:
        if (before.state, after.state) not in JOBS:
            raise BrokenRule(f"Job {job} was {before.state} and is {after.state}.")
        if (after.state in _OVER) != (after.ends.total == after.tasks):
            raise BrokenRule(f"Job {job} is {after.state}, and {after.ends.total} of {after.tasks} tasks have ended.")

    def held(self, state: AttemptState, life: TaskLife | None) -> None:
        """An attempt that has something of a node has a task that is not over."""
        if state in AT_WORK and life is None:
            raise BrokenRule("An attempt goes on whose task has ended.")

    def node(self, node: PoolNode, taken_milli: int, taken_cpu: int, cpu_total: int) -> None:
        """What is free of a node is what attempts leave of it."""
        free = node.free
        given_milli = WHOLE_MILLI * len(free) - sum(free)
        if given_milli != taken_milli or (free and not 0 <= min(free) <= max(free) <= WHOLE_MILLI):
            raise BrokenRule(
                f"Of node {node.node_id} attempts have {taken_milli} and the pool gave {given_milli}: {free}."
            )
        if node.cpu_milli != cpu_total - taken_cpu or not 0 <= node.cpu_milli <= cpu_total:
            raise BrokenRule(f"Of node {node.node_id}'s processor {node.cpu_milli} of {cpu_total} are free.")
        if node.memory_mib < 0 or node.disk_mib < 0:
            raise BrokenRule(f"Node {node.node_id} has given more memory or disk than it has.")
