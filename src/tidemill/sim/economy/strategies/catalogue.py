"""The ways of cheating that we know of, a class each; others can be added from outside, by the same interface."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tidemill.sim.economy.strategies.interface import Choices, OwnerView, Strategy


class Honest(Strategy):
    """Computes everything. Hardware errs now and then."""

    name = "honest"


class Lazy(Strategy):
    """Answers three in ten tasks with zeros, as all lazy owners do, after a fifth of the work."""

    name = "lazy"
    alike = True

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:], choices.saved[:] = 0.3, 0.8
        return choices


class Random(Strategy):
    """Never computes anything."""

    name = "random"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = 1.0
        return choices


class Trickler(Strategy):
    """Once audits have become rare, cheats on one task in two hundred, at random: nearly as rare as errors."""

    name = "trickling"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.verified_results > 1500, 0.005, 0.0)
        return choices


class Spacer(Strategy):
    """Cheats on one large task in each dispute window, so that a look back finds no second one, while audits are rare.

    Once found, it works honestly until they are rare again.
    """

    name = "spaced"
    rare_after: ClassVar[int] = 1300
    window_days: ClassVar[float] = 1.25

    def __init__(self) -> None:
        self.found = np.zeros(0, dtype=np.int64)
        self.rare_from = np.zeros(0, dtype=np.int64)
        self.last = np.zeros(0)

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        self._remember(view)
        rare = view.verified_results > self.rare_from[view.account]
        alone = view.day - self.last[view.account] >= self.window_days
        choices.cheat[:] = np.where(rare & alone, 1.0, 0.0)
        choices.cheat_at_most[:] = 1
        choices.cheat_from_uc = 2 * view.usual_reward_uc
        return choices

    def _remember(self, view: OwnerView) -> None:
        more = max(0, int(view.account.max()) + 1 - len(self.found))
        self.found, self.last = np.pad(self.found, (0, more)), np.pad(self.last, (0, more))
        self.rare_from = np.pad(self.rare_from, (0, more), constant_values=self.rare_after)
        caught = view.times_found > self.found[view.account]
        self.rare_from[view.account[caught]] = view.verified_results[caught] + self.rare_after
        self.found[view.account] = view.times_found
        self.last[view.account[view.cheated_last_step > 0]] = view.day


class LargeOnly(Strategy):
    """Once audits have become rare, cheats only on tasks that pay much more than usual."""

    name = "large_only"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.verified_results > 1500, 1.0, 0.0)
        choices.cheat_from_uc = 3 * view.usual_reward_uc
        return choices


class Sleeper(Strategy):
    """Builds a record, then cheats on a fifth."""

    name = "sleeper"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.reputation_points >= 800, 0.2, 0.0)
        return choices


class Copier(Strategy):
    """Ten friends who copy each other's answers where they meet, and guess half of the rest."""

    name = "copying"
    ring = 10

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = 0.5
        return choices


class Colluder(Strategy):
    """Fifty providers who vouch for each other. They build a record, so that they are drawn as auditors, then cheat."""

    name = "colluding"
    ring = 50

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.age_days > 30, 0.25, 0.0)
        return choices


class SelfTrader(Strategy):
    """A customer and a provider who are one person: half of the capacity is sold to oneself, at the highest bonus."""

    name = "self_trading"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.self_traded[:] = 0.5
        return choices


class Accomplice(Strategy):
    """A customer makes a provider's record with orders that cost nothing; then the provider cheats others."""

    name = "accomplice"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        young = view.age_days < 10
        choices.self_traded[:] = np.where(young, 0.8, 0.0)
        choices.cheat[:] = np.where(young, 0.0, 0.4)
        return choices


class Sybil(Strategy):
    """Five accounts for the same device: four tasks of five cannot be computed."""

    name = "sybil"
    accounts = 5

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = 0.8
        return choices


class Whitewasher(Strategy):
    """Cheats on half until found, leaves with the rest of the stake, and comes back as somebody else."""

    name = "whitewashing"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.age_days > 7, 0.5, 0.0)
        choices.leave = view.times_found > 0
        choices.rejoin = choices.leave
        return choices


class Renewer(Strategy):
    """Works honestly and starts over every ten days, for the placements kept for newcomers."""

    name = "renewing"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.leave = view.age_days >= 10
        choices.rejoin = choices.leave
        return choices


class Oscillator(Strategy):
    """Three weeks of honest work, four days of cheating, and again."""

    name = "oscillating"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.age_days % 25 > 21, 0.5, 0.0)
        return choices


class Burster(Strategy):
    """Every ten days takes on as much at once as it gets, and computes none of it."""

    name = "bursting"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        now = (view.age_days >= 10) & (view.age_days % 10 < 0.25)
        choices.cheat[:] = np.where(now, 1.0, 0.0)
        choices.appetite[:] = np.where(now, 8.0, 1.0)
        return choices


class OneShot(Strategy):
    """Two months of honest work, one day of cheating on everything, and away."""

    name = "one_shot"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:] = np.where(view.age_days >= 60, 1.0, 0.0)
        choices.leave = view.age_days >= 61
        return choices


class FalseAudits(Strategy):
    """Computes, but answers a fifth wrongly, so that the owners it checks look wrong."""

    name = "false_audits"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.cheat[:], choices.saved[:] = 0.2, 0.0
        return choices


class FalseDisputes(Strategy):
    """Works honestly, and contests right results of others with what it earns; thirty friends hope to be the jury."""

    name = "false_disputes"
    ring = 30

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.disputes[:] = 0.25
        return choices


class Poisoner(Strategy):
    """Works honestly, and orders tasks that have no single answer."""

    name = "poisoning"

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        choices = Choices.honest(view)
        choices.poisoned[:] = 1.0
        return choices


OURS: Sequence[type[Strategy]] = (
    Honest,
    Lazy,
    Random,
    Trickler,
    Spacer,
    LargeOnly,
    Sleeper,
    Copier,
    Colluder,
    SelfTrader,
    Accomplice,
    Sybil,
    Whitewasher,
    Renewer,
    Oscillator,
    Burster,
    OneShot,
    FalseAudits,
    FalseDisputes,
    Poisoner,
)
