"""The interface of a strategy: how its owners behave, step by step, knowing what a real owner would know.

A strategy is a class with a name, some constants about its followers, and `choose`. It is called once a step for all
its accounts together; every field of the view and of the choices has one element an account. The rules bound all
choices: a strategy cannot see audits, other owners or the pool's secrets, cannot take on more than its stake allows,
and cannot spend what it does not have. The simulator copies what it shows and checks what it gets back.
"""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tidemill.core.faults import Fault

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class OwnerView:
    """What the owner of each account knows at the beginning of a step. Amounts are in micro-credits.

    `account` is a number that stays with the account; `person` one that stays with the person behind it, so that a
    strategy that remembers can tell its people apart.
    """

    day: float
    account: Integers
    person: Integers
    age_days: Floats
    active: Flags
    reputation_points: Integers
    stake_uc: Integers
    least_stake_uc: Integers
    unsettled_uc: Integers
    held_back_uc: Integers
    owed_uc: Integers
    room_uc: Integers
    available_uc: Integers
    verified_results: Integers
    tasks_last_step: Integers
    cheated_last_step: Integers
    times_found: Integers
    times_severe: Integers
    usual_reward_uc: Integers

    def __len__(self) -> int:
        return len(self.account)


@dataclass
class Choices:
    """What the owner of each account does in this step.

    `cheat` is the share of tasks, audits included since nobody can tell, that are answered without computing them;
    `cheat_at_most` ends that after so many tasks in the step; `cheat_from_uc` excludes smaller rewards; `saved` is the
    share of the cost that cheating saves. `appetite` is how many tasks at once the account claims to take, relative to
    what its devices can do. `self_traded` is the share of the capacity that an accomplice's own orders fill. `disputes`
    and `poisoned` are false disputes opened and tasks without a single answer ordered in this step. `top_up` pays the
    stake up to the least; `leave` ends the account, and `rejoin` begins another for the same person.
    """

    cheat: Floats
    cheat_at_most: Floats
    cheat_from_uc: Integers
    saved: Floats
    appetite: Floats
    self_traded: Floats
    disputes: Floats
    poisoned: Floats
    top_up: Flags
    leave: Flags
    rejoin: Flags

    @classmethod
    def honest(cls, view: OwnerView) -> "Choices":
        """Compute everything, keep the stake up, stay."""
        many = len(view)
        return cls(
            cheat=np.zeros(many),
            cheat_at_most=np.full(many, np.inf),
            cheat_from_uc=np.zeros(many, dtype=np.int64),
            saved=np.ones(many),
            appetite=np.ones(many),
            self_traded=np.zeros(many),
            disputes=np.zeros(many),
            poisoned=np.zeros(many),
            top_up=np.ones(many, dtype=bool),
            leave=np.zeros(many, dtype=bool),
            rejoin=np.zeros(many, dtype=bool),
        )


class Strategy:
    """How some owners behave; by default, honestly.

    `accounts` is how many accounts one person opens for the same devices; `ring` how many people know each other and
    repeat the answer of any member they check; `alike` says that wrong answers of all its followers are equal, as when
    everybody answers with zeros.
    """

    name: ClassVar[str]
    accounts: ClassVar[int] = 1
    ring: ClassVar[int] = 0
    alike: ClassVar[bool] = False

    def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
        return Choices.honest(view)


class StrategyFault(Fault):
    """A strategy returned something that is no choice."""

    code = "strategy_broken"


_BOUNDS = {
    "cheat": (0.0, 1.0),
    "cheat_at_most": (0.0, np.inf),
    "saved": (0.0, 1.0),
    "appetite": (0.0, 8.0),
    "self_traded": (0.0, 1.0),
    "disputes": (0.0, 100.0),
    "poisoned": (0.0, 1000.0),
}


def checked_choices(strategy: Strategy, view: OwnerView, draws: np.random.Generator) -> Choices:
    """A strategy's choices, each of the right shape and within its bounds, whatever it returned."""
    try:
        answer = strategy.choose(view, draws)
        return Choices(**{part.name: _bounded(answer, part.name, len(view)) for part in fields(Choices)})
    except Exception as error:  # foreign code may fail in any way
        raise StrategyFault(f"The strategy {strategy.name} broke: {type(error).__name__}: {error}.") from error


def _bounded(answer: Choices, name: str, many: int) -> NDArray[Any]:
    values = np.asarray(getattr(answer, name))
    if values.shape not in ((many,), ()):
        raise ValueError(f"{name} has the shape {values.shape}, not {(many,)}")
    values = np.array(np.broadcast_to(values, (many,)))
    if name in _BOUNDS:
        return np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), *_BOUNDS[name])
    if name == "cheat_from_uc":
        return np.clip(np.nan_to_num(values.astype(np.float64), nan=0.0), 0, 2.0**52).astype(np.int64)
    return values.astype(np.bool_)
