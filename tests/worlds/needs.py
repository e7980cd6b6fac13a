"""What some tests need beyond PyPI, and how to tell whether it is here."""

import os
import shutil
from collections.abc import Callable
from functools import cache

from tidemill.agent.sandboxes.bubblewrap.program import MISSING, bubblewrap_program, tried


def _program(name: str, package: str) -> Callable[[], str | None]:
    return lambda: None if shutil.which(name) else f"{name} is not installed; on Debian it is in {package}"


@cache
def _no_bubblewrap() -> str | None:
    """It comes from PyPI, for most systems. Their kernels may forbid what it does."""
    program = bubblewrap_program()
    return MISSING if program is None else tried(program)


REASONS: dict[str, Callable[[], str | None]] = {
    "chromium": _program("chromium", "chromium"),
    "bubblewrap": _no_bubblewrap,
    "ip": _program("ip", "iproute2"),
    "iptables": _program("iptables", "iptables"),
    "gcc": _program("gcc", "gcc"),
    "python3": lambda: None if os.path.exists("/usr/bin/python3") else "/usr/bin/python3 is not installed",
    "podman": _program("podman", "podman"),
    "busybox": _program("busybox", "busybox-static"),
    "zsh": _program("zsh", "zsh"),
    "fish": _program("fish", "fish"),
    "runc": _program("runc", "runc"),
    "systemd": _program("systemd-analyze", "systemd"),
    "root": lambda: None if os.geteuid() == 0 else "only root can mount, change users or make network namespaces",
}
"""For each need: why it is not met, or None."""
