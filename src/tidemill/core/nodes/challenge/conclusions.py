"""What comes of a challenge: passed, failed, impossible, or asked again; and when the node's next one is due.

Our own absence changes nothing for anybody. Who is late, or was gone before the order reached them, is asked again and
has nothing to show meanwhile: else two nodes could take turns with one device, each passing while the other is late.
Who is late too often, one time after the other, has failed. A node whose link was lost meanwhile, perhaps because a
process of ours died, is late where it seems slow: its answers had to wait.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.challenge.messages import Answer, LinkRate, Part, Shown, Step
from tidemill.core.nodes.challenge.sizes import Asked, device_draw
from tidemill.core.nodes.challenge.states import Happening, State, after
from tidemill.core.nodes.challenge.verdict import (
    LATE_MAX,
    OF_SPEED,
    Figures,
    Finding,
    Held,
    figures,
    findings,
    impossible,
    late,
    missed,
)
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.money import NvlinkSettings

RANDOM_BYTES = 8 * 8192
"""What checking one device needs, at the most."""

_WAIT_MOST = 3.0
"""The next challenge comes after three times the average at the latest."""


@dataclass(frozen=True)
class Evidence:
    """What is known when a challenge is concluded. `deaf` says that we could not hear for a while, `relinked` that the
    node's link is no longer the one that the order went over."""

    state: State
    asked: Asked
    draw: bytes | None
    sent_at: Instant | None
    late: int
    deaf: bool
    answers: Sequence[tuple[Answer, Instant]]
    relinked: bool = False


@dataclass(frozen=True)
class Conclusion:
    """The state it ends in, the figures, what they do not support, and how often the node was late in a row.

    An `excused` node stands as it stood before.
    """

    state: State
    late: int
    excused: bool = False
    figures: tuple[Figures, ...] = ()
    findings: tuple[Finding, ...] = ()


def conclude(evidence: Evidence, rules: ChallengeSettings, nvlink: NvlinkSettings, random: bytes) -> Conclusion:
    """Weigh the evidence. Costs up to a second of computing for each fast GPU."""
    if evidence.state is State.CANNOT:
        return Conclusion(State.CANNOT, 0, findings=_impossible(evidence.answers))
    if evidence.deaf:
        return replace(_ended(evidence, Happening.TIME_UP, evidence.late), excused=True)
    if evidence.sent_at is None:
        return _ended(evidence, Happening.TIME_UP, evidence.late, found=[missed()])
    if evidence.state is not State.OPENED:
        return _late(evidence)
    held = _held(evidence, random)
    measured = figures(evidence.asked, held, _rates(evidence.answers), nvlink)
    found = findings(measured, held, rules)
    if found and evidence.relinked and all(finding.refusal in OF_SPEED for finding in found):
        return _late(evidence, measured, found)
    return _ended(evidence, Happening.DISPROVED if found else Happening.PROVED, 0, measured, found)


def next_due(state: State, rules: ChallengeSettings, draw: float, now: Instant) -> Instant:
    """After a pass at a moment that nobody can foresee, after a failure when the node had time to see to it."""
    if state is State.PASSED:
        return Instant(now + int(rules.every_s * min(_WAIT_MOST, -math.log(1 - draw)) * SECOND))
    return now if state is State.EXPIRED else Instant(now + int(rules.retry_s * SECOND))


def _ended(
    evidence: Evidence,
    happening: Happening,
    times_late: int,
    measured: Sequence[Figures] = (),
    found: Sequence[Finding] = (),
) -> Conclusion:
    state = after(evidence.state, happening)
    assert state is not None, f"{happening.value} concludes nothing that is {evidence.state.value}"
    return Conclusion(state, times_late, figures=tuple(measured), findings=tuple(found))


def _late(evidence: Evidence, measured: Sequence[Figures] = (), found: Sequence[Finding] = ()) -> Conclusion:
    times = evidence.late + 1
    happening = Happening.TIME_UP if times < LATE_MAX else Happening.DISPROVED
    return _ended(evidence, happening, times, measured, [late(times), *found])


def _held(evidence: Evidence, random: bytes) -> Mapping[int, Held]:
    # A pool without nodes need not load numpy: it takes a fifth of a second and 25 MiB.
    from tidemill.core.nodes.challenge.judgement import memory_holds, speed_holds

    assert evidence.draw is not None, "what was opened was drawn"
    assert evidence.sent_at is not None, "what was drawn was sent"
    held = {}
    for index, task in evidence.asked.tasks.items():
        draw, shown = device_draw(task, evidence.draw), _shown(index, evidence.answers)
        committed_at = next(at for answer, at in evidence.answers if _is_speed_commitment(answer, index))
        held[index] = Held(
            memory_holds(task, draw, shown),
            speed_holds(task, draw, shown, random[: 8 * task.speed.side]),
            max(1, committed_at - evidence.sent_at),
        )
    return held


def _shown(index: int, answers: Sequence[tuple[Answer, Instant]]) -> Shown:
    contents = {
        (answer.step, answer.part, answer.place): answer.content or b""
        for answer, _ in answers
        if answer.device == index
    }
    opened = {part: _opened(contents, part) for part in Part}
    return Shown(
        contents.get((Step.COMMITMENT, Part.SPEED, 0), b""),
        contents.get((Step.COMMITMENT, Part.MEMORY, 0), b""),
        opened[Part.MEMORY],
        opened[Part.SPEED],
    )


def _opened(contents: Mapping[tuple[Step, Part, int], bytes], wanted: Part) -> Mapping[int, bytes]:
    return {
        place: content for (step, part, place), content in contents.items() if step is Step.OPENING and part is wanted
    }


def _is_speed_commitment(answer: Answer, index: int) -> bool:
    return answer.device == index and answer.step is Step.COMMITMENT and answer.part is Part.SPEED


def _rates(answers: Sequence[tuple[Answer, Instant]]) -> Sequence[LinkRate]:
    return [rate for answer, _ in answers if answer.step is Step.LINKS for rate in answer.links]


def _impossible(answers: Sequence[tuple[Answer, Instant]]) -> tuple[Finding, ...]:
    return tuple(impossible(answer.device, answer.words) for answer, _ in answers if answer.step is Step.CANNOT)
