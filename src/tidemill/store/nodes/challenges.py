"""Running challenges: begin rounds, hand out instructions, store answers. For their outcomes see challenge_verdicts.

A round asks all online nodes of an owner in one transaction, and draws for all of them in another. Lock order: nodes by
id, then the round, then challenges by node.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from tidemill.core.bounded_json import Malformed, json_bytes, read_json
from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.challenge.figures import ChallengeRefusal, missed
from tidemill.core.nodes.challenge.messages import AnswerStep, ChallengeAnswer, DeviceDraw, answer_of, instruction_bytes
from tidemill.core.nodes.challenge.sizes import (
    ChallengePlan,
    ask_instruction,
    device_draw,
    draw_instruction,
    plan_challenge,
)
from tidemill.core.nodes.challenge.states import ChallengeHappening, ChallengeState, after
from tidemill.core.nodes.machine.hardware import Machine
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.store.query import Connection, Query

SLACK_US = 30 * SECOND
"""Listening is counted in ticks: this much less listening than time is no sign that we were away."""

WAIT_US = 60 * SECOND
"""How long a node that lost its link is waited for before its owner's other nodes are challenged without it."""

PATIENCE_US = 600 * SECOND
"""A challenge that is overdue for longer, rest aside, waits for no node: otherwise two nodes that come and go could
delay it for ever."""

DRAW_BYTES = 32
_MACHINE_MAX_BYTES = 1_000_000
"""Larger than any accepted machine: the database spaces its JSON out."""

_ASKED_MAX_BYTES = 1_000_000
_KEEP_LONGER_S = 60

RandomBytes = Callable[[int], bytes]


class _MemberRow(NamedTuple):
    """A node's machine in JSON, and what was measured of its devices earlier, by index."""

    id: UUID
    machine: str
    earlier: dict[str, int]


class _ProgressRow(NamedTuple):
    challenge_id: UUID
    step: AnswerStep
    answers: int


class _LockedRow(NamedTuple):
    id: UUID
    state: ChallengeState


@dataclass(frozen=True)
class _ChallengeRow:
    """A challenge that its node is told about."""

    id: UUID
    node_id: UUID
    state: ChallengeState
    asked: str
    draw: bytes | None

    @cached_property
    def plan(self) -> ChallengePlan:
        return asked_of(self.asked)


@dataclass(frozen=True)
class _OpenChallenge(_ChallengeRow):
    """A challenge that answers belong to, with the times of its round. `open_by` is None before the draw."""

    commit_by: Instant
    open_by: Instant | None

    @property
    def by(self) -> Instant:
        return self.commit_by if self.open_by is None else self.open_by

    @property
    def left_behind(self) -> bool:
        return self.open_by is not None and self.draw is None

    def draw_of(self, device: int) -> DeviceDraw | None:
        return device_draw(self.plan.tasks[device], self.draw) if self.draw is not None else None


_DUE_OWNERS = Query("nodes/challenge/due_owners", UUID)
_MEMBERS = Query("nodes/challenge/members", _MemberRow)
_BEGIN_ROUND = Query("nodes/challenge/begin_round", UUID)
_ASK = Query("nodes/challenge/ask")
_MISSED = Query("nodes/challenge/missed")
_INSTRUCTIONS = Query("nodes/challenge/instructions", _ChallengeRow)
_LOCK = Query("nodes/challenge/lock", _OpenChallenge)
_ANSWER = Query("nodes/challenge/answer")
_PROGRESS = Query("nodes/challenge/progress", _ProgressRow)
_SET_STATES = Query("nodes/challenge/set_states")
_UNDRAWN = Query("nodes/challenge/undrawn", UUID)
_LOCK_MEMBERS = Query("nodes/challenge/lock_members")
_LOCK_CHALLENGES = Query("nodes/challenge/lock_challenges", _LockedRow)
_DRAW_ROUND = Query("nodes/challenge/draw_round", bool)
_DRAW = Query("nodes/challenge/draw")


async def due_owners(
    connection: Connection, rules: ChallengeSettings, after_id: UUID | None, limit: int, now: Instant
) -> Sequence[UUID]:
    """Owners with a node that is due for a challenge, ordered by id, after a given one."""
    rested_since = now - int(rules.rest_s * SECOND)
    return await _DUE_OWNERS.rows(
        connection,
        rested_since=rested_since,
        waited_since=now - WAIT_US,
        due_since=rested_since - PATIENCE_US,
        after=after_id,
        limit=limit,
        now=now,
    )


async def begin_round(
    transaction: Connection, account_id: UUID, rules: ChallengeSettings, random: RandomBytes, ids: Ids, now: Instant
) -> int:
    """Challenge all online nodes of an owner. Returns how many; 0 if they are being challenged already.

    The proofs of the owner's other nodes no longer count: their devices may be in a machine that is asked now.
    """
    members = await _MEMBERS.rows(transaction, account_id=account_id)
    plans = {member.id: plan for member in members if (plan := _plan(member, rules, random)) and plan.devices}
    if not plans:
        return 0
    round_id, commit_by = ids.new(now), now + int(rules.commit_s * SECOND)
    if not await _BEGIN_ROUND.row(transaction, id=round_id, account_id=account_id, commit_by=commit_by, now=now):
        return 0
    await _ASK.run(
        transaction,
        round_id=round_id,
        ids=[ids.new(now) for _ in plans],
        node_ids=list(plans),
        asked=[json_bytes(plan).decode() for plan in plans.values()],
        now=now,
    )
    refused = missed().sentence
    await _MISSED.run(transaction, account_id=account_id, node_ids=list(plans), refused=refused, now=now)
    return len(plans)


async def instructions_for(
    connection: Connection, node_ids: Sequence[UUID], rules: ChallengeSettings, now: Instant
) -> Mapping[UUID, bytes]:
    """Instructions of the kind `challenge` for these nodes, as bodies. Send them at once: time runs."""
    challenges = await _INSTRUCTIONS.rows(connection, node_ids=list(node_ids), now=now)
    keep_s = int(rules.commit_s + rules.open_s) + _KEEP_LONGER_S
    return {challenge.node_id: _instruction(challenge, keep_s) for challenge in challenges}


async def apply_answers(
    transaction: Connection, bodies: Sequence[tuple[UUID, bytes]], received_at: Instant
) -> list[ChallengeRefusal | None]:
    """Store answers, each with its node's id, and advance their challenges. Call this once per transaction, because of
    locks."""
    answers = []
    for node_id, body in bodies:
        answers.append((node_id, answer_of(body)))
        await asyncio.sleep(0)  # one may take milliseconds, a batch may hold thousands, and others want their turn
    challenges = await _open_challenges(
        transaction, [answer for _, answer in answers if isinstance(answer, ChallengeAnswer)]
    )
    outcomes, kept = [], []
    for node_id, answer in answers:
        outcome = _objection(node_id, answer, challenges, received_at)
        outcomes.append(outcome)
        if outcome is None and isinstance(answer, ChallengeAnswer):
            kept.append(answer)
    if kept:
        await _keep(transaction, kept, received_at)
        await _move_on(transaction, kept, challenges)
    return outcomes


async def undrawn(connection: Connection, limit: int, now: Instant) -> Sequence[UUID]:
    """Rounds that wait for no node any more."""
    return await _UNDRAWN.rows(connection, limit=limit, now=now)


async def draw(
    transaction: Connection, round_id: UUID, rules: ChallengeSettings, random: RandomBytes, now: Instant
) -> int:
    """Draw for every node that has committed; the others are late. Returns for how many."""
    await _LOCK_MEMBERS.run(transaction, round_id=round_id)
    open_by = now + int(rules.open_s * SECOND)
    deaf = await _DRAW_ROUND.row(transaction, id=round_id, open_by=open_by, slack_us=SLACK_US, now=now)
    if deaf is None or deaf:
        return 0
    challenges = await _LOCK_CHALLENGES.rows(transaction, round_id=round_id)
    committed = [challenge.id for challenge in challenges if challenge.state is ChallengeState.COMMITTED]
    if committed:
        await _DRAW.run(transaction, ids=committed, draws=[random(DRAW_BYTES) for _ in committed])
    return len(committed)


def asked_of(text: str) -> ChallengePlan:
    """The plan of a challenge, from its row."""
    plan = read_json(ChallengePlan, text.encode(), _ASKED_MAX_BYTES)
    assert not isinstance(plan, Malformed), plan.sentence
    return plan


def _plan(member: _MemberRow, rules: ChallengeSettings, random: RandomBytes) -> ChallengePlan | None:
    machine = read_json(Machine, member.machine.encode(), _MACHINE_MAX_BYTES)
    if isinstance(machine, Malformed):
        return None
    earlier = {int(index): speed for index, speed in member.earlier.items()}
    return plan_challenge(machine, earlier, random(DRAW_BYTES), rules)


def _instruction(challenge: _ChallengeRow, keep_s: int) -> bytes:
    if challenge.state is ChallengeState.DRAWN:
        assert challenge.draw is not None, "a drawn challenge has its draw"
        return instruction_bytes(draw_instruction(challenge.id, challenge.plan, challenge.draw, keep_s))
    return instruction_bytes(ask_instruction(challenge.id, challenge.plan, keep_s))


async def _open_challenges(
    transaction: Connection, answers: Sequence[ChallengeAnswer]
) -> Mapping[UUID, _OpenChallenge]:
    wanted = {answer.challenge_id for answer in answers} - {None}
    challenges = await _LOCK.rows(transaction, ids=list(wanted)) if wanted else []
    return {challenge.id: challenge for challenge in challenges}


def _objection(
    node_id: UUID, answer: ChallengeAnswer | Malformed, challenges: Mapping[UUID, _OpenChallenge], received_at: Instant
) -> ChallengeRefusal | None:
    """Why an answer is not stored: unreadable, from another node, not expected now, or too late."""
    if isinstance(answer, Malformed) or answer.challenge_id is None:
        return ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED
    challenge = challenges.get(answer.challenge_id)
    if challenge is None or challenge.node_id != node_id or challenge.left_behind or received_at > challenge.by:
        return ChallengeRefusal.CHALLENGE_ANSWER_STRAY
    task = challenge.plan.tasks.get(answer.device)
    if task is None or answer.step not in _SAID_WHEN.get(challenge.state, ()):
        return ChallengeRefusal.CHALLENGE_ANSWER_STRAY
    if not answer.fits(task, challenge.draw_of(answer.device)):
        return ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED
    return None


_SAID_WHEN: Mapping[ChallengeState, Sequence[AnswerStep]] = {
    ChallengeState.ASKED: (AnswerStep.COMMITMENT, AnswerStep.LINKS, AnswerStep.CANNOT),
    ChallengeState.COMMITTED: (AnswerStep.LINKS, AnswerStep.CANNOT),
    ChallengeState.DRAWN: (AnswerStep.OPENING, AnswerStep.LINKS, AnswerStep.CANNOT),
}


async def _keep(transaction: Connection, answers: Sequence[ChallengeAnswer], received_at: Instant) -> None:
    await _ANSWER.run(
        transaction,
        ids=[answer.challenge_id for answer in answers],
        devices=[answer.device for answer in answers],
        steps=[answer.step.value for answer in answers],
        parts=[answer.part.value for answer in answers],
        places=[answer.place for answer in answers],
        bodies=[json_bytes(answer) for answer in answers],
        received_at=received_at,
    )


async def _move_on(
    transaction: Connection, kept: Sequence[ChallengeAnswer], challenges: Mapping[UUID, _OpenChallenge]
) -> None:
    concerned = {answer.challenge_id for answer in kept if answer.challenge_id}
    rows = await _PROGRESS.rows(transaction, ids=list(concerned))
    counts = {(row.challenge_id, row.step): row.answers for row in rows}
    moved: dict[UUID, ChallengeState] = {}
    for challenge_id in concerned:
        happening = _happening(challenges[challenge_id], counts)
        state = after(challenges[challenge_id].state, happening) if happening else None
        if state is not None:
            moved[challenge_id] = state
    if moved:
        await _SET_STATES.run(transaction, ids=list(moved), states=[state.value for state in moved.values()])


def _happening(challenge: _OpenChallenge, counts: Mapping[tuple[UUID, AnswerStep], int]) -> ChallengeHappening | None:
    if counts.get((challenge.id, AnswerStep.CANNOT)):
        return ChallengeHappening.UNABLE
    if challenge.state is ChallengeState.ASKED:
        wanted = 2 * len(challenge.plan.devices)
        return ChallengeHappening.COMMITTED_ALL if counts.get((challenge.id, AnswerStep.COMMITMENT)) == wanted else None
    if challenge.draw is None:
        return None
    draws = [device_draw(task, challenge.draw) for task in challenge.plan.tasks.values()]
    wanted = sum(len(draw.pages) + len(draw.rows) for draw in draws)
    return ChallengeHappening.OPENED_ALL if counts.get((challenge.id, AnswerStep.OPENING)) == wanted else None
