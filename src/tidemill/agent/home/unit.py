"""The agent as a service of systemd: a user of its own, started again whatever happens, unless its end was final.

Pure. What the service may not do does not keep it from asking the drivers of GPUs: devices stay visible.
"""

from collections.abc import Sequence
from pathlib import Path

SERVICE = "tidemill-agent"
UNIT = Path("/etc/systemd/system") / f"{SERVICE}.service"
GPU_GROUPS = ("video", "render")
"""Whose members may use GPUs, on most systems."""

_STATE = Path("/var/lib")


def unit_text(
    *, program: Path, home: Path, user: str, groups: Sequence[str], final: Sequence[int], ca_file: Path | None = None
) -> str:
    """The unit. `final` are the exit codes after which starting again is of no use."""
    environment = {"TIDEMILL_AGENT_HOME": home} | ({} if ca_file is None else {"TIDEMILL_AGENT_CA_FILE": ca_file})
    lines = [
        "[Unit]",
        "Description=Tidemill agent",
        "After=network-online.target",
        "Wants=network-online.target",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"User={user}",
        *([f"SupplementaryGroups={' '.join(groups)}"] if groups else []),
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items()),
        f"ExecStart={_quoted(str(program))} agent run",
        "Restart=always",
        "RestartSec=5",
        f"RestartPreventExitStatus={' '.join(map(str, final))}",
        "KillMode=mixed",  # the agent ends its tasks itself, and tells the pool
        "TimeoutStopSec=30",
        *_state_lines(home),
        *_HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


# Tasks get control groups of their own, below the service's, and a fresh view of the kernel's files, which the kernel
# grants only to those from whom none of them is hidden. Writing to them takes rights that this service has not.
_HARDENING = (
    "Delegate=yes",
    "UMask=0077",
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "PrivateTmp=yes",
    "ProtectKernelModules=yes",
    "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes",
    "LockPersonality=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
    "CapabilityBoundingSet=",
)


def _state_lines(home: Path) -> Sequence[str]:
    """systemd makes a home among the services' own; another one it must be let write to."""
    if home.parent == _STATE:
        return (f"StateDirectory={_quoted(home.name)}", "StateDirectoryMode=0700")
    return (f"ReadWritePaths={_quoted(str(home))}",)


def _quoted(text: str) -> str:
    """As a unit takes it: percent signs, quotes and spaces are just themselves."""
    plain = text.replace("%", "%%")
    if not any(character in plain for character in " \t\"'\\$;"):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
