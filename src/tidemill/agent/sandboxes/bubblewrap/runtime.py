"""The agent's own Python, as a run sees it: interpreter, libraries and this package, read-only, under one directory.

The paths inside are the same on every machine and say nothing of its owner. The sandbox mounts the places before it
gives up its rights, so that an installation in a closed home directory works for a run that could not go there.
"""

import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import tidemill
from tidemill.core.jobs.sandboxes import Command, Mount

ROOT = PurePosixPath("/runtime")
SYSTEM = Path("/usr")
OPTIONS = ("-B", "-s", "-S", "-P")
"""It writes no bytecode, knows no user's packages, runs nothing that an owner's packages run at every start, and finds
no module in the task's own directory."""


@dataclass(frozen=True)
class PythonRuntime:
    """What to mount so that `program` works inside, and the variables it needs."""

    program: str
    mounts: tuple[Mount, ...]
    environment: Mapping[str, str]

    def module(self, name: str, *arguments: str, more: Mapping[str, str] | None = None) -> Command:
        """The command that runs a module of ours, or of a library, with these arguments and further variables."""
        return Command((self.program, *OPTIONS, "-m", name, *arguments), {**self.environment, **(more or {})})

    def script(self, path: str, *arguments: str, more: Mapping[str, str] | None = None) -> Command:
        """The command that runs a file which the run can read."""
        return Command((self.program, *OPTIONS, path, *arguments), {**self.environment, **(more or {})})


@cache
def python_runtime() -> PythonRuntime:
    """The interpreter that runs us, with its packages. Their places do not change while it runs."""
    base = Path(sys.base_prefix).resolve()
    name = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    shown = PurePosixPath(SYSTEM) if base == SYSTEM else ROOT / "python"
    mounts = [] if base == SYSTEM else [Mount(PurePosixPath(base), shown)]
    mounts += [
        *(Mount(PurePosixPath(place), ROOT / f"packages{number}") for number, place in enumerate(_packages())),
        Mount(PurePosixPath(Path(tidemill.__file__).parent.resolve()), ROOT / "own" / "tidemill"),
    ]
    paths = [str(mount.target) for mount in mounts if mount.target.name.startswith("packages")]
    environment = {
        "PYTHONPATH": ":".join([str(ROOT / "own"), *paths]),
        "PYTHONHASHSEED": "0",
        "LD_LIBRARY_PATH": str(shown / "lib"),
        "HOME": "/work",
    }
    return PythonRuntime(str(shown / name), tuple(mounts), environment)


def _packages() -> list[Path]:
    """Where installed libraries are: those for any machine, and those for this processor where they lie apart."""
    places = (Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib"))
    return list(dict.fromkeys(place for place in places if place.is_dir()))
