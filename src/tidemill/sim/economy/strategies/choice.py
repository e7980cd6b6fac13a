"""The strategies of a run: ours by name, those of installed packages, and those of files."""

import runpy
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from tidemill.sim.economy.strategies.catalogue import OURS, Honest
from tidemill.sim.economy.strategies.interface import Strategy, StrategyFault

GROUP = "tidemill.strategies"
ACCOUNTS_MAX = 100
INTERFACE = f"{Strategy.__module__}.{Strategy.__name__}"


def known() -> Mapping[str, type[Strategy]]:
    """Every strategy by its name: ours, and those that packages provide under `tidemill.strategies`."""
    provided = [_checked(entry.load()) for entry in entry_points(group=GROUP)]
    _none_called_alike([strategy.name for strategy in (*OURS, *provided)])
    return {strategy.name: strategy for strategy in (*OURS, *provided)}


def chosen(names: Sequence[str], files: Iterable[Path]) -> list[Strategy]:
    """Honest work first, then the named strategies, or all if none is named; then those of the files."""
    strategies = known()
    for name in names:
        if name not in strategies:
            raise StrategyFault(f"There is no strategy {name}: there are {', '.join(strategies)}.")
    brought = [strategy for file in files for strategy in _from_file(file)]
    _none_called_alike([*strategies, *(strategy.name for strategy in brought)])
    wanted_names = names or ([] if brought else list(strategies))
    kinds = [strategies[name] for name in dict.fromkeys(wanted_names) if name != Honest.name]
    return [Honest(), *(_begun(kind) for kind in (*kinds, *brought))]


def _from_file(file: Path) -> list[type[Strategy]]:
    """Every strategy that a file itself defines; it may define other things too."""
    try:
        defined = runpy.run_path(str(file), run_name=file.stem).values()
    except (Exception, SystemExit) as error:  # foreign code may fail in any way
        raise StrategyFault(f"{file} cannot be read as Python: {_description(error, file)}.") from error
    kinds = [value for value in defined if isinstance(value, type) and value.__module__ == file.stem]
    strategies = [_checked(kind) for kind in kinds if issubclass(kind, Strategy)]
    if not strategies:
        raise StrategyFault(f"{file} defines no strategy: derive a class from {INTERFACE}.")
    return strategies


def _checked(kind: object) -> type[Strategy]:
    if not isinstance(kind, type) or not issubclass(kind, Strategy):
        raise StrategyFault(f"{kind} is no strategy: derive it from {INTERFACE}.")
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not name:
        raise StrategyFault(f'{kind.__name__} needs a name of its own, as in name = "mine".')
    if type(kind.accounts) is not int or not 1 <= kind.accounts <= ACCOUNTS_MAX:
        raise StrategyFault(f"{kind.__name__} needs a whole number of accounts a person, from 1 to {ACCOUNTS_MAX}.")
    if type(kind.ring) is not int or kind.ring < 0 or type(kind.alike) is not bool:
        raise StrategyFault(f"{kind.__name__} needs a whole number of people as ring, and True or False as alike.")
    return kind


def _begun(kind: type[Strategy]) -> Strategy:
    try:
        return kind()
    except Exception as error:  # foreign code may fail in any way
        raise StrategyFault(f"The strategy {kind.name} does not begin: {type(error).__name__}: {error}.") from error


def _none_called_alike(names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise StrategyFault(f"Two strategies are called {name}: give yours another name.")


def _description(error: BaseException, file: Path) -> str:
    """What went wrong, and in which line of the file."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}" if error.lineno else str(error.msg)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    position = f"line {lines[-1]}: " if lines else ""
    return f"{position}{type(error).__name__}: {error}"
