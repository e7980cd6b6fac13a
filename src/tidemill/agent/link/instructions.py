"""What the pool orders, and what the agent does about it.

Orders repeat what the pool's database says, so one that comes twice changes nothing twice, and one of a kind that this
agent does not know is left alone: a newer agent will be told again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import structlog

from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.machine.prover import KIND as CHALLENGE
from tidemill.agent.machine.prover import Prover
from tidemill.agent.standing import AgentStanding
from tidemill.agent.work.assignment_taker import AssignmentTaker
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
_THEIR_RULES = "the pool's rules"


class InstructionFollower:
    """Obeys orders, one after the other."""

    def __init__(
        self,
        standing: AgentStanding,
        reporting: Reporter,
        rules: RulesFile,
        runner: AssignmentTaker,
        prover: Prover,
        *,
        changed: Callable[[], None],
        moved: Callable[[Sequence[str]], Awaitable[None]],
    ) -> None:
        """`changed` is called when what the node may do has changed, `moved` with the pool's addresses."""
        self._standing = standing
        self._reporting = reporting
        self._rules = rules
        self._runner = runner
        self._changed = changed
        self._moved = moved
        self._wishes: Mapping[str, Callable[[bytes], Awaitable[None]]] = {
            RULES: self._take_rules,
            "versions": self._take_versions,
            "addresses": self._take_addresses,
            CHALLENGE: prover.take,
        }

    async def remember(self) -> None:
        """What an earlier run of this agent answered, as far as the pool may not know it: it would be offered again."""
        spool = self._reporting.spool
        after = spool.first_number - 1
        while page := await spool.read(after, _READ_BYTES):
            for number, report in page:
                after = number
                self._reporting.answered.note(self._answers(report))

    def _answers(self, report: Report) -> Iterator[AssignmentKey]:
        """The attempts and leases that a report of ours answers the offer of."""
        membership = self._standing.membership
        if isinstance(report, AcceptedMessage | DeclinedMessage):
            yield report.attempt_id, report.lease
        elif isinstance(report, ReceiptsMessage) and membership.node_id:
            found = read_batch(report.batch, report.signature, membership.identity.key, membership.node_id)
            if not isinstance(found, Refusal):
                yield from ((one.attempt_id.bytes, one.lease) for one in found)

    async def obey(self, order: Instruction) -> None:
        match order:
            case Assignment():
                await self._answer(order)
            case Cancel():
                await self._runner.cancelled(order)
            case Wish():
                if wish := self._wishes.get(order.kind):
                    await wish(order.body)

    async def _answer(self, offer: Assignment) -> None:
        """Say yes or no, once, however often the offer is made."""
        key = (offer.attempt_id, offer.lease)
        if key not in self._reporting.answered and await self._reporting.report(await self._answer_to(offer)):
            self._reporting.answered.note([key])

    async def _answer_to(self, offer: Assignment) -> AcceptedMessage | DeclinedMessage:
        if reasons := self._standing.reasons(wall()):
            return DeclinedMessage(offer.attempt_id, offer.lease, reasons[0].sentence[:500])
        if not self._reporting.spool.has_room:
            return DeclinedMessage(
                offer.attempt_id, offer.lease, "Too much waits on this machine for the pool to receive it."
            )
        return await self._runner.assigned(offer)

    async def _take_rules(self, body: bytes) -> None:
        """The pool's book: of each rule the newest counts, and the pool is told if it does not have that."""
        theirs = from_json(body)
        if isinstance(theirs, RuleBook) and leaps(self._standing.book, theirs):
            theirs = RulesRefusal.RULE_DATED_AHEAD
        if isinstance(theirs, Refusal):
            self._standing.complain(_THEIR_RULES, f"The rules that the pool sent were not taken. {theirs.sentence}")
            return
        try:
            merged = await asyncio.to_thread(self._rules.merge, theirs)
        except Fault as fault:
            self._standing.complain(_THEIR_RULES, str(fault))
            return
        self._standing.complain(_THEIR_RULES, None)
        if merged == theirs or await self._reporting.report(Facts(RULES, to_json(merged))):
            self._reporting.known(RULES, to_json(merged))
        if merged != self._standing.book:
            self._standing.book = merged
            self._changed()

    async def _take_versions(self, body: bytes) -> None:
        try:
            said = json.loads(body)
            accepted, oldest = said["accepted"] is True, str(said.get("oldest", ""))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            log.warning("order not understood", kind="versions")
            return
        self._standing.oldest = "".join(filter(str.isprintable, oldest))[:_OLDEST_MAX]
        if accepted != self._standing.accepted:
            self._standing.accepted = accepted
            log.info("version accepted" if accepted else "version not accepted", oldest=self._standing.oldest)
        self._changed()

    async def _take_addresses(self, body: bytes) -> None:
        """Where the pool can be found from now on."""
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
