"""Outcomes of challenges: leased, weighed by core between two short transactions, and written with their consequences.

Whoever writes a conclusion must still hold its lease. A pass writes what was measured of the machine and its devices,
and makes the node active; anything but a pass or an expiry takes that back. Both append an event with the figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.challenge.conclusions import ChallengeEvidence, Conclusion
from tidemill.core.nodes.challenge.events import NodeChallengeFailed, NodeChallengePassed
from tidemill.core.nodes.challenge.figures import Figures, MachineFigures
from tidemill.core.nodes.challenge.messages import ChallengeAnswer, answer_of
from tidemill.core.nodes.challenge.states import ChallengeState
from tidemill.core.nodes.life import LifeChange, LifeRefusal, NodeLife, after
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.nodes.challenges import SLACK_US, asked_of
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class ChallengeLease:
    """Leased challenges, all with one token."""

    token: UUID
    ids: Sequence[UUID]


@dataclass(frozen=True)
class ChallengeInHand:
    """One challenge to be concluded."""

    id: UUID
    token: UUID
    node_id: UUID
    account_id: UUID
    round_trip_ms: int | None
    evidence: ChallengeEvidence


class _EvidenceRow(NamedTuple):
    node_id: UUID
    account_id: UUID
    round_trip_ms: int | None
    state: ChallengeState
    asked: str
    draw: bytes | None
    sent_at: Instant | None
    late: int
    deaf: bool
    relinked: bool


class _AnswerRow(NamedTuple):
    body: bytes
    received_at: Instant


_LEASE = Query("nodes/challenge/lease", UUID)
_EVIDENCE = Query("nodes/challenge/evidence", _EvidenceRow)
_ANSWERS = Query("nodes/challenge/answers", _AnswerRow)
_LOCK_NODE = Query("nodes/challenge/lock_node", NodeLife)
_CONCLUDE = Query("nodes/challenge/conclude", UUID)
_FORGET_ANSWERS = Query("nodes/challenge/forget_answers")
_LOCK_ROUND = Query("nodes/challenge/lock_round")
_CLOSE_ROUND = Query("nodes/challenge/close_round")
_SCHEDULE = Query("nodes/challenge/schedule")
_MEASURED = Query("nodes/challenge/measured")
_MEASURED_MACHINE = Query("nodes/challenge/measured_machine")
_SET_LIFE = Query("nodes/challenge/set_life")
_FORGET = Query("nodes/challenge/forget", UUID)


async def lease(database: Database, ids: Ids, *, lease_us: int, limit: int, now: Instant) -> ChallengeLease:
    token = ids.new(now)
    async with database.connection() as connection:
        leased = await _LEASE.rows(
            connection,
            token=token,
            leased_until=now + lease_us,
            implausible=now + 2 * lease_us,
            limit=limit,
            now=now,
        )
    return ChallengeLease(token, leased)


async def challenge_in_hand(
    database: Database, token: UUID, challenge_id: UUID, now: Instant
) -> ChallengeInHand | None:
    """Everything about one challenge; None if its lease is no longer ours."""
    async with database.connection() as connection:
        row = await _EVIDENCE.row(connection, id=challenge_id, token=token, slack_us=SLACK_US, now=now)
        if row is None:
            return None
        answer_rows = await _ANSWERS.rows(connection, id=challenge_id)
    answers = [(answer_of(answer_row.body), answer_row.received_at) for answer_row in answer_rows]
    evidence = ChallengeEvidence(
        row.state,
        asked_of(row.asked),
        row.draw,
        row.sent_at,
        row.late,
        row.deaf,
        [(answer, at) for answer, at in answers if isinstance(answer, ChallengeAnswer)],
        row.relinked,
    )
    return ChallengeInHand(challenge_id, token, row.node_id, row.account_id, row.round_trip_ms, evidence)


async def apply(
    transaction: Connection,
    challenge: ChallengeInHand,
    conclusion: Conclusion,
    *,
    enough_stake: bool,
    due_at: Instant,
    ids: Ids,
    now: Instant,
) -> bool:
    """Write a conclusion. False if the lease was no longer ours; then nothing was changed.

    `enough_stake` is for the part that keeps stakes to fill; until there is one, every stake is enough.
    """
    life = await _LOCK_NODE.only(transaction, node_id=challenge.node_id)
    round_id = await _CONCLUDE.row(
        transaction, id=challenge.id, token=challenge.token, state=conclusion.state.value, now=now
    )
    if round_id is None:
        return False
    await _FORGET_ANSWERS.run(transaction, id=challenge.id)
    await _LOCK_ROUND.run(transaction, id=round_id)
    await _CLOSE_ROUND.run(transaction, id=round_id, now=now)
    await _schedule(transaction, challenge, conclusion, due_at, now)
    if conclusion.state is ChallengeState.PASSED:
        assert conclusion.machine, "whoever passed was measured"
        await _write_measured(transaction, challenge.node_id, conclusion.figures, conclusion.machine, now)
    await _change_life(transaction, challenge.node_id, life, conclusion.state, enough_stake=enough_stake)
    await _tell(transaction, challenge, conclusion, ids, now)
    return True


async def forget(database: Database, closed_before: Instant, limit: int) -> int:
    """Delete rounds that were closed long ago. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, closed_before=closed_before, limit=limit))


async def _schedule(
    transaction: Connection, challenge: ChallengeInHand, conclusion: Conclusion, due_at: Instant, now: Instant
) -> None:
    await _SCHEDULE.run(
        transaction,
        node_id=challenge.node_id,
        passed=conclusion.state is ChallengeState.PASSED,
        excused=conclusion.excused,
        late=conclusion.late,
        refused=" ".join(finding.sentence for finding in conclusion.findings) or None,
        due_at=due_at,
        now=now,
    )


async def _write_measured(
    transaction: Connection, node_id: UUID, figures: Sequence[Figures], machine: MachineFigures, now: Instant
) -> None:
    await _MEASURED_MACHINE.run(
        transaction, node_id=node_id, cores=machine.measured_cores, memory_mib=machine.measured_mib
    )
    await _MEASURED.run(
        transaction,
        node_id=node_id,
        indexes=[device.index for device in figures],
        names=[device.name for device in figures],
        memories=[device.claimed_mib for device in figures],
        mibs=[device.measured_mib for device in figures],
        speeds=[device.measured_ops_per_s for device in figures],
        nvlinks=[device.nvlink_ppm for device in figures],
        now=now,
    )


async def _change_life(
    transaction: Connection, node_id: UUID, life: NodeLife, state: ChallengeState, *, enough_stake: bool
) -> None:
    if state is ChallengeState.EXPIRED:
        return
    proved = state is ChallengeState.PASSED and enough_stake
    changed = after(life, LifeChange.PROVED if proved else LifeChange.LAPSED)
    if not isinstance(changed, LifeRefusal):
        await _SET_LIFE.run(transaction, node_id=node_id, life=changed.value)


async def _tell(
    transaction: Connection, challenge: ChallengeInHand, conclusion: Conclusion, ids: Ids, now: Instant
) -> None:
    if conclusion.state is ChallengeState.EXPIRED:
        return
    who = (challenge.account_id, challenge.node_id)
    if conclusion.state is ChallengeState.PASSED:
        assert conclusion.machine, "whoever passed was measured"
        reduced = tuple(finding.sentence for finding in conclusion.reduced)
        passed = NodeChallengePassed(*who, conclusion.figures, challenge.round_trip_ms, conclusion.machine, reduced)
        await events.append(transaction, [passed], ids, now)
        return
    codes = tuple(dict.fromkeys(finding.refusal.code for finding in conclusion.findings))
    sentences = tuple(finding.sentence for finding in conclusion.findings)
    failed = NodeChallengeFailed(*who, codes, sentences, conclusion.figures, challenge.round_trip_ms)
    await events.append(transaction, [failed], ids, now)
