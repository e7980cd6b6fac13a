"""The conclusion of a challenge: passed, failed, impossible, or asked again; and when the node's next one is due.

Our own absence changes nothing for anybody. A node that is late, or was gone before the instruction reached it, is
asked again and has nothing to show meanwhile: otherwise two nodes could take turns with one device, each passing while
the other is late. A node that is late too often in a row has failed. A node whose link was lost meanwhile, perhaps
because a process of ours died, counts as late where it seems slow: its answers had to wait.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.challenge.figures import (
    LATE_MAX,
    OF_SPEED,
    DeviceCheck,
    Figures,
    MachineFigures,
    UnsupportedClaim,
    figures,
    impossible,
    late,
    machine_figures,
    missed,
    reduced_claims,
    unsupported_claims,
)
from tidemill.core.nodes.challenge.messages import (
    HOST,
    AnswerStep,
    ChallengeAnswer,
    ChallengePart,
    DeviceOpenings,
    LinkRate,
)
from tidemill.core.nodes.challenge.sizes import ChallengePlan, device_draw
from tidemill.core.nodes.challenge.states import ChallengeHappening, ChallengeState, after
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.money import NvlinkSettings

RANDOM_BYTES = 8 * 8192
"""The random bytes that checking one device needs, at the most."""

_WAIT_MOST = 3.0
"""The next challenge comes after three times the average at the latest."""


@dataclass(frozen=True)
class ChallengeEvidence:
    """What is known when a challenge is concluded. `deaf` says that we could not hear for a while, `relinked` that the
    node's link is no longer the one that carried the instruction."""

    state: ChallengeState
    asked: ChallengePlan
    draw: bytes | None
    sent_at: Instant | None
    late: int
    deaf: bool
    answers: Sequence[tuple[ChallengeAnswer, Instant]]
    relinked: bool = False


@dataclass(frozen=True)
class Conclusion:
    """The final state, the figures, the claims they do not support, and how often the node was late in a row.

    An `excused` node stays as it was before. Of the claims in `reduced` less counts than was said; they fail nobody.
    """

    state: ChallengeState
    late: int
    excused: bool = False
    figures: tuple[Figures, ...] = ()
    machine: MachineFigures | None = None
    findings: tuple[UnsupportedClaim, ...] = ()
    reduced: tuple[UnsupportedClaim, ...] = ()


def conclude(
    evidence: ChallengeEvidence, rules: ChallengeSettings, nvlink: NvlinkSettings, random: bytes
) -> Conclusion:
    """Weigh the evidence. Costs up to a second of computing for each fast GPU."""
    if evidence.state is ChallengeState.CANNOT:
        return Conclusion(ChallengeState.CANNOT, 0, findings=_impossible(evidence.answers))
    if evidence.deaf:
        return replace(_ended(evidence, ChallengeHappening.TIME_UP, evidence.late), excused=True)
    if evidence.sent_at is None:
        return _ended(evidence, ChallengeHappening.TIME_UP, evidence.late, unsupported=[missed()])
    if evidence.state is not ChallengeState.OPENED:
        return _late(evidence)
    checks = _device_checks(evidence, random)
    measured = figures(evidence.asked, checks, _rates(evidence.answers), nvlink)
    unsupported = unsupported_claims(measured, checks, rules)
    machine = machine_figures(evidence.asked, measured, rules)
    reduced = reduced_claims(machine)
    devices = [device for device in measured if device.index != HOST]
    if evidence.relinked and _only_seems_slow(evidence, unsupported, reduced):
        return _late(evidence, devices, unsupported)
    happening = ChallengeHappening.DISPROVED if unsupported else ChallengeHappening.PROVED
    ended = _ended(evidence, happening, 0, devices, unsupported)
    return replace(ended, machine=machine, reduced=tuple(reduced))


def next_due(state: ChallengeState, rules: ChallengeSettings, draw: float, now: Instant) -> Instant:
    """After a pass at an unforeseeable moment, after a failure once the node had time to fix it."""
    if state is ChallengeState.PASSED:
        return Instant(now + int(rules.every_s * min(_WAIT_MOST, -math.log(1 - draw)) * SECOND))
    return now if state is ChallengeState.EXPIRED else Instant(now + int(rules.retry_s * SECOND))


def _ended(
    evidence: ChallengeEvidence,
    happening: ChallengeHappening,
    times_late: int,
    measured: Sequence[Figures] = (),
    unsupported: Sequence[UnsupportedClaim] = (),
) -> Conclusion:
    state = after(evidence.state, happening)
    assert state is not None, f"{happening.value} concludes nothing that is {evidence.state.value}"
    return Conclusion(state, times_late, figures=tuple(measured), findings=tuple(unsupported))


def _late(
    evidence: ChallengeEvidence, measured: Sequence[Figures] = (), unsupported: Sequence[UnsupportedClaim] = ()
) -> Conclusion:
    times = evidence.late + 1
    happening = ChallengeHappening.TIME_UP if times < LATE_MAX else ChallengeHappening.DISPROVED
    return _ended(evidence, happening, times, measured, [late(times), *unsupported])


def _only_seems_slow(
    evidence: ChallengeEvidence, unsupported: Sequence[UnsupportedClaim], reduced: Sequence[UnsupportedClaim]
) -> bool:
    """Whether nothing but speed was wanting. Nobody fails for reduced claims, so the last time these count as shown."""
    if unsupported:
        return all(finding.refusal in OF_SPEED for finding in unsupported)
    return bool(reduced) and evidence.late + 1 < LATE_MAX


def _device_checks(evidence: ChallengeEvidence, random: bytes) -> Mapping[int, DeviceCheck]:
    # A pool without nodes need not load numpy: it takes a fifth of a second and 25 MiB.
    from tidemill.core.nodes.challenge.judgement import is_memory_shown, is_speed_shown

    assert evidence.draw is not None, "an opened challenge was drawn"
    assert evidence.sent_at is not None, "a drawn challenge was sent"
    checks = {}
    for index, task in evidence.asked.tasks.items():
        draw, openings = device_draw(task, evidence.draw), _shown(index, evidence.answers)
        committed_at = next(at for answer, at in evidence.answers if _is_speed_commitment(answer, index))
        checks[index] = DeviceCheck(
            is_memory_shown(task, draw, openings),
            is_speed_shown(task, draw, openings, random[: 8 * task.speed.side]),
            max(1, committed_at - evidence.sent_at),
        )
    return checks


def _shown(index: int, answers: Sequence[tuple[ChallengeAnswer, Instant]]) -> DeviceOpenings:
    contents = {
        (answer.step, answer.part, answer.place): answer.content or b""
        for answer, _ in answers
        if answer.device == index
    }
    opened = {part: _opened(contents, part) for part in ChallengePart}
    return DeviceOpenings(
        contents.get((AnswerStep.COMMITMENT, ChallengePart.SPEED, 0), b""),
        contents.get((AnswerStep.COMMITMENT, ChallengePart.MEMORY, 0), b""),
        opened[ChallengePart.MEMORY],
        opened[ChallengePart.SPEED],
    )


def _opened(
    contents: Mapping[tuple[AnswerStep, ChallengePart, int], bytes], wanted_part: ChallengePart
) -> Mapping[int, bytes]:
    return {
        position: content
        for (step, part, position), content in contents.items()
        if step is AnswerStep.OPENING and part is wanted_part
    }


def _is_speed_commitment(answer: ChallengeAnswer, index: int) -> bool:
    return answer.device == index and answer.step is AnswerStep.COMMITMENT and answer.part is ChallengePart.SPEED


def _rates(answers: Sequence[tuple[ChallengeAnswer, Instant]]) -> Sequence[LinkRate]:
    return [rate for answer, _ in answers if answer.step is AnswerStep.LINKS for rate in answer.links]


def _impossible(answers: Sequence[tuple[ChallengeAnswer, Instant]]) -> tuple[UnsupportedClaim, ...]:
    return tuple(impossible(answer.device, answer.words) for answer, _ in answers if answer.step is AnswerStep.CANNOT)
