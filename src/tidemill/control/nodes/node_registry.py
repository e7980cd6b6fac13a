"""What the link server asks about nodes, answered from the database. Whom it turns away is counted for the trail."""

import json
from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from tidemill.control.events.refusal_tallies import RefusalTally, RefusalTallyLoop
from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.nodes import wire_values as heard
from tidemill.control.parts import Parts
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes import join_tokens
from tidemill.core.nodes.admission import Applicant, DoorRules, TurnAway
from tidemill.core.nodes.events import LinkRefused
from tidemill.core.nodes.health.alerts import AlertLimits
from tidemill.core.nodes.life import LifeRefusal
from tidemill.core.nodes.machine.cache_report import CACHE
from tidemill.core.nodes.reports import CHALLENGE, RULES
from tidemill.core.settings import Settings
from tidemill.link.held import registry
from tidemill.link.held.registry import (
    Acknowledgement,
    AgentCall,
    BeatArrival,
    LinkGeneration,
    Misreport,
    ReportsArrival,
)
from tidemill.store.nodes import admission, challenges, node_cache, node_reports, presence
from tidemill.store.nodes.admission import AdmissionDesk, NodeAdmission
from tidemill.store.nodes.node_reports import MissingReports, OutdatedLink, ReceivedReports, ReportBatch
from tidemill.store.nodes.presence import NodeLink
from tidemill.store.query import Connection
from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import Hello, Wish

VERSIONS, ADDRESSES = "versions", "addresses"
_SUPERSEDED = "Another link of this node has taken the place of this one."
_Refused: TypeAlias = tuple[str, str, UUID | None]


class LinkRefusals(RefusalTally[_Refused]):
    """Calls that were turned away, by code, address and node."""

    def __init__(self) -> None:
        super().__init__(("many codes", "many addresses", None))


class LinkRefusalLoop(RefusalTallyLoop[_Refused]):
    """Writes down which calls of agents were turned away."""

    name = "link_refusals"

    def told(self, what: _Refused, times: int) -> LinkRefused:
        return LinkRefused(*what, times)


class NodeRegistry:
    """The registry of one control process."""

    def __init__(self, parts: Parts, refusals: LinkRefusals, receiving: AttemptReportIntake) -> None:
        self._parts = parts
        self._refusals = refusals
        self._receiving = receiving
        rules = DoorRules(int(parts.settings.link.heartbeat_s * SECOND), parts.settings.nodes.agent_oldest)
        self._door = AdmissionDesk(parts.process_id, rules, parts.keyring, parts.ids)
        self._urls = parts.settings.link.urls
        self._limits = alert_limits(parts.settings)

    async def admit(self, callers: Sequence[AgentCall]) -> Sequence[registry.AdmissionGrant | registry.AdmissionDenial]:
        applicants = [_applicant(caller.hello, caller.address) for caller in callers]
        async with self._parts.loop_database.transaction() as transaction:
            answers = await admission.admit(transaction, applicants, self._door, self._parts.clock.now())
        return [self._answer(applicant, answer) for applicant, answer in zip(applicants, answers, strict=True)]

    async def heard(
        self, beats: Sequence[BeatArrival], links: Sequence[LinkGeneration]
    ) -> Sequence[registry.Supersession]:
        async with self._parts.loop_database.transaction() as transaction:
            over = await presence.note_heard(
                transaction,
                self._parts.process_id,
                [presence.LinkBeat(_link(one.link), one.at, heard.beat_of(one.beat)) for one in beats],
                [_link(held) for held in links],
                limits=self._limits,
                ids=self._parts.ids,
                now=self._parts.clock.now(),
            )
        return [_over(one.link, removed=one.removed) for one in over]

    async def reported(self, heard: Sequence[ReportsArrival]) -> Sequence[registry.ReportsAnswer]:
        read = [_read(one) for one in heard]
        sound = [one for one in read if isinstance(one, ReportBatch)]
        opened = await self._receiving.read(sound)
        now = self._parts.clock.now()
        async with self._parts.loop_database.transaction() as transaction:
            outcomes = await node_reports.apply(transaction, sound, self._parts.ids, now)
            applied = [one for one in outcomes if isinstance(one, ReceivedReports)]
            await _hand_on(transaction, applied, now)
            await self._receiving.apply(transaction, applied, opened, now)
        told = iter(outcomes)
        return [one if isinstance(one, Misreport) else _outcome(next(told)) for one in read]

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        async with self._parts.loop_database.connection() as connection:
            await presence.note_gone(connection, self._parts.process_id, [_link(held) for held in links])

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        self._refusals.count((code, address, node_id))

    def _answer(
        self, applicant: Applicant, answer: admission.AdmissionAnswer
    ) -> registry.AdmissionGrant | registry.AdmissionDenial:
        if isinstance(answer, TurnAway):
            self._refusals.count((answer.refusal.code, applicant.address, answer.node_id))
            return registry.AdmissionDenial(answer.refusal.code, answer.refusal.sentence, answer.retry_ms)
        return registry.AdmissionGrant(
            LinkGeneration(answer.node_id, answer.generation), answer.received, self._first_orders(answer)
        )

    def _first_orders(self, admitted: NodeAdmission) -> list[Wish]:
        versions = {"accepted": admitted.version_accepted, "oldest": self._door.rules.oldest_agent}
        told = [Wish(RULES, admitted.rules), Wish(VERSIONS, json.dumps(versions).encode())]
        return [*told, Wish(ADDRESSES, json.dumps(self._urls).encode())] if self._urls else told


def alert_limits(settings: Settings) -> AlertLimits:
    nodes = settings.nodes
    return AlertLimits(nodes.pause_above_c, nodes.resume_at_c, settings.link.slow_s * 1000, nodes.disk_low_mib)


def _applicant(hello: Hello, address: str) -> Applicant:
    return Applicant(
        key=hello.key,
        instance=UUID(bytes=hello.instance),
        agent=hello.agent,
        address=address,
        node_id=None if hello.node_id is None else UUID(bytes=hello.node_id),
        token_sha256=None if hello.join_token is None else join_tokens.sha256(hello.join_token),
    )


def _link(held: LinkGeneration) -> NodeLink:
    return NodeLink(held.node_id, held.generation)


def _read(one: ReportsArrival) -> ReportBatch | Misreport:
    try:
        return ReportBatch(_link(one.link), one.reports.first, heard.said_in(one.reports.items))
    except ProtocolError as error:
        return Misreport(one.link, error.code, error.sentence)


async def _hand_on(transaction: Connection, applied: Sequence[ReceivedReports], now: Instant) -> None:
    """What reports say about challenges and caches. An answer that comes to nothing is not the link's affair."""
    said = [(one.link.node_id, fact.body) for one in applied for fact in one.others if fact.kind == CHALLENGE]
    if said:
        await challenges.apply_answers(transaction, said, now)
    cached = [(one.link.node_id, fact.body) for one in applied for fact in one.others if fact.kind == CACHE]
    if cached:
        await node_cache.apply(transaction, cached)


def _outcome(outcome: node_reports.ReportOutcome) -> registry.ReportsAnswer:
    match outcome:
        case ReceivedReports(link, received):
            return Acknowledgement(_held(link), received)
        case OutdatedLink(link, removed):
            return _over(link, removed=removed)
        case MissingReports(link, first, last):
            return Misreport(_held(link), "reports_missing", f"Reports {first} to {last} are missing.")


def _held(link: NodeLink) -> LinkGeneration:
    return LinkGeneration(link.node_id, link.generation)


def _over(link: NodeLink, *, removed: bool) -> registry.Supersession:
    if removed:
        return registry.Supersession(_held(link), LifeRefusal.NODE_REMOVED.code, LifeRefusal.NODE_REMOVED.sentence)
    return registry.Supersession(_held(link), "superseded", _SUPERSEDED)
