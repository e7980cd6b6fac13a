"""The machine around the devices: system, disk, and the programs that can run containers and sandboxes."""

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from tidemill.agent.machine.cpu import cores, cpu_model, memory_mib
from tidemill.agent.machine.driver_calls import within, words
from tidemill.agent.sandboxes.bubblewrap.program import VERSION_WITHIN_S, bubblewrap_program, version_of
from tidemill.core.nodes.machine.hardware import EngineVersion, Machine

ENGINES = ("docker", "podman")
"""Programs that run containers."""


def host(home: Path) -> Machine:
    """The machine without its devices. Its disk is the one with the agent's home."""
    return Machine(
        system=system(),
        kernel=words(platform.release())[:100],
        architecture=words(platform.machine())[:100],
        cpu=cpu_model(),
        cores=within(1, cores(), 65_536),
        memory_mib=memory_mib(),
        disk_mib=_disk_mib(home)[0],
        devices=(),
        engines=tuple(engines()),
    )


def system() -> str:
    """The operating system's name, as its maker calls it."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:  # not every system has such a file
        name = ""
    return words(name or f"{platform.system()} {platform.version()}")[:100]


def engines(within_s: float = VERSION_WITHIN_S) -> Iterator[EngineVersion]:
    """The installed engines. Only using them shows whether they work."""
    for name in ENGINES:
        if path := shutil.which(name):
            yield EngineVersion(name, words(version_of(path, within_s)))
    if program := bubblewrap_program():
        yield EngineVersion("bubblewrap", words(program.version))


def disk_free_mib(home: Path) -> int:
    return _disk_mib(home)[1]


def _disk_mib(home: Path) -> tuple[int, int]:
    """The disk's size and its free space; both 0 if the disk cannot be asked."""
    try:
        usage = shutil.disk_usage(home)
    except OSError:
        return 0, 0
    return within(0, usage.total // 2**20, 2**53), within(0, usage.free // 2**20, 2**53)
