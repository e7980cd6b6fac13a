"""The simulated economy: what the books always hold, what the rules show, and strategies that do not play fair."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tidemill.cli.main import app, run
from tidemill.core.trust.reputation import ReputationRules
from tidemill.core.trust.rules import FindingsRules
from tidemill.sim.economy import report
from tidemill.sim.economy.answers import HOUSE, Auditors
from tidemill.sim.economy.books import EconomyBooks, Purse
from tidemill.sim.economy.cheating_profits import cheating_profits
from tidemill.sim.economy.checks import outvoted
from tidemill.sim.economy.run import Economy
from tidemill.sim.economy.scenario import EconomyRules, EconomyScenario
from tidemill.sim.economy.strategies.catalogue import Honest, Random, Renewer, SelfTrader, Spacer
from tidemill.sim.economy.strategies.choice import chosen, known
from tidemill.sim.economy.strategies.interface import Choices, OwnerView, Strategy, StrategyFault
from tidemill.sim.economy.tally import EconomyTally, StrategyOutcome, larger_share_ahead

SMALL = EconomyScenario(nodes=800, months=1, seed=5)


def fare(*strategies: Strategy, scenario: EconomyScenario = SMALL) -> EconomyTally:
    """A small pool in which four of ten owners follow the strategies."""
    return Economy(scenario, [Honest(), *strategies]).run()


@pytest.fixture(scope="module")
def quick() -> EconomyTally:
    return Economy(EconomyScenario(nodes=1500, months=2, seed=1), chosen([], [])).run()


def test_every_strategy_of_ours_loses_against_honest_work(quick: EconomyTally) -> None:
    """Two months are too short for some to begin, or to cheat on a fiftieth; whoever did lost by it."""
    griefing = {"self_trading", "false_disputes", "poisoning"}
    began = {name: one for name, one in quick.outcomes.items() if name in griefing or one.cheated > one.tasks / 50}
    assert len(began) >= len(known()) - 7
    assert not {name: one.ci95 for name, one in began.items() if one.ci95[1] >= 0}


def test_nobody_who_cheats_on_a_fifth_is_ahead(quick: EconomyTally) -> None:
    assert sum(one.qualified + one.stopped for one in quick.outcomes.values()) > 50
    assert not any(one.share_ahead for one in quick.outcomes.values())


def test_checks_are_cheap_and_honest_stakes_are_safe(quick: EconomyTally) -> None:
    found = quick.as_json()
    assert found["audit_overhead_pct"] <= 5
    assert found["honest_stake_losses_per_100k"] <= 1
    assert set(found) >= {"strategies", "wrong_results_delivered_ppm"}
    assert set(found["strategies"]["lazy"]) >= {"profit_vs_honest", "ci95", "share_ahead"}
    json.dumps(found, allow_nan=False)


def test_luck_is_nobodys_in_the_long_run_and_takes_width_from_intervals() -> None:
    economy = Economy(SMALL, [Honest()])
    economy.run()
    population = economy.population
    fared = population.worth_uc() - population.baseline_uc
    assert abs(population.luck_uc.sum()) < 0.01 * population.baseline_uc.sum()
    assert (fared - population.luck_uc).std() < 0.9 * fared.std()


def test_those_ahead_are_not_hidden_among_many_who_were_stopped() -> None:
    few = StrategyOutcome(9, -1, (-2, -1), 10, 1, 900, 0, 9, 9, 1, 0)
    many = StrategyOutcome(9, -1, (-2, -1), 0, 0, 5, 1, 9, 9, 1, 0)
    assert few.share_ahead == 0.1
    assert many.share_ahead == 0.2
    assert larger_share_ahead([few, many]) == 0.1


def test_the_report_is_one_page_that_fetches_nothing(quick: EconomyTally) -> None:
    page = report.page(quick)
    assert page.count("<svg") == 4
    assert "<script" not in page
    assert "http" not in page


def test_the_same_seed_gives_the_same_run() -> None:
    few = replace(SMALL, nodes=250)
    one, other = (fare(Random(), scenario=few).as_json() for _ in range(2))
    assert one == other
    assert fare(Random(), scenario=replace(few, seed=6)).as_json() != one


def test_those_who_do_as_the_honest_do_fare_as_the_honest_do() -> None:
    class Same(Strategy):
        name = "same"

    assert abs(fare(Same()).outcomes["same"].profit_vs_honest) < 0.03


def test_who_keeps_cheating_on_thousands_of_tasks_is_never_ahead() -> None:
    """Nobody lasts so long by the rules; here nobody is suspended."""
    rules = EconomyRules(reputation=ReputationRules(suspended_below_points=0))
    tally = fare(Random(), scenario=replace(SMALL, nodes=400, months=3, rules=rules))
    assert tally.outcomes["random"].qualified > 20
    assert tally.outcomes["random"].share_ahead == 0


def test_trading_with_oneself_loses_more_than_the_work_that_was_not_sold() -> None:
    """Half of the capacity is sold to oneself: whoever left it idle would lose a half, and this loses more."""

    class Half(Strategy):
        name = "half"

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            choices.appetite[:] = 0.5
            return choices

    tally = fare(SelfTrader(), Half())
    assert tally.outcomes["self_trading"].ci95[1] < tally.outcomes["half"].profit_vs_honest < 0


def test_being_new_again_and_again_brings_no_more_than_staying() -> None:
    """It brought a fifth more while newcomers were given more work than they have capacity for."""
    assert fare(Renewer(), scenario=replace(SMALL, cheaters=0.1, months=2)).outcomes["renewing"].profit_vs_honest < 0.02


def test_spacing_cheats_out_does_not_pay() -> None:
    class Eager(Spacer):
        name = "eager"
        rare_after = 400

    assert fare(Eager(), scenario=replace(SMALL, months=3)).outcomes["eager"].ci95[1] < 0


class Friends(Strategy):
    """Everybody who follows it knows everybody else, and says the same as whoever of them they check."""

    name = "friends"
    ring = 10**6


class Trickle(Friends):
    """Friends who cheat on a hundredth of their work."""

    name = "trickle"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.verified_results > 300, 0.01, 0.0)
        return choices


class BuyingJuries(Friends):
    """Friends who contest right results of others, and are often the jury."""

    name = "buying_juries"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.disputes[:] = 0.3
        return choices


@pytest.mark.parametrize("kind", [Trickle, BuyingJuries])
def test_four_owners_in_ten_who_are_all_friends_lose_by_it(kind: type[Strategy]) -> None:
    """While owners checked owners, the first gained, and the second had honest owners fined."""
    tally = fare(kind(), scenario=replace(SMALL, months=2))
    assert tally.outcomes[kind.name].ci95[1] < 0
    assert tally.outcomes["honest"].found_share < 0.15


def test_friends_have_nothing_to_copy_while_the_house_has_machines_to_check() -> None:
    def owners_who_check(house_share: float) -> float:
        economy = Economy(replace(SMALL, house_share=house_share), [Honest(), Friends()])
        for step in range(60):
            economy.step(step)
        population = economy.population
        auditors = Auditors(population, population.reputation(), np.ones(population.rows), economy.draws)
        return float((auditors.draw(np.zeros(200, dtype=np.int64)) != HOUSE).mean())

    assert owners_who_check(0.04) == 0
    assert owners_who_check(0.0) == 1
    assert 0 < owners_who_check(0.01) < 1


def test_who_begins_anew_every_day_stays_in_the_pool_and_loses_by_it() -> None:
    """There was no place for them after some days; what they had made by then was compared with nothing."""

    class Restless(Strategy):
        name = "restless"

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            choices.leave[:] = choices.rejoin[:] = True
            return choices

    economy = Economy(SMALL, [Honest(), Restless()])
    outcome = economy.run().outcomes["restless"]
    population = economy.population
    assert len(set(population.person[population.open & (population.strategy == 1)])) == outcome.people
    assert -1 < outcome.profit_vs_honest < outcome.ci95[1] < 0


def test_a_person_is_compared_with_one_honest_owner_whichever_account_is_left() -> None:
    """The yardstick was the first account's: who closed that one and went on with the second had none."""

    class Ghost(Strategy):
        name = "ghost"
        accounts = 2

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            second = np.concatenate([[False], view.person[1:] == view.person[:-1]])
            choices.leave = ~second & (view.day <= 1)
            choices.appetite = np.where(choices.leave, 0.0, 1.0)
            return choices

    assert abs(fare(Ghost()).outcomes["ghost"].profit_vs_honest) < 0.05


def test_a_debt_counts_only_as_far_as_the_stake_stands_for_it() -> None:
    population = Economy(SMALL, [Honest()]).population
    population.owed_uc[:] = 10**15
    assert (population.worth_uc() == -population.books[Purse.STAKE]).all()


class Overclaiming(Strategy):
    """Says it can take more than its devices can do, and computes honestly what it can."""

    name = "overclaiming"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.appetite[:] = 2
        return choices


class ManyAccounts(Strategy):
    """Three accounts at full load for one device."""

    name = "many_accounts"
    accounts = 3


@pytest.mark.parametrize("kind", [Overclaiming, ManyAccounts])
def test_nobody_computes_more_than_their_devices_can(kind: type[Strategy]) -> None:
    outcome = fare(kind()).outcomes[kind.name]
    assert outcome.cheated > 0
    assert outcome.ci95[1] < 0


def test_a_strategy_is_told_nothing_of_others_and_cannot_change_what_it_sees() -> None:
    class Meddling(Strategy):
        name = "meddling"

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            for values in vars(view).values():
                if isinstance(values, np.ndarray):
                    values[:] = 1
            return Choices.honest(view)

    assert abs(fare(Meddling()).outcomes["meddling"].profit_vs_honest) < 0.03


def test_impossible_choices_are_brought_within_bounds() -> None:
    class Wild(Strategy):
        name = "wild"

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            choices.cheat[:], choices.saved[:] = -5, 99
            choices.self_traded[:] = np.nan
            choices.disputes[:] = 1e300
            choices.poisoned[:] = -1
            choices.appetite[:] = -np.inf
            return choices

    assert fare(Wild()).outcomes["wild"].profit_vs_honest <= -1


@pytest.mark.parametrize("answer", ["steal everything", np.zeros(3), [[]]])
def test_a_strategy_that_answers_nonsense_is_named(answer: object) -> None:
    class Broken(Strategy):
        name = "broken"

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            choices.cheat = answer  # type: ignore[assignment]
            return choices

    with pytest.raises(StrategyFault, match="broken"):
        fare(Broken())


def test_of_three_answers_whoever_stands_alone_is_wrong() -> None:
    """For every way in which they can be alike."""
    for keys in product((0, 1, 2), repeat=3):
        if keys[0] == keys[1]:
            continue
        first, second = outvoted(*(np.array([key]) for key in keys))
        alone = [keys.count(key) == 1 and len(set(keys)) == 2 for key in keys]
        assert [bool(first[0]), bool(second[0])] == alone[:2]


def test_books_refuse_what_would_make_money() -> None:
    books = EconomyBooks(3)
    books.move(Purse.EXTERNAL, Purse.STAKE, np.array([5, 0, 7]))
    books.check()
    with pytest.raises(AssertionError, match="forwards"):
        books.move(Purse.STAKE, Purse.AVAILABLE, np.array([-1, 0, 0]))
    with pytest.raises(AssertionError, match="whole"):
        books.move(Purse.STAKE, Purse.AVAILABLE, np.array([0.5, 0, 0]))  # type: ignore[arg-type]
    books.move(Purse.STAKE, Purse.AVAILABLE, np.array([6, 0, 0]))
    with pytest.raises(AssertionError, match="below zero"):
        books.check()
    books.pool[Purse.COMMISSION] += 1
    with pytest.raises(AssertionError, match="off by 1"):
        books.check()


def test_by_the_rules_cheating_pays_at_no_stake() -> None:
    made = cheating_profits(EconomyRules())
    for column, rate in enumerate(made.in_force):
        row = int(np.searchsorted(made.rates, rate * 0.9999))
        assert made.profits[min(row, len(made.rates) - 1), column] < 0
    assert made.profits[0, 0] > 0, "the map has a part where it would"


def test_without_a_stake_that_can_be_taken_cheating_would_pay() -> None:
    """The map is not a picture of the same colour whatever the rules are."""
    toothless = EconomyRules(findings=FindingsRules(severe_stake_ppm=0))
    assert (cheating_profits(toothless).profits[:30] > 0).all()


STRATEGY_FILE = """
from tidemill.sim.economy.strategies.interface import Choices, Strategy

class Mine(Strategy):
    name = "mine"

    def choose(self, view, draws):
        choices = Choices.honest(view)
        choices.cheat[:] = 0.5
        return choices
"""


def test_the_command_tries_strategies_that_it_has_not_seen(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STRATEGY_FILE)
    options = ["--strategy-file", str(file), "--html", str(tmp_path / "page.html")]
    words = ["sim", "economy", "--nodes", "300", "--months", "1", "--strategies", "lazy", "--json"]
    done = CliRunner().invoke(app, [*words, *options])
    found = json.loads(done.stdout)
    assert set(found["strategies"]) == {"honest", "lazy", "mine"}
    assert found["strategies"]["mine"]["profit_vs_honest"] < -1
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


BROKEN_FILES = [
    ("x = 1", "mine.py defines no strategy: derive a class"),
    ("class Nothing:\n    pass", "defines no strategy"),
    ("x = (", "cannot be read as Python: line 1: '.' was never closed"),
    ("import sys\nimport nothing_there", "line 2: ModuleNotFoundError"),
    ("raise SystemExit", "line 1: SystemExit"),
    (STRATEGY_FILE.replace('"mine"', '"honest"'), "Two strategies are called honest: give yours another name"),
    (STRATEGY_FILE.replace('"mine"', "5"), "Mine needs a name of its own"),
    (STRATEGY_FILE + "\nclass Other(Mine):\n    ring = 3\n", "Two strategies are called mine"),
    (STRATEGY_FILE + "    accounts = 0\n", "accounts a person, from 1 to 100"),
    (STRATEGY_FILE + "    accounts = '2'\n", "accounts a person, from 1 to 100"),
    (STRATEGY_FILE + "    ring = -1\n", "whole number of people as ring"),
    (STRATEGY_FILE + "    def __init__(self, much):\n        pass\n", "mine does not begin: TypeError"),
]


@pytest.mark.parametrize(("text", "told"), BROKEN_FILES)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(StrategyFault, match=told):
        chosen([], [file])


def test_a_file_may_define_other_things_beside_its_strategies(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STRATEGY_FILE + "\nclass Note:\n    pass\n")
    assert [one.name for one in chosen([], [file])] == ["honest", "mine"]


def test_an_unknown_strategy_is_named_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "economy", "--strategies", "nonsense"]) == 5
    assert "lazy" in capsys.readouterr().err
