"""What the agent reports to the pool: each report is on the disk first, each fact is reported once until it changes.

Facts describe the present, so they are spooled only while there is a link: a machine that changes ten times while it is
offline has one fact to report. A full disk stops nothing; the fact is reported later.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeAlias

import structlog

from tidemill.core.faults import Fault
from tidemill.link.dialled.spool import Spool
from tidemill.wire.messages import Facts, ReceiptsMessage, Report

log = structlog.get_logger()

_OVERFULL = "Too much waits on this machine for the pool to receive it, so nothing but receipts is kept any more."
_ANSWERED_MAX = 1_000

AssignmentKey: TypeAlias = tuple[bytes, int]
"""An attempt and its lease."""


class AnsweredAssignments:
    """The last assignments that were answered: accepted, declined or delivered. A repeated one changes nothing.

    On a new link a pool repeats every assignment whose answer it has not received, also if the answer is on its way. So
    an assignment counts as answered as soon as its answer is handed over, and not only when the pool has it.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[AssignmentKey, None] = OrderedDict()

    def __contains__(self, key: AssignmentKey) -> bool:
        return key in self._keys

    def note(self, keys: Iterable[AssignmentKey]) -> None:
        self._keys.update(dict.fromkeys(keys))
        while len(self._keys) > _ANSWERED_MAX:
            self._keys.popitem(last=False)


class Reporter:
    """The spool, and the facts that this run of the agent has reported."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.answered = AnsweredAssignments()
        self.complaint: str | None = None
        self._told_facts: dict[str, bytes] = {}
        self._wake: Callable[[], None] | None = None

    @property
    def linked(self) -> bool:
        return self._wake is not None

    @property
    def waiting(self) -> int:
        """How many reports the pool does not have yet."""
        return self.spool.last_number - self.spool.first_number + 1

    async def begin(self, received: int, wake: Callable[[], None]) -> None:
        """Begin on a new link. The pool has the reports up to `received`; `wake` is called when there are more."""
        if received < self.spool.first_number - 1:
            self._told_facts.clear()  # the pool's database was restored from an older copy: it has forgotten our facts
        await self.spool.begin_at(received)
        self._wake = wake

    def pause(self) -> None:
        """The link is over."""
        self._wake = None

    async def report(self, report: Report) -> bool:
        """Keep a report until the pool has it. Answers whether that could be done.

        An overfull spool keeps only receipts, so a pool that asks without end and acknowledges nothing fills no disk.
        """
        if self.spool.is_overfull and not isinstance(report, ReceiptsMessage):
            self._complain(_OVERFULL)
            return False
        try:
            await self.spool.append(report)
        except Fault as fault:
            self._complain(str(fault))
            return False
        self.complaint = None
        if self._wake:
            self._wake()
        return True

    async def forget(self, received: int) -> None:
        """Forget reports that the pool has. If the disk fails, forget them later: the pool takes each of them once."""
        try:
            await self.spool.safe(received)
        except Fault as fault:
            self._complain(str(fault))

    async def tell(self, kind: str, body: bytes) -> None:
        """Report a fact, unless the pool has the same already or there is no link."""
        if self.linked and self._told_facts.get(kind) != body and await self.report(Facts(kind, body)):
            self._told_facts[kind] = body

    def known(self, kind: str, body: bytes) -> None:
        """The pool knows this of us already."""
        self._told_facts[kind] = body

    def _complain(self, sentence: str) -> None:
        if sentence != self.complaint:
            log.warning("spool not written", cause=sentence)
        self.complaint = sentence


def as_json(fields: dict[str, object]) -> bytes:
    """The body of small facts."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
