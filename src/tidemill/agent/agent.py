"""An agent at work: it calls the pool, keeps the link, and calls again whenever the link is lost, until it is stopped.

It gives up only for reasons that are final, and waits out all others. It may be killed at any moment: its promises are
on the disk. A bug in any of its parts ends it, since an agent that limps is worse than one that is started again.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID

import structlog

from tidemill import __version__
from tidemill.agent.home.home import Home
from tidemill.agent.home.identity import Membership, update_membership
from tidemill.agent.home.leave_wish import read_leave_wish
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.home.status_file import write_status
from tidemill.agent.link.instructions import RULES, InstructionFollower
from tidemill.agent.link.link_news import LinkNews, LoggedLinkNews
from tidemill.agent.link.pulse import Pulse
from tidemill.agent.machine import Hardware
from tidemill.agent.machine.prover import Prover
from tidemill.agent.machine.watch import MachineWatch
from tidemill.agent.standing import AgentStanding, LinkStanding, LinkState
from tidemill.agent.work.attempt_directories import AttemptDirectories
from tidemill.agent.work.work import WorkInHand
from tidemill.agent.work.workshop import Inputs, Uploads, Workshop
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.nodes.pool_urls import URLS_MAX
from tidemill.core.nodes.rules.rule_book import to_json
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.host.clocks import steady, wall
from tidemill.link.dialled.calls import NODE_REMOVED, CallAgain, CallEnd, Calls, GiveUp
from tidemill.link.dialled.connection import PoolUnreachable, dial
from tidemill.link.dialled.reports import Reporter, as_json
from tidemill.link.dialled.session import LinkSession
from tidemill.wire.handshake import CallingAgent
from tidemill.wire.link import AgentLink
from tidemill.wire.messages import Facts

log = structlog.get_logger()

UNKNOWN_REPORTS = "unknown_reports"
_WATCH_S = 0.5
_STATUS_REST_S = 0.2


class AgentEndKind(Enum):
    """Why an agent ended: its owner stopped it, the pool ended it for good, or the node has left."""

    STOPPED = "stopped"
    FINAL = "final"
    LEFT = "left"


@dataclass(frozen=True)
class AgentEnd:
    end: AgentEndKind
    sentence: str


@dataclass(frozen=True)
class Equipment:
    """What an agent works with."""

    home: Home
    reporting: Reporter
    hardware: Hardware
    rules: RulesFile
    workshop: Workshop
    artefact_access: Callable[[AgentStanding], tuple[Inputs, Uploads]]
    limits: HeatLimits
    trust: ssl.SSLContext
    dice: Random


class Agent:
    """One run of an agent."""

    def __init__(
        self, equipment: Equipment, membership: Membership, join_token: str | None = None, news: LinkNews | None = None
    ) -> None:
        self.registered = asyncio.Event()
        self.said_hello = False
        self.standing = AgentStanding(
            membership=membership,
            limits=equipment.limits,
            link=LinkStanding(LinkState.CALLING, membership.urls[0], wall()),
            started_at=wall(),
            book=equipment.rules.read(),
        )
        self._equipment = equipment
        self._reporting = equipment.reporting
        self._join_token = join_token
        self._news = news or LoggedLinkNews()
        self._instance = secrets.token_bytes(16)
        self._calls = Calls(membership.urls, equipment.dice.random, newcomer=membership.node_id is None)
        self._session: LinkSession | None = None
        self._numbers_are_old = False
        self._leaving = False
        self._ending: asyncio.Future[AgentEnd] = asyncio.get_running_loop().create_future()
        parts = (self.standing, self._reporting, equipment.hardware)
        self._machine = MachineWatch(*parts, equipment.dice, equipment.home.speed)
        attempts, access = AttemptDirectories(equipment.home.attempts), equipment.artefact_access(self.standing)
        self._work = WorkInHand(equipment.workshop, attempts, access, self.standing, self._reporting)
        self._pulse = Pulse(*parts, self._work, equipment.dice, self._machine.look_again)
        self._rules_changed = asyncio.Event()
        self._prover = Prover(lambda: self.standing.machine, self._reporting.report)
        self._follower = InstructionFollower(
            self.standing,
            self._reporting,
            equipment.rules,
            self._work,
            self._prover,
            changed=self._rules_changed.set,
            moved=self._keep_addresses,
        )

    async def run(self) -> AgentEnd:
        """Work until something ends it, and stop in good order."""
        await self._follower.remember()
        return await self._run_until_end(
            self._keep_calling(),
            self._machine.detecting(),
            self._machine.measuring(),
            self._beat_forever(),
            self._work_forever(),
            self._watch_home(),
            self._obey_rules(),
            self._write_status_forever(),
        )

    async def only_join(self) -> AgentEnd:
        """Join without telling what the machine is. The pool would challenge the machine at once, and the next run of
        the agent could not answer that challenge."""
        return await self._run_until_end(self._keep_calling(), self._write_status_forever())

    async def _run_until_end(self, *parts: Coroutine[Any, Any, None]) -> AgentEnd:
        tasks = [asyncio.create_task(part) for part in parts]
        for task in tasks:
            task.add_done_callback(self._end_on_bug)
        try:
            return await self._ending
        finally:
            if self._session:
                await self._session.connection.end("leaving", "The agent stops.")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._prover.close()
            await self._write_status()

    def stop(self) -> None:
        """Stop in good order."""
        ending = AgentEnd(AgentEndKind.STOPPED, "The agent has stopped.")
        self._show_link(LinkState.OVER, self._calls.url, ending.sentence)
        self._end(ending)

    def _end(self, ending: AgentEnd) -> None:
        if not self._ending.done():
            self._ending.set_result(ending)

    def _end_on_bug(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (bug := task.exception()) and not self._ending.done():
            self._ending.set_exception(bug)

    async def _keep_calling(self) -> None:
        while not self._ending.done():
            call_end = await self._call()
            if self._ending.done():
                return
            self._numbers_are_old = call_end.code == UNKNOWN_REPORTS
            decision = self._calls.after(call_end)
            if isinstance(decision, GiveUp):
                self._give_up(decision)
                return
            await self._wait(call_end, decision)

    async def _call(self) -> CallEnd:
        url = self._calls.url
        self._show_link(LinkState.CALLING, url)
        try:
            connection = await dial(url, self._link, self._equipment.trust)
        except PoolUnreachable as fault:
            return CallEnd(fault.code, str(fault))
        self._session = LinkSession(connection, self._reporting, self._on_welcome, self._follower.obey)
        try:
            return await self._session.run()
        except BaseException:
            connection.abort()
            raise
        finally:
            self.said_hello = self.said_hello or connection.has_answered
            self._session = None

    def _link(self) -> AgentLink:
        spool = self._reporting.spool
        has_met = spool.has_met_the_pool and not self._numbers_are_old
        membership = self.standing.membership
        applicant = CallingAgent(
            identity=membership.identity,
            pool_fingerprint=membership.pool_fingerprint,
            agent=f"tidemill/{__version__}",
            instance=self._instance,
            node_id=None if membership.node_id is None else membership.node_id.bytes,
            join_token=self._join_token if membership.node_id is None else None,
        )
        return AgentLink(applicant, secrets.token_bytes(32), spool.last_number if has_met else None, steady())

    async def _on_welcome(self, session: LinkSession, node_id: UUID) -> None:
        """The pool let us in. Keep the node id on the disk before anything else."""
        standing, file = self.standing, self._equipment.home.membership
        standing.membership = await asyncio.to_thread(update_membership, file, standing.membership, node_id=node_id)
        self._calls.let_in()
        self._show_link(LinkState.LINKED, self._calls.url, generation=session.generation)
        self._news.linked(self._calls.url, node_id, session.generation)
        self.registered.set()
        self._pulse.linked(session)
        self._machine.linked(session)
        await self._machine.tell()

    async def _keep_addresses(self, urls: Sequence[str]) -> None:
        """Keep the pool's new addresses. Also keep the one that let us in, which is known to work."""
        all_urls = tuple(dict.fromkeys((self._calls.url, *urls)))[:URLS_MAX]
        standing, file = self.standing, self._equipment.home.membership
        standing.membership = await asyncio.to_thread(update_membership, file, standing.membership, urls=all_urls)
        self._calls.move(standing.membership.urls)

    async def _wait(self, call_end: CallEnd, decision: CallAgain) -> None:
        self._news.lost(call_end, decision.after_s)
        again_at = Instant(wall() + int(decision.after_s * SECOND))
        self._show_link(LinkState.WAITING, self._calls.url, call_end.sentence, again_at)
        await asyncio.sleep(decision.after_s)

    def _give_up(self, decision: GiveUp) -> None:
        self._show_link(LinkState.OVER, self._calls.url, decision.sentence)
        if decision.code == NODE_REMOVED and self._leaving:
            self._end(AgentEnd(AgentEndKind.LEFT, "This machine has left the pool."))
        else:
            self._end(AgentEnd(AgentEndKind.FINAL, decision.sentence))

    def _show_link(
        self,
        state: LinkState,
        url: str,
        sentence: str = "",
        again_at: Instant | None = None,
        generation: int | None = None,
    ) -> None:
        self.standing.link = LinkStanding(state, url, wall(), sentence, again_at, generation)
        self.standing.news.set()

    async def _beat_forever(self) -> None:
        await self._machine.detected.wait()
        await self._pulse.run()

    async def _work_forever(self) -> None:
        await self._machine.detected.wait()
        await self._work.run()

    async def _obey_rules(self) -> None:
        """Act on changed rules, and tell the pool of those that were changed on this machine."""
        while True:
            await self._rules_changed.wait()
            self._rules_changed.clear()
            await self._pulse.obey_rules()
            await self._reporting.tell(RULES, to_json(self.standing.book))
            await self._machine.tell()

    async def _watch_home(self) -> None:
        """Notice what the owner's commands change in the home."""
        last_stamp = None
        while True:
            stamp = self._equipment.rules.stamp()
            if stamp != last_stamp:
                last_stamp = stamp
                await self._read_rules()
            if not self._leaving and (leave := read_leave_wish(self._equipment.home)):
                if leave.force:
                    self._end(AgentEnd(AgentEndKind.LEFT, "This machine forgets the pool."))
                self._leaving = await self._reporting.report(Facts("leave", as_json({"reason": leave.reason})))
            if self._leaving and self._reporting.waiting == 0 and self._reporting.linked:
                self._end(AgentEnd(AgentEndKind.LEFT, "This machine has left the pool."))
            await asyncio.sleep(_WATCH_S)

    async def _read_rules(self) -> None:
        try:
            book = await asyncio.to_thread(self._equipment.rules.read)
        except Fault as fault:
            self.standing.complain(RULES, str(fault))
            return
        self.standing.complain(RULES, None)
        if book != self.standing.book:
            self.standing.book = book
            self._rules_changed.set()

    async def _write_status_forever(self) -> None:
        while True:
            await self.standing.news.wait()
            self.standing.news.clear()
            await self._write_status()
            await asyncio.sleep(_STATUS_REST_S)

    async def _write_status(self) -> None:
        reporting = self._reporting
        fields = self.standing.shown(
            wall(),
            work=self._work.shown(),
            waiting=reporting.waiting,
            complaint=reporting.complaint,
        )
        try:
            await asyncio.to_thread(write_status, self._equipment.home.status, fields, wall())
        except OSError as error:
            log.warning("status not written", cause=error.strerror)
