"""Which strategies a run has: ours by name, those of installed packages, and a file's."""

import runpy
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from tidemill.sim.economy.interface import Strategy, StrategyFault
from tidemill.sim.economy.strategies import OURS, Honest

GROUP = "tidemill.strategies"
ACCOUNTS_MAX = 100


def known() -> Mapping[str, type[Strategy]]:
    """Every strategy there is, by its name: ours, and those that packages offer under `tidemill.strategies`."""
    offered = [entry.load() for entry in entry_points(group=GROUP)]
    return {one.name: one for one in (*OURS, *map(_checked, offered))}


def chosen(names: Sequence[str], files: Iterable[Path]) -> list[Strategy]:
    """Honest work first, then what was named, or everything where nothing was; then what the files bring."""
    there = known()
    for name in names:
        if name not in there:
            raise StrategyFault(f"There is no strategy {name}: there are {', '.join(there)}.")
    brought = [one for file in files for one in _from_file(file)]
    named = names or ([] if brought else list(there))
    kinds = {name: there[name] for name in named if name != Honest.name} | {one.name: one for one in brought}
    return [Honest(), *(kind() for kind in kinds.values())]


def _from_file(file: Path) -> list[type[Strategy]]:
    """Every strategy that a file itself defines."""
    defined = runpy.run_path(str(file), run_name=file.stem).values()
    found = [_checked(one) for one in defined if isinstance(one, type) and one.__module__ == file.stem]
    if not found:
        raise StrategyFault(f"{file} defines no strategy: derive a class from tidemill.sim.economy.interface.Strategy.")
    return found


def _checked(kind: object) -> type[Strategy]:
    if not isinstance(kind, type) or not issubclass(kind, Strategy):
        raise StrategyFault(f"{kind} is no strategy: derive it from tidemill.sim.economy.interface.Strategy.")
    name = getattr(kind, "name", Honest.name)
    if name == Honest.name or not 1 <= kind.accounts <= ACCOUNTS_MAX:
        raise StrategyFault(f"{kind.__name__} needs a name of its own and from 1 to {ACCOUNTS_MAX} accounts a person.")
    return kind
