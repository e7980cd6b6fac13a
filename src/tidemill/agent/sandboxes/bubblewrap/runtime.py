"""The agent's own Python, as a run sees it: interpreter, libraries and this package, read-only, under one directory.

The paths inside are the same on every machine and say nothing of its owner. The sandbox mounts the directories before
it gives up its rights, so that a run can use an installation in a home directory that is closed to it.
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
"""Write no bytecode, use no user's packages, run none of the owner's start-up hooks, and import no module from the
task's own directory."""


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
    """The interpreter that runs us, with its packages. Their paths do not change while it runs."""
    base = Path(sys.base_prefix).resolve()
    name = f"bin/python{sys.version_info.major}.{sys.version_info.minor}"
    python_root = PurePosixPath(SYSTEM) if base == SYSTEM else ROOT / "python"
    mounts = [] if base == SYSTEM else [Mount(PurePosixPath(base), python_root)]
    mounts += [
        *(Mount(PurePosixPath(directory), ROOT / f"packages{number}") for number, directory in enumerate(_packages())),
        Mount(PurePosixPath(Path(tidemill.__file__).parent.resolve()), ROOT / "own" / "tidemill"),
    ]
    paths = [str(mount.target) for mount in mounts if mount.target.name.startswith("packages")]
    environment = {
        "PYTHONPATH": ":".join([str(ROOT / "own"), *paths]),
        "PYTHONHASHSEED": "0",
        "LD_LIBRARY_PATH": str(python_root / "lib"),
        "HOME": "/work",
    }
    return PythonRuntime(str(python_root / name), tuple(mounts), environment)


def _packages() -> list[Path]:
    """The directories of installed libraries: those for any machine, and those for this processor if they are apart."""
    directories = (Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib"))
    return list(dict.fromkeys(directory for directory in directories if directory.is_dir()))
