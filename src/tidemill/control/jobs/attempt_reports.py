"""What nodes say about their attempts, taken in: signatures checked before anything is locked, then one transaction.

That an attempt was accepted or has begun is remembered here, and written only when it is not over soon: most are over
before anybody asks. What is forgotten with this process costs nobody anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.control.parts import Parts
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
from tidemill.core.jobs.receipts import ReceiptRefusal, read_batch
from tidemill.core.jobs.task import RetryLimits
from tidemill.core.jobs.task_events import ReceiptsRefused
from tidemill.core.notices.mail.letters import one_line
from tidemill.core.placement.supply import plan_of
from tidemill.core.settings import Settings
from tidemill.store.events import events
from tidemill.store.jobs import deliveries, outcomes, task_output
from tidemill.store.jobs.deliveries import SignedReceipts, Signer
from tidemill.store.jobs.outcomes import AttemptHappening, WorkTerms
from tidemill.store.nodes.node_reports import ReceivedReports, ReportBatch
from tidemill.store.query import Connection

WRITTEN_AFTER_US = 2 * SECOND
KEPT_MAX = 100_000
BEGUN_MAX = 1_000
"""Of one node: whoever says more than it can have in hand pushes nobody else out."""
SEVERE = frozenset({ReceiptRefusal.RECEIPTS_FORGED, ReceiptRefusal.RECEIPT_MOVED})


class RefusedBatch(NamedTuple):
    """A batch that cannot be taken, and whose node sent it."""

    refusal: ReceiptRefusal
    owner_id: UUID


OpenedBatches: TypeAlias = Mapping[tuple[UUID, ReceiptsReport], SignedReceipts | RefusedBatch]
"""By who sent it: what one node signed is no receipt of another."""


class AttemptReportIntake:
    """Takes what nodes say of their attempts, for one control process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._terms = work_terms(parts.settings)
        self._signers: dict[UUID, Signer] = {}
        self._begun: dict[UUID, dict[AttemptLease, tuple[Instant, tuple[Happening, ...]]]] = {}

    async def read(self, reported: Sequence[ReportBatch]) -> OpenedBatches:
        """Check the signatures of what was reported. Done before the transaction, so that nobody waits for it."""
        sent = [(one.link.node_id, said) for one in reported for said in one.said if isinstance(said, ReceiptsReport)]
        signers = await self._signers_of({node_id for node_id, _ in sent})
        return {
            (node_id, batch): _opened(node_id, batch, signers[node_id]) for node_id, batch in sent if node_id in signers
        }

    async def apply(
        self, transaction: Connection, applied: Sequence[ReceivedReports], opened: OpenedBatches, now: Instant
    ) -> None:
        """Do what follows from fresh reports, in the transaction that counts them as received."""
        delivered, said, refused, printed = [], [], [], []
        for one in applied:
            for work in one.works:
                match work:
                    case ReceiptsReport():
                        found = opened.get((one.link.node_id, work))
                        if isinstance(found, SignedReceipts):
                            delivered.append(found)
                        elif found is not None:  # else the node is no longer known: its receipts are worth nothing
                            refused.append(_told(one.link.node_id, found))
                    case DeclineReport(of, reason):
                        why = one_line(reason)
                        said.append(
                            AttemptHappening(of.attempt_id, of.lease, one.link.node_id, (Happening.DECLINED,), why)
                        )
                    case OutputReport():
                        printed.append((one.link.node_id, work))
                    case AcceptReport(of):
                        self._note(one.link.node_id, of, (Happening.ACCEPTED,), now)
                    case ProgressReport(of):
                        self._note(one.link.node_id, of, (Happening.STARTED,), now)
        await task_output.keep(transaction, printed, self._parts.ids, now)
        if refused:
            await events.append(transaction, refused, self._parts.ids, now)
        if delivered or said:
            said = [self._with_acceptance(one) for one in said]
            self._forget(delivered)
            done = await deliveries.apply(transaction, delivered, said, self._terms, self._parts.ids, now)
            self._parts.metrics.dispatch.ended(done.ended)

    async def write_begun(self, now: Instant) -> int:
        """Write down what was accepted or begun a while ago, and is not over yet. Answers how much."""
        said = []
        for node_id, begun in list(self._begun.items()):
            due = [of for of, (since, _) in begun.items() if now - since >= WRITTEN_AFTER_US]
            said += [AttemptHappening(of.attempt_id, of.lease, node_id, begun.pop(of)[1]) for of in due]
            if not begun:
                del self._begun[node_id]
        once = {one.attempt_id: one for one in said}
        if once:
            async with self._parts.loop_database.transaction() as transaction:
                await outcomes.apply(transaction, list(once.values()), self._terms, self._parts.ids, now)
        return len(once)

    async def _signers_of(self, node_ids: set[UUID]) -> Mapping[UUID, Signer]:
        """Whose signatures these nodes' are. Who is not among them is no longer known. What is remembered may be given
        up by another batch meanwhile, so nothing of it is looked up after the database was asked."""
        found = {node_id: signer for node_id in node_ids if (signer := self._signers.get(node_id))}
        if unknown := node_ids - found.keys():
            async with self._parts.loop_database.connection() as connection:
                found |= await deliveries.signers(connection, sorted(unknown))
            if len(self._signers) > KEPT_MAX:
                self._signers.clear()
            self._signers.update(found)
        return found

    def _note(self, node_id: UUID, of: AttemptLease, happened: tuple[Happening, ...], now: Instant) -> None:
        begun = self._begun.setdefault(node_id, {})
        if len(begun) < BEGUN_MAX or of in begun:
            since, before = begun.get(of, (now, ()))
            begun[of] = (since, before if happened[0] in before else (*before, *happened))

    def _with_acceptance(self, one: AttemptHappening) -> AttemptHappening:
        """Whoever declines what it accepted breaks its word, also when the word was not written down yet."""
        begun = self._begun.get(one.node_id, {})
        _, before = begun.pop(AttemptLease(one.attempt_id, one.lease), (None, ()))
        return one._replace(happenings=(*before, *one.happenings)) if before else one

    def _forget(self, delivered: Iterable[SignedReceipts]) -> None:
        for batch in delivered:
            begun = self._begun.get(batch.node_id, {})
            for receipt in batch.receipts:
                begun.pop(AttemptLease(receipt.attempt_id, receipt.lease), None)


def _opened(node_id: UUID, batch: ReceiptsReport, signer: Signer) -> SignedReceipts | RefusedBatch:
    found = read_batch(batch.batch, batch.signature, signer.key, node_id)
    if isinstance(found, ReceiptRefusal):
        return RefusedBatch(found, signer.owner_id)
    return SignedReceipts(node_id, signer.house, batch.batch, batch.signature, found)


def _told(node_id: UUID, refused: RefusedBatch) -> Event:
    refusal = refused.refusal
    return ReceiptsRefused(refused.owner_id, node_id, refusal.code, refusal.sentence, refusal in SEVERE)


def work_terms(settings: Settings) -> WorkTerms:
    """By which rules attempts are judged and paid in this pool."""
    jobs = settings.jobs
    patience = RetryLimits(failures_max=jobs.attempts_max, owners_failing=jobs.owners_failing)
    return WorkTerms(patience, plan_of(settings.money, settings.bonus_fund, settings.plans))
