"""One run of the economy: step by step, everybody chooses, works, is checked, judged and paid.

A step is six hours. Everything in it happens with the knowledge from its beginning, as in a burst; so a cheater always
gets as much in before the rules react as the exposure allows.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.newcomers import throttle
from tidemill.sim.economy.answers import HOUSE, RIGHT, AnswerMaker, Auditors
from tidemill.sim.economy.books import Purse
from tidemill.sim.economy.checks import StepChecks, check
from tidemill.sim.economy.judgement import StepFindings, found_wrong, judge, luck_of_errors_uc
from tidemill.sim.economy.newcomers import churn, come_and_go, first_population, unlock
from tidemill.sim.economy.nuisances import dispute, poison
from tidemill.sim.economy.placement import StepWork, place, weights_of
from tidemill.sim.economy.population import HONEST, Population
from tidemill.sim.economy.scenario import STEP_HOURS, STEPS_A_DAY, EconomyScenario
from tidemill.sim.economy.settlement import cover_checks, pay_for_checks, pay_for_work, settle, spend
from tidemill.sim.economy.strategies.interface import (
    Choices,
    Flags,
    Floats,
    Integers,
    OwnerView,
    Strategy,
    checked_choices,
)
from tidemill.sim.economy.tally import EconomyTally

AGES_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 75, 90, 105, 120, 135, 150, 165)
"""Honest owners are compared with each other within these age bounds."""

IMPLAUSIBLE = 1.5
"""An owner who finishes so many times more than the devices can is looked at."""

LOOKED_AT_DAYS = 7


class Economy:
    """A pool under way."""

    def __init__(self, scenario: EconomyScenario, strategies: Sequence[Strategy]) -> None:
        assert strategies[HONEST].name == "honest", "everybody is compared with honest work"
        self.scenario, self.strategies = scenario, strategies
        self.draws = np.random.default_rng(scenario.seed)
        self.of_strategies = [np.random.default_rng((scenario.seed, code)) for code in range(len(strategies))]
        self.population = first_population(scenario, strategies, self.draws)
        self.tally = EconomyTally(scenario)
        self.lately: deque[tuple[int, int]] = deque(maxlen=LOOKED_AT_DAYS * STEPS_A_DAY)

    def run(self, progress: Callable[[int], None] = lambda _: None) -> EconomyTally:
        for step in range(self.scenario.steps):
            self.step(step)
            progress(step)
        self.tally.finish(self.population)
        return self.tally

    def step(self, step: int) -> None:
        population, draws = self.population, self.draws
        reputations, new = population.reputation(), population.new(step)
        before, present = population.worth_uc() - population.luck_uc, population.open.copy()
        choices = self._choices(step, reputations)
        self._top_up(choices)
        population.cheated_last = population.cheated.copy()
        checks_uc, work_uc = (sum(column) for column in zip(*self.lately, strict=True)) if self.lately else (0, 0)
        throttled = throttle(checks_uc, work_uc, self.scenario.rules.audit).on
        work = place(population, reputations, choices, new=new, throttled=throttled, draws=draws)
        auditors = Auditors(population, reputations, choices.appetite, draws)
        checked = check(population, work, AnswerMaker(population, choices, draws), auditors)
        self._pay(work, checked, choices)
        population.luck_uc += work.luck_uc * (1 - self.scenario.cost_share) - luck_of_errors_uc(
            population, work, checked
        )
        findings = found_wrong(population, work, checked)
        griefed = self._grief(work, checked, choices, auditors)
        look_back_uc = judge(population, findings, self._implausible(work), auditors, step=step, draws=draws)
        population.books.move_one(Purse.AUDIT_BUDGET, Purse.EXTERNAL, look_back_uc)
        self._record(work, checked, findings, step)
        self.lately.append(self.tally.add(population, work, checked, griefed + look_back_uc, step))
        settle(population, new)
        self._compare(before, present, step)
        self._move_on(choices, step)

    def _choices(self, step: int, reputations: Integers) -> Choices:
        """Everybody's choices; each strategy decides about its own accounts, with copies of what they know."""
        population = self.population
        knowledge = self._known(step, reputations)
        everyone = Choices.honest(_view(knowledge, np.arange(population.rows), step))
        for code, strategy in enumerate(self.strategies):
            rows = np.flatnonzero(population.open & (population.strategy == code))
            if code == HONEST or not len(rows):
                continue
            answer = checked_choices(strategy, _view(knowledge, rows, step), self.of_strategies[code])
            for name, values in vars(answer).items():
                getattr(everyone, name)[rows] = values
        self._face_what_is_possible(everyone)
        return everyone

    def _face_what_is_possible(self, choices: Choices) -> None:
        """An account that takes on more than its person's devices can do answers the rest without computing it."""
        population = self.population
        asked_for = population.open * choices.appetite * (1 - choices.self_traded)
        load = np.bincount(population.person, asked_for, minlength=population.people)[population.person]
        forced = np.maximum(0.0, 1 - 1 / np.maximum(1.0, load))
        over = forced > 0
        choices.cheat = np.maximum(choices.cheat, forced)
        choices.cheat_at_most[over], choices.cheat_from_uc[over] = np.inf, 0

    def _known(self, step: int, reputations: Integers) -> dict[str, Integers | Floats | Flags]:
        """What the owner of each account knows."""
        population, books = self.population, self.population.books
        return {
            "account": np.arange(population.rows),
            "person": population.person,
            "age_days": population.age_days(step),
            "active": population.active,
            "reputation_points": reputations,
            "stake_uc": books[Purse.STAKE],
            "least_stake_uc": population.least_stake_uc,
            "unsettled_uc": population.unsettled_uc(),
            "held_back_uc": population.held_back_uc,
            "owed_uc": population.owed_uc,
            "room_uc": population.room_uc(),
            "available_uc": books[Purse.AVAILABLE],
            "verified_results": population.verified,
            "tasks_last_step": population.tasks_last,
            "cheated_last_step": population.cheated - population.cheated_last,
            "times_found": population.found,
            "times_severe": population.severe,
            "usual_reward_uc": (population.price_uc * self.scenario.task_hours).astype(np.int64),
        }

    def _top_up(self, choices: Choices) -> None:
        population = self.population
        short = population.open & (population.books[Purse.STAKE] < population.least_stake_uc)
        population.pay_in_stake(np.flatnonzero(short & choices.top_up))
        population.active = population.open & (population.books[Purse.STAKE] >= population.least_stake_uc)

    def _pay(self, work: StepWork, checked: StepChecks, choices: Choices) -> None:
        population = self.population
        nobody = np.zeros(len(checked.auditor.rows), dtype=bool)
        ties = np.zeros(len(checked.third.rows), dtype=bool)
        spend(population, checked.first, work.rewards_uc, choices, work.ours)
        spend(population, checked.auditor, checked.auditor_rewards_uc, choices, nobody)
        spend(population, checked.third, checked.third_rewards_uc, choices, ties)
        pay_for_work(population, work, checked, self.line_ppm)
        pay_for_checks(population, checked.auditor, checked.auditor_rewards_uc, checked.auditor_wrong)
        pay_for_checks(population, checked.third, checked.third_rewards_uc, ties)
        unseen = ~checked.audited & ~work.canary
        population.unseen[0] += population.sums(work.rows[unseen])
        wrong = unseen & (checked.first.answers != RIGHT)
        population.unseen_wrong[0] += population.sums(work.rows[wrong])

    @property
    def line_ppm(self) -> int:
        """What a quote adds for verification: the recent cost of checks, at most their budget."""
        checks_uc, work_uc = (sum(column) for column in zip(*self.lately, strict=True)) if self.lately else (0, 0)
        share = checks_uc / work_uc if work_uc else 1.0
        return round(min(share, self.scenario.rules.audit.budget) * ONE_PPM)

    def _grief(self, work: StepWork, checked: StepChecks, choices: Choices, auditors: Auditors) -> int:
        usual_uc = int(work.rewards_uc.mean()) if len(work.rewards_uc) else 0
        rate = float(checked.rates.mean()) if len(checked.rates) else 1.0
        juries = dispute(self.population, choices, auditors, usual_uc, self.draws)
        return juries + poison(self.population, choices, usual_uc, rate, self.line_ppm, self.draws)

    def _implausible(self, work: StepWork) -> Flags:
        can = self.population.devices * (STEP_HOURS / self.scenario.task_hours)
        finished = self.population.sums(work.rows)
        implausible: Flags = finished > IMPLAUSIBLE * can + 5
        return implausible

    def _record(self, work: StepWork, checked: StepChecks, findings: StepFindings, step: int) -> None:
        """Everybody's record after the step."""
        population, rules = self.population, self.scenario.rules.reputation
        passed = ~checked.wrong
        finished, right = population.sums(work.rows), population.sums(work.rows[passed])
        values = (
            population.sums(work.rows, work.rewards_uc),
            population.sums(work.rows[passed], work.rewards_uc[passed]),
        )
        population.all_value += values[0]
        population.right_value += values[1]
        crowd = population.sums(work.rows[passed & ~work.ours])
        population.evidence += crowd + np.minimum(right - crowd, right * rules.customer_share)
        population.verified += right
        population.penalties = np.maximum(0, population.penalties - right * rules.repaid_points)
        population.right_in_a_row += np.where(findings.wrong > 0, 0, _audited_right(population, work, checked))
        share = findings.wrong / np.maximum(1, finished)
        population.failures = np.where(
            finished > 0, 0.9 * population.failures + 0.1 * np.minimum(1, share), population.failures
        )
        population.tasks_last = finished
        began = (population.first_cheat < 0) & (population.cheated > 0)
        population.first_cheat[began] = step

    def _compare(self, before: Floats, present: Flags, step: int) -> None:
        """What honest owners of the same age made of equal devices in this step, added to everybody's yardstick.

        Owners with one device are a group of their own: their records grow more slowly. A person has one yardstick,
        however many accounts.
        """
        population = self.population
        gained = population.worth_uc() - population.luck_uc - before
        sizes = population.price_uc * population.devices * population.uptime * weights_of(population.merits())
        ages = np.searchsorted(AGES_DAYS, (step - population.began) / STEPS_A_DAY, side="right")
        groups = 2 * ages + (population.devices > 1)
        honest, many = present & (population.strategy == HONEST), 2 * (len(AGES_DAYS) + 1)
        profits = np.bincount(groups[honest], gained[honest], minlength=many)
        behind = np.bincount(groups[honest], sizes[honest], minlength=many)
        per_size = np.divide(profits, behind, out=np.full(many, profits.sum() / max(1, behind.sum())), where=behind > 0)
        present_rows = np.flatnonzero(present)
        _, firsts = np.unique(population.person[present_rows], return_index=True)
        rows = present_rows[firsts]
        population.baseline_uc[rows] += sizes[rows] * per_size[groups[rows]]

    def _move_on(self, choices: Choices, step: int) -> None:
        population = self.population
        rows = np.flatnonzero(population.open & (population.strategy != HONEST))
        part = Choices(**{name: values[rows] for name, values in vars(choices).items()})
        come_and_go(population, part, rows, step, self.draws)
        churn(population, step, self.draws)
        unlock(population, step)
        cover_checks(population)
        population.books.check()


def _view(knowledge: dict[str, Integers | Floats | Flags], rows: Integers, step: int) -> OwnerView:
    """Copies, so that no strategy changes what it is shown."""
    return OwnerView(day=step / STEPS_A_DAY, **{name: values[rows] for name, values in knowledge.items()})  # type: ignore[arg-type]


def _audited_right(population: Population, work: StepWork, checked: StepChecks) -> Integers:
    """Results that a check found right: of workers, of known answers, and of auditors."""
    agreed = np.zeros(len(work.rows), dtype=bool)
    same = checked.auditor.answers == checked.first.answers[checked.audited]
    agreed[np.flatnonzero(checked.audited)] = same | checked.auditor_wrong
    agreed |= work.canary & ~checked.wrong
    by_owner = (checked.auditor.rows != HOUSE) & same
    return population.sums(work.rows[agreed]) + population.sums(checked.auditor.rows[by_owner])
