"""How the agent follows the pool's instructions.

An instruction repeats what the pool's database says. So one that comes twice is carried out once, and one of an unknown
kind is ignored: a newer agent will be told again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import structlog

from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.machine.prover import KIND as CHALLENGE
from tidemill.agent.machine.prover import Prover
from tidemill.agent.standing import AgentStanding
from tidemill.agent.work.work import WorkInHand
from tidemill.core.faults import Fault
from tidemill.core.jobs.receipts import read_batch
from tidemill.core.nodes.pool_urls import URLS_MAX, is_as_safe, is_pool_url
from tidemill.core.nodes.rules.rule_book import RuleBook, RulesRefusal, from_json, leaps, to_json
from tidemill.core.refusals import Refusal
from tidemill.host.clocks import wall
from tidemill.link.dialled.reports import AssignmentKey, Reporter
from tidemill.wire.messages import (
    AcceptedMessage,
    Assignment,
    Cancel,
    DeclinedMessage,
    Facts,
    Instruction,
    ReceiptsMessage,
    Report,
    Wish,
)

log = structlog.get_logger()

_OLDEST_MAX = 50
_READ_BYTES = 512 * 1024

RULES = "rules"
_POOL_RULES = "the pool's rules"


class InstructionFollower:
    """Follows instructions, one after the other."""

    def __init__(
        self,
        standing: AgentStanding,
        reporting: Reporter,
        rules: RulesFile,
        work: WorkInHand,
        prover: Prover,
        *,
        changed: Callable[[], None],
        moved: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """Calls `changed` when what the node may do has changed, and `moved` with the pool's new addresses."""
        self._standing = standing
        self._reporting = reporting
        self._rules = rules
        self._work = work
        self._changed = changed
        self._moved = moved
        self._wishes: Mapping[str, Callable[[bytes], Awaitable[None]]] = {
            RULES: self._take_rules,
            "versions": self._take_versions,
            "addresses": self._take_addresses,
            CHALLENGE: prover.take,
        }

    async def remember(self) -> None:
        """Note which assignments an earlier run answered. The pool may not know yet, and would assign them again."""
        spool = self._reporting.spool
        after = spool.first_number - 1
        while page := await spool.read(after, _READ_BYTES):
            for number, report in page:
                after = number
                self._reporting.answered.note(self._answers(report))

    def _answers(self, report: Report) -> Iterator[AssignmentKey]:
        """The attempts and leases whose assignments a report answers."""
        membership = self._standing.membership
        if isinstance(report, AcceptedMessage | DeclinedMessage):
            yield report.attempt_id, report.lease
        elif isinstance(report, ReceiptsMessage) and membership.node_id:
            receipts = read_batch(report.batch, report.signature, membership.identity.key, membership.node_id)
            if not isinstance(receipts, Refusal):
                yield from ((receipt.attempt_id.bytes, receipt.lease) for receipt in receipts)

    async def obey(self, instruction: Instruction) -> None:
        match instruction:
            case Assignment():
                await self._answer_once(instruction)
            case Cancel():
                await self._work.cancelled(instruction)
            case Wish():
                if wish := self._wishes.get(instruction.kind):
                    await wish(instruction.body)

    async def _answer_once(self, assignment: Assignment) -> None:
        """Accept or decline once, however often the assignment comes."""
        key = (assignment.attempt_id, assignment.lease)
        if key not in self._reporting.answered and await self._reporting.report(await self._answer_to(assignment)):
            self._reporting.answered.note([key])

    async def _answer_to(self, assignment: Assignment) -> AcceptedMessage | DeclinedMessage:
        if reasons := self._standing.reasons(wall()):
            return DeclinedMessage(assignment.attempt_id, assignment.lease, reasons[0].sentence[:500])
        if not self._reporting.spool.has_room:
            return DeclinedMessage(
                assignment.attempt_id, assignment.lease, "Too much waits on this machine for the pool to receive it."
            )
        return await self._work.assigned(assignment)

    async def _take_rules(self, body: bytes) -> None:
        """Merge the pool's rule book: of each rule the newest counts. Report the result if the pool lacks it."""
        pool_book = from_json(body)
        if isinstance(pool_book, RuleBook) and leaps(self._standing.book, pool_book):
            pool_book = RulesRefusal.RULE_DATED_AHEAD
        if isinstance(pool_book, Refusal):
            self._standing.complain(_POOL_RULES, f"The rules that the pool sent were not taken. {pool_book.sentence}")
            return
        try:
            merged = await asyncio.to_thread(self._rules.merge, pool_book)
        except Fault as fault:
            self._standing.complain(_POOL_RULES, str(fault))
            return
        self._standing.complain(_POOL_RULES, None)
        if merged == pool_book or await self._reporting.report(Facts(RULES, to_json(merged))):
            self._reporting.known(RULES, to_json(merged))
        if merged != self._standing.book:
            self._standing.book = merged
            self._changed()

    async def _take_versions(self, body: bytes) -> None:
        try:
            versions = json.loads(body)
            accepted, oldest = versions["accepted"] is True, str(versions.get("oldest", ""))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            log.warning("order not understood", kind="versions")
            return
        self._standing.oldest = "".join(filter(str.isprintable, oldest))[:_OLDEST_MAX]
        if accepted != self._standing.accepted:
            self._standing.accepted = accepted
            log.info("version accepted" if accepted else "version not accepted", oldest=self._standing.oldest)
        self._changed()

    async def _take_addresses(self, body: bytes) -> None:
        """Use these addresses of the pool from now on."""
        try:
            urls = json.loads(body)
            sound = isinstance(urls, list) and 0 < len(urls) <= URLS_MAX and all(map(self._is_address, urls))
        except (ValueError, TypeError, AttributeError, RecursionError):
            sound = False
        if sound:
            await self._moved(urls)
        else:
            log.warning("order not understood", kind="addresses")

    def _is_address(self, url: str) -> bool:
        return is_pool_url(url) and is_as_safe(url, self._standing.link.url)
