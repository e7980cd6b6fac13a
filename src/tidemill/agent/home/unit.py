"""The agent as a systemd service: it has its own user, and is started again after every end that is not final.

Pure. The hardening leaves devices visible, so that the agent can still ask the drivers of GPUs.
"""

from collections.abc import Sequence
from pathlib import Path

SERVICE = "tidemill-agent"
UNIT = Path("/etc/systemd/system") / f"{SERVICE}.service"
GPU_GROUPS = ("video", "render")
"""Groups whose members may use GPUs, on most systems."""

_STATE = Path("/var/lib")


def unit_text(
    *, program: Path, home: Path, user: str, groups: Sequence[str], final: Sequence[int], ca_file: Path | None = None
) -> str:
    """The unit's text. `final` are the exit codes after which systemd does not start it again."""
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


# Tasks get control groups below the service's, and their own mount of /proc. The kernel allows that mount only where
# none of /proc is hidden, so nothing here hides it. Writing to it takes rights that this service lacks.
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
    """systemd makes a home below its state directory. A home elsewhere must be made writable for the service."""
    if home.parent == _STATE:
        return (f"StateDirectory={_quoted(home.name)}", "StateDirectoryMode=0700")
    return (f"ReadWritePaths={_quoted(str(home))}",)


def _quoted(text: str) -> str:
    """Quote a text for a unit, so that percent signs, quotes and spaces stand for themselves."""
    plain = text.replace("%", "%%")
    if not any(character in plain for character in " \t\"'\\$;"):
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
