"""Whose answer is wrong, when several were given to one task.

Two that agree are both right. Two that differ need a third, of another owner or of the house; whoever stands alone
against two is wrong. Answers that are all different say that the task has no single answer: nobody is at fault and the
customer pays. The same failure on two owners is the task's fault. Nobody is judged by an answer of another numeric
class: a device that rounds otherwise is not a cheater.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from tidemill.core.refusals import Refusal
from tidemill.core.settings.trust import VerificationSettings


class AnswersRefusal(Refusal):
    ANSWERS_NOT_COMPARABLE = "The answers are of different numeric classes: check this on a device of the same class."
    ANSWERS_NOT_INDEPENDENT = "Two of the answers are of one owner: check this with another owner's node."


class Judgement(Enum):
    AGREED = "Two independent executions agree."
    THIRD_NEEDED = "The answers differ: one more independent execution decides."
    ONE_IS_WRONG = "One answer stands alone against others that agree."
    NOT_DETERMINISTIC = "All answers differ: the task has no single answer, nobody is at fault, and the customer pays."
    TASK_AT_FAULT = "The task failed in the same way for independent owners: that is its own fault."


@dataclass(frozen=True)
class Answer:
    """What one execution said. Answers with one `key` are the same one; the kind's check decides that."""

    attempt_id: UUID
    owner_id: UUID
    key: bytes
    numeric_class: str = ""
    failed: bool = False
    house: bool = False


@dataclass(frozen=True)
class Ruling:
    """What the answers say together, and which attempts are wrong."""

    judgement: Judgement
    wrong: tuple[UUID, ...]
    because: str


def judge(answers: Sequence[Answer], rules: VerificationSettings) -> Ruling | AnswersRefusal:
    """What two or more answers to one task say. The order in which they came does not matter."""
    if len({answer.numeric_class for answer in answers}) > 1:
        return AnswersRefusal.ANSWERS_NOT_COMPARABLE
    owners = Counter(answer.owner_id for answer in answers if not answer.house)
    if len({answer.attempt_id for answer in answers}) < len(answers) or any(many > 1 for many in owners.values()):
        return AnswersRefusal.ANSWERS_NOT_INDEPENDENT
    assert len(answers) >= 2, "one answer alone says nothing of itself"
    return _ruling(answers, rules)


def _ruling(answers: Sequence[Answer], rules: VerificationSettings) -> Ruling:
    votes = Counter((answer.failed, answer.key) for answer in answers)
    (leading, most), *rest = votes.most_common()
    if most == 1:
        enough = len(answers) >= rules.different_answers
        return _told(Judgement.NOT_DETERMINISTIC if enough else Judgement.THIRD_NEEDED, answers)
    if rest and rest[0][1] == most:
        return _told(Judgement.THIRD_NEEDED, answers)
    if leading[0]:
        return _told(Judgement.TASK_AT_FAULT, answers)
    wrong = tuple(answer.attempt_id for answer in answers if (answer.failed, answer.key) != leading)
    return _told(Judgement.ONE_IS_WRONG if wrong else Judgement.AGREED, answers, wrong)


def _told(judgement: Judgement, answers: Sequence[Answer], wrong: tuple[UUID, ...] = ()) -> Ruling:
    keys = len({(answer.failed, answer.key) for answer in answers})
    return Ruling(judgement, wrong, f"{judgement.value} {len(answers)} executions, {keys} different answers.")
