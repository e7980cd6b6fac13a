"""Answers the link server's questions about nodes from the database. Counts refused calls for the audit trail."""

import json
from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from tidemill.control.events.refusal_tallies import RefusalTally, RefusalTallyLoop
from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.nodes import wire_values
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
_RefusalKind: TypeAlias = tuple[str, str, UUID | None]


class LinkRefusals(RefusalTally[_RefusalKind]):
    """Calls that were turned away, by code, address and node."""

    def __init__(self) -> None:
        super().__init__(("many codes", "many addresses", None))


class LinkRefusalLoop(RefusalTallyLoop[_RefusalKind]):
    """Writes counts of refused calls to the log of events."""

    name = "link_refusals"

    def event_of(self, kind: _RefusalKind, times: int) -> LinkRefused:
        return LinkRefused(*kind, times)


class NodeRegistry:
    """The registry of one control process."""

    def __init__(self, parts: Parts, refusals: LinkRefusals, intake: AttemptReportIntake) -> None:
        self._parts = parts
        self._refusals = refusals
        self._intake = intake
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
                [
                    presence.LinkBeat(_node_link(arrival.link), arrival.at, wire_values.beat_of(arrival.beat))
                    for arrival in beats
                ],
                [_node_link(link) for link in links],
                limits=self._limits,
                ids=self._parts.ids,
                now=self._parts.clock.now(),
            )
        return [_supersession(outdated.link, removed=outdated.removed) for outdated in over]

    async def reported(self, arrivals: Sequence[ReportsArrival]) -> Sequence[registry.ReportsAnswer]:
        batches = [_batch_of(arrival) for arrival in arrivals]
        sound = [batch for batch in batches if isinstance(batch, ReportBatch)]
        opened = await self._intake.read(sound)
        now = self._parts.clock.now()
        async with self._parts.loop_database.transaction() as transaction:
            outcomes = await node_reports.apply(transaction, sound, self._parts.ids, now)
            applied = [outcome for outcome in outcomes if isinstance(outcome, ReceivedReports)]
            await _apply_facts(transaction, applied, now)
            await self._intake.apply(transaction, applied, opened, now)
        following = iter(outcomes)
        return [batch if isinstance(batch, Misreport) else _outcome(next(following)) for batch in batches]

    async def gone(self, links: Sequence[LinkGeneration]) -> None:
        async with self._parts.loop_database.connection() as connection:
            await presence.note_gone(connection, self._parts.process_id, [_node_link(link) for link in links])

    def refused(self, code: str, sentence: str, address: str, node_id: UUID | None) -> None:
        self._refusals.count((code, address, node_id))

    def _answer(
        self, applicant: Applicant, answer: admission.AdmissionAnswer
    ) -> registry.AdmissionGrant | registry.AdmissionDenial:
        if isinstance(answer, TurnAway):
            self._refusals.count((answer.refusal.code, applicant.address, answer.node_id))
            return registry.AdmissionDenial(answer.refusal.code, answer.refusal.sentence, answer.retry_ms)
        return registry.AdmissionGrant(
            LinkGeneration(answer.node_id, answer.generation), answer.received, self._first_wishes(answer)
        )

    def _first_wishes(self, admitted: NodeAdmission) -> list[Wish]:
        versions = {"accepted": admitted.version_accepted, "oldest": self._door.rules.oldest_agent}
        wishes = [Wish(RULES, admitted.rules), Wish(VERSIONS, json.dumps(versions).encode())]
        return [*wishes, Wish(ADDRESSES, json.dumps(self._urls).encode())] if self._urls else wishes


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


def _node_link(link: LinkGeneration) -> NodeLink:
    return NodeLink(link.node_id, link.generation)


def _batch_of(arrival: ReportsArrival) -> ReportBatch | Misreport:
    try:
        return ReportBatch(
            _node_link(arrival.link), arrival.reports.first, wire_values.node_reports(arrival.reports.items)
        )
    except ProtocolError as error:
        return Misreport(arrival.link, error.code, error.sentence)


async def _apply_facts(transaction: Connection, applied: Sequence[ReceivedReports], now: Instant) -> None:
    """Apply reports about challenges and caches. An invalid answer to a challenge does not end the link."""
    answers = [
        (received.link.node_id, fact.body) for received in applied for fact in received.others if fact.kind == CHALLENGE
    ]
    if answers:
        await challenges.apply_answers(transaction, answers, now)
    cached = [
        (received.link.node_id, fact.body) for received in applied for fact in received.others if fact.kind == CACHE
    ]
    if cached:
        await node_cache.apply(transaction, cached)


def _outcome(outcome: node_reports.ReportOutcome) -> registry.ReportsAnswer:
    match outcome:
        case ReceivedReports(link, received):
            return Acknowledgement(_generation_of(link), received)
        case OutdatedLink(link, removed):
            return _supersession(link, removed=removed)
        case MissingReports(link, first, last):
            return Misreport(_generation_of(link), "reports_missing", f"Reports {first} to {last} are missing.")


def _generation_of(link: NodeLink) -> LinkGeneration:
    return LinkGeneration(link.node_id, link.generation)


def _supersession(link: NodeLink, *, removed: bool) -> registry.Supersession:
    if removed:
        return registry.Supersession(
            _generation_of(link), LifeRefusal.NODE_REMOVED.code, LifeRefusal.NODE_REMOVED.sentence
        )
    return registry.Supersession(_generation_of(link), "superseded", _SUPERSEDED)
