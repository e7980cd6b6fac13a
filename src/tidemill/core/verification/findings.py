"""What follows from a confirmed wrong result: its price, a look at the owner's other results, and how severe it is.

A result that is drawn at rate p stands for 1/p results that nobody looked at. So a wrong one loses its reward and is
charged so much more that cheating must expect to lose 1.5 times its reward, however rarely and however cleverly spaced
it is; the audit rate sees to it that a charge never exceeds what a severe finding takes. A charge is no punishment:
hardware errs, and pays in expectation a fraction of a percent of its rewards. It is paid from unsettled and later
rewards; the stake only stands for it when its owner leaves.

While a case is open the unsettled rewards are frozen and a sample of their results is checked. One more wrong one and
the finding is severe: the unsettled rewards are void and part of the stake is gone. But of an owner with more results
than the sample, one more may still be an error, and with many machines sooner or later is: then as many again are
looked at, and it takes yet another. A closed case stays closed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

import numpy as np

from tidemill.core.money import credits_of
from tidemill.core.refusals import Refusal
from tidemill.core.settings.quantities import ONE_PPM
from tidemill.core.settings.trust import AuditSettings, FindingsSettings
from tidemill.core.verification.draws import Purpose, sample
from tidemill.core.verification.rates import Amounts, Shares


class CaseRefusal(Refusal):
    CASE_CLOSED = "The case is closed: what was decided stands, and a new finding opens a new case."
    CHECKED_ALREADY = "This result was counted in the case before; nothing was changed."
    NOT_IN_CASE = "This result is none of those that the case looks at."


class Severity(Enum):
    ISOLATED = "So few wrong results among those looked at are errors, not a fraud."
    SEVERE = "More results were wrong than errors explain."
    AT_ONCE = "What was found cannot be an accident."


class Offence(Enum):
    """What is severe at once."""

    FORGED_SIGNATURE = "a forged signature"
    FORGED_PROOF = "a forged proof"
    MOVED_RECEIPT = "a receipt of another attempt"


@dataclass(frozen=True)
class WrongResult:
    """A result that was confirmed to be wrong, and the rate at which results like it were drawn."""

    attempt_id: UUID
    owner_id: UUID
    reward_uc: int
    rate: float


@dataclass(frozen=True)
class Case:
    """One finding against one owner. `sampled` are the results to check, `further` those to check if one is wrong;
    `right` and `wrong` are those that were checked."""

    found: WrongResult
    sampled: frozenset[UUID]
    further: frozenset[UUID] = frozenset()
    looked_further: bool = False
    right: frozenset[UUID] = frozenset()
    wrong: frozenset[UUID] = frozenset()
    severity: Severity | None = None
    offence: Offence | None = None

    @property
    def closed(self) -> bool:
        return self.severity is not None

    @property
    def because(self) -> str:
        """Why it stands as it does."""
        seen, wrong = len(self.right) + len(self.wrong), len(self.wrong)
        looked = f"{seen} of {len(self.sampled | self.wrong)} other unsettled results were checked, {wrong} wrong."
        if self.offence is not None:
            return f"{Severity.AT_ONCE.value} It was {self.offence.value}."
        return looked if self.severity is None else f"{self.severity.value} {looked}"


@dataclass(frozen=True)
class Charge:
    """What a wrong result costs besides its reward, and why so much."""

    amount_uc: int
    because: str


def charges_uc(rewards_uc: Amounts, rates: Shares, collusion: float, rules: AuditSettings) -> Amounts:
    """What wrong results are charged besides their rewards, one element a result."""
    stood_for = rules.deterrence * rewards_uc / ((1.0 - collusion) * rates)
    charged: Amounts = np.maximum(np.ceil(stood_for).astype(np.int64) - rewards_uc, 0)
    return charged


def charge(found: WrongResult, collusion: float, rules: AuditSettings) -> Charge:
    """What one wrong result is charged besides its reward."""
    rewards, rates = np.array([found.reward_uc]), np.array([found.rate])
    amount_uc = int(charges_uc(rewards, rates, collusion, rules)[0])
    because = (
        f"Results like this are checked at a rate of {found.rate:.2%}, so this one stands for {1 / found.rate:.0f}: "
        f"besides its reward of {credits_of(found.reward_uc)} it is charged {credits_of(amount_uc)}."
    )
    return Charge(amount_uc, because)


def open_case(found: WrongResult, unsettled: Sequence[UUID], secret: bytes, rules: FindingsSettings) -> Case:
    """The case of a wrong result, with a sample of the owner's other unsettled results to look at."""
    others = (attempt_id for attempt_id in unsettled if attempt_id != found.attempt_id)
    most = rules.look_back_results
    chosen = sample(secret, Purpose.LOOK_BACK, others, 2 * most)
    return _weighed(Case(found, frozenset(chosen[:most]), frozenset(chosen[most:])), rules)


def severe_at_once(found: WrongResult, offence: Offence) -> Case:
    """The case of what cannot be an accident: closed when it is opened."""
    return Case(found, frozenset(), severity=Severity.AT_ONCE, offence=offence)


def checked(case: Case, attempt_id: UUID, *, wrong: bool, rules: FindingsSettings) -> Case | CaseRefusal:
    """One more result of the owner was checked. A wrong one counts wherever it was found while the case is open."""
    if case.closed:
        return CaseRefusal.CASE_CLOSED
    if attempt_id in case.right | case.wrong | {case.found.attempt_id}:
        return CaseRefusal.CHECKED_ALREADY
    if wrong:
        return _weighed(replace(case, wrong=case.wrong | {attempt_id}), rules)
    if attempt_id not in case.sampled:
        return CaseRefusal.NOT_IN_CASE
    return _weighed(replace(case, right=case.right | {attempt_id}), rules)


def is_severe(others_wrong: int, rules: FindingsSettings, *, more_unseen: bool) -> bool:
    """Whether so many more wrong results make a finding severe. Where more could be looked at, one more is too few."""
    return others_wrong >= rules.severe_wrong_results + more_unseen


def slashed_uc(stake_uc: int, rules: FindingsSettings) -> int:
    """What a severe finding takes of a stake."""
    return stake_uc * rules.severe_stake_ppm // ONE_PPM


def repaid_uc(released_uc: int, owed_uc: int, rules: FindingsSettings) -> int:
    """What of a reward that is paid out repays what its owner owes."""
    return min(owed_uc, released_uc * rules.repaid_ppm // ONE_PPM)


def _weighed(case: Case, rules: FindingsSettings) -> Case:
    """Closed as soon as nothing that can still be found would change the outcome."""
    more_unseen = bool(case.further) or case.looked_further
    if is_severe(len(case.wrong), rules, more_unseen=more_unseen):
        return replace(case, severity=Severity.SEVERE)
    if case.further and is_severe(len(case.wrong), rules, more_unseen=False):
        case = replace(case, sampled=case.sampled | case.further, further=frozenset(), looked_further=True)
    if case.sampled <= case.right | case.wrong:
        return replace(case, severity=Severity.ISOLATED)
    return case
