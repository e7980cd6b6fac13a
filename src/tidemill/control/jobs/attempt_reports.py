"""Takes in what nodes report about their attempts: checks signatures before anything is locked, then one transaction.

That an attempt was accepted or has begun is remembered here, and written only if it does not end soon: most end before
anybody asks. If this process dies, forgetting them costs nobody anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.control.parts import Parts
from tidemill.control.terms import work_terms
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import Event
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.attempt_reports import (
    AcceptReport,
    AttemptLease,
    DeclineReport,
    OutputReport,
    ProgressReport,
    ReceiptsReport,
)
from tidemill.core.jobs.events import ReceiptsRefused
from tidemill.core.jobs.plans.deliveries import SignedReceipts
from tidemill.core.jobs.plans.happenings import AttemptHappening
from tidemill.core.jobs.receipts import ReceiptRefusal, read_batch
from tidemill.core.jobs.sandboxes import MIB
from tidemill.core.notices.mail.letters import one_line
from tidemill.store.jobs import deliveries, work_plans
from tidemill.store.jobs.deliveries import HeardAttempt, PrintedOutput, Signer
from tidemill.store.nodes import node_reports
from tidemill.store.nodes.node_reports import ReceivedReports, ReportBatch
from tidemill.store.query import Connection

WRITTEN_AFTER_US = 2 * SECOND
KEPT_MAX = 100_000
BEGUN_MAX = 1_000
"""The most of one node, so that a node that reports too many attempts does not push out others."""
SEVERE = frozenset({ReceiptRefusal.RECEIPTS_FORGED, ReceiptRefusal.RECEIPT_MOVED})


class RefusedBatch(NamedTuple):
    """Why a batch is refused, and the owner of the node that sent it."""

    refusal: ReceiptRefusal
    owner_id: UUID


OpenedBatches: TypeAlias = Mapping[tuple[UUID, ReceiptsReport], SignedReceipts | RefusedBatch]
"""By the sender's node id: what one node signed is no receipt of another."""


class AttemptReportIntake:
    """Takes in the attempt reports of nodes, for one control process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._terms = work_terms(parts.settings)
        self._output_max_bytes = parts.settings.jobs.output_max_mib * MIB
        self._signers: dict[UUID, Signer] = {}
        self._begun: dict[UUID, dict[AttemptLease, tuple[Instant, tuple[Happening, ...]]]] = {}
        self._heard: dict[UUID, dict[AttemptLease, tuple[Instant, Instant]]] = {}
        """When nodes first and last told that attempts go on, until it is written."""

    async def read(self, reported: Sequence[ReportBatch]) -> OpenedBatches:
        """Check the signatures of receipts. Done before the transaction, so that nobody waits for it."""
        sent = [
            (batch.link.node_id, report)
            for batch in reported
            for report in batch.said
            if isinstance(report, ReceiptsReport)
        ]
        signers = await self._signers_of({node_id for node_id, _ in sent})
        now = self._parts.clock.now()
        return {
            (node_id, batch): _open_batch(self._parts.ids.new(now), batch, signers[node_id])
            for node_id, batch in sent
            if node_id in signers
        }

    async def apply(
        self, transaction: Connection, applied: Sequence[ReceivedReports], opened: OpenedBatches, now: Instant
    ) -> None:
        """Do what follows from fresh reports, in the transaction that counts them as received."""
        delivered: dict[UUID, SignedReceipts] = {}
        happenings, printed = [], []
        for received in applied:
            refused: list[Event] = []
            for work in received.works:
                match work:
                    case ReceiptsReport():
                        receipts = opened.get((received.link.node_id, work))
                        if isinstance(receipts, SignedReceipts):
                            delivered[receipts.id] = receipts  # a batch that comes twice is one batch
                        elif receipts is not None:  # else the node is no longer known, and its receipts are ignored
                            refused.append(_refusal_event(received.link.node_id, receipts))
                    case DeclineReport(of, reason):
                        why = one_line(reason)
                        happenings.append(
                            AttemptHappening(of.attempt_id, of.lease, received.link.node_id, (Happening.DECLINED,), why)
                        )
                    case OutputReport(of):
                        begun_at = self._hear(received.link.node_id, of, now)
                        printed.append(PrintedOutput(received.link.node_id, work, begun_at))
                    case AcceptReport(of):
                        self._note(received.link.node_id, of, (Happening.ACCEPTED,), now)
                    case ProgressReport(of):
                        self._hear(received.link.node_id, of, now)
            await node_reports.append_bounded(transaction, received, refused, self._parts.ids, now)
        await deliveries.keep_output(transaction, printed, self._output_max_bytes, self._parts.ids, now)
        if delivered or happenings:
            happenings = [self._with_acceptance(happening) for happening in happenings]
            batches = list(delivered.values())
            self._forget_delivered(batches)
            plan = await deliveries.apply(transaction, batches, happenings, self._terms, self._parts.ids, now)
            self._parts.metrics.dispatch.ended(plan.ended_counts)

    async def write_begun(self, now: Instant) -> int:
        """Write attempts that were accepted or begun a while ago and have not ended. Answers how many.

        They are forgotten only afterwards: if the write fails, the next one brings them.
        """
        due = [
            AttemptHappening(of.attempt_id, of.lease, node_id, happened)
            for node_id, begun in self._begun.items()
            for of, (since, happened) in begun.items()
            if now - since >= WRITTEN_AFTER_US
        ]
        last_by_attempt = {happening.attempt_id: happening for happening in due}
        if last_by_attempt:
            async with self._parts.loop_database.transaction() as transaction:
                await work_plans.apply(transaction, list(last_by_attempt.values()), self._terms, self._parts.ids, now)
        for happening in due:
            of = AttemptLease(happening.attempt_id, happening.lease)
            _, happened = self._begun.get(happening.node_id, {}).get(of, (now, ()))
            if happened == happening.happenings:  # else more was reported during the write
                self._forget_begun(happening.node_id, of)
        await self._write_heard()
        return len(last_by_attempt)

    async def _write_heard(self) -> None:
        """Write when attempts were first and last heard of."""
        told, self._heard = self._heard, {}
        heard = [
            HeardAttempt(of.attempt_id, node_id, of.lease, *instants)
            for node_id, heard_of in told.items()
            for of, instants in heard_of.items()
        ]
        if heard:
            async with self._parts.loop_database.transaction() as transaction:
                await deliveries.hear(transaction, sorted(heard))

    async def _signers_of(self, node_ids: set[UUID]) -> Mapping[UUID, Signer]:
        """The signers of these nodes, without nodes that are no longer known. Another batch may clear the memory during
        the query, so it is not read again afterwards."""
        signers = {node_id: signer for node_id in node_ids if (signer := self._signers.get(node_id))}
        if unknown := node_ids - signers.keys():
            async with self._parts.loop_database.connection() as connection:
                signers |= await deliveries.signers(connection, sorted(unknown))
            if len(self._signers) > KEPT_MAX:
                self._signers.clear()
            self._signers.update(signers)
        return signers

    def _hear(self, node_id: UUID, of: AttemptLease, now: Instant) -> Instant:
        """Note that an attempt goes on, and return since when it is known to."""
        self._note(node_id, of, (Happening.STARTED,), now)
        heard = self._heard.setdefault(node_id, {})
        first_at, _ = heard.get(of, (now, now))
        if len(heard) < BEGUN_MAX or of in heard:
            heard[of] = (first_at, now)
        return first_at

    def _note(self, node_id: UUID, of: AttemptLease, happened: tuple[Happening, ...], now: Instant) -> None:
        begun = self._begun.setdefault(node_id, {})
        if len(begun) < BEGUN_MAX or of in begun:
            since, before = begun.get(of, (now, ()))
            begun[of] = (since, before if happened[0] in before else (*before, *happened))

    def _with_acceptance(self, happening: AttemptHappening) -> AttemptHappening:
        """Add an acceptance that was not written yet: a node that declines what it accepted breaks its word."""
        before = self._forget_begun(happening.node_id, AttemptLease(happening.attempt_id, happening.lease))
        return happening._replace(happenings=(*before, *happening.happenings)) if before else happening

    def _forget_delivered(self, delivered: Iterable[SignedReceipts]) -> None:
        for batch in delivered:
            for receipt in batch.receipts:
                of = AttemptLease(receipt.attempt_id, receipt.lease)
                self._forget_begun(batch.node_id, of)
                self._heard.get(batch.node_id, {}).pop(of, None)

    def _forget_begun(self, node_id: UUID, of: AttemptLease) -> tuple[Happening, ...]:
        """Forget what an attempt began with, and return it."""
        begun = self._begun.get(node_id, {})
        _, happened = begun.pop(of, (None, ()))
        if not begun:
            self._begun.pop(node_id, None)
        return happened


def _open_batch(batch_id: UUID, batch: ReceiptsReport, signer: Signer) -> SignedReceipts | RefusedBatch:
    receipts = read_batch(batch.batch, batch.signature, signer.key, signer.node_id)
    if isinstance(receipts, ReceiptRefusal):
        return RefusedBatch(receipts, signer.owner_id)
    return SignedReceipts(batch_id, signer.node_id, signer.house, batch.batch, batch.signature, receipts)


def _refusal_event(node_id: UUID, refused: RefusedBatch) -> Event:
    refusal = refused.refusal
    return ReceiptsRefused(refused.owner_id, node_id, refusal.code, refusal.sentence, refusal in SEVERE)
