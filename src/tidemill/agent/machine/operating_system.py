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
    """The machine, still without its devices. The disk is the one that the agent's home is on."""
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
    """The operating system as its maker calls it."""
    try:
        told = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:  # not every system has such a file
        told = ""
    return words(told or f"{platform.system()} {platform.version()}")[:100]


def engines(within_s: float = VERSION_WITHIN_S) -> Iterator[EngineVersion]:
    """The engines that are installed. Whether they work is found out by using them."""
    for name in ENGINES:
        if found := shutil.which(name):
            yield EngineVersion(name, words(version_of(found, within_s)))
    if program := bubblewrap_program():
        yield EngineVersion("bubblewrap", words(program.version))


def disk_free_mib(home: Path) -> int:
    return _disk_mib(home)[1]


def _disk_mib(home: Path) -> tuple[int, int]:
    """The size of the disk, and what is free. One that cannot be asked has no room for anybody."""
    try:
        usage = shutil.disk_usage(home)
    except OSError:
        return 0, 0
    return within(0, usage.total // 2**20, 2**53), within(0, usage.free // 2**20, 2**53)
