"""`tidemill agent doctor|install|uninstall`: what keeps the agent from working, and the agent as a service."""

import asyncio
import grp
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.agent.home.home import Home
from tidemill.agent.home.unit import GPU_GROUPS, SERVICE, UNIT, unit_text
from tidemill.cli.agent.agent_home import agent_settings, own_home
from tidemill.cli.terminal.output import AsJson, CommandRefused, Exit, print_fields, print_json, print_line, report
from tidemill.core.settings import Settings

if TYPE_CHECKING:
    from tidemill.agent.doctor import DoctorCheck

FINAL = (Exit.NO, Exit.USAGE, Exit.SETTINGS, Exit.FINAL)
"""Exit codes after which starting the agent again does not help."""

_USER = "tidemill-agent"
_ROOTS = Path("/var/lib/tidemill-agent")

User = Annotated[str, typer.Option(help="The system user that the agent runs as; made if there is none.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")]


def doctor(as_json: AsJson = False) -> None:
    """Look at everything that may keep this machine from working, and say what to do about it."""
    settings = agent_settings()
    findings = asyncio.run(_findings(settings, own_home(settings), as_json=as_json))
    if as_json:
        print_json([{"check": finding.name, "ok": finding.ok, "detail": finding.detail} for finding in findings])
    if failed := [finding.name for finding in findings if not finding.ok]:
        raise CommandRefused(f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}.")


def install(user: User = _USER, dry_run: DryRun = False) -> None:
    """Make the agent a service that starts with the machine."""
    settings = agent_settings()
    home = Home(settings.agent.home or _ROOTS)
    program = _program()
    text = unit_text(
        program=program,
        home=home.path,
        user=user,
        groups=[group for group in GPU_GROUPS if _has_group(group)],
        final=FINAL,
        ca_file=settings.agent.ca_file,
    )
    if dry_run:
        print_line(text)
        return
    _need_root("install")
    _check_program(program, user)
    _make_user(user, home)
    _give(home, user)
    UNIT.write_text(text, "utf-8")
    _systemctl("daemon-reload")
    _systemctl("enable", "--now" if home.membership.exists() else "--quiet", SERVICE)
    report(_next_step(program, home, user), {"unit": str(UNIT)}, as_json=False)


def uninstall(as_json: AsJson = False) -> None:
    """Stop the service and remove it. The node stays what it is: `tidemill agent leave` removes it from its pool."""
    _need_root("uninstall")
    if not UNIT.exists():
        raise CommandRefused(f"There is no {UNIT}: nothing was installed here.")
    _systemctl("disable", "--now", SERVICE)
    UNIT.unlink()
    _systemctl("daemon-reload")
    report("The service is gone; the agent's home and its user stay.", {"removed": str(UNIT)}, as_json=as_json)


async def _findings(settings: Settings, home: Home, *, as_json: bool) -> "list[DoctorCheck]":
    from tidemill.agent.doctor import examine

    findings = []
    async for finding in examine(home, settings.agent):
        findings.append(finding)
        if not as_json:
            mark = "FAILED" if not finding.ok else "note" if finding.is_note else "ok"
            print_fields({f"{mark:<6}  {finding.name:<10}": finding.detail})
    return findings


def _need_root(command: str) -> None:
    if os.geteuid() != 0:
        raise CommandRefused(f"Only root can do this: run `sudo {_program()} agent {command}`.")
    if shutil.which("systemctl") is None:
        raise CommandRefused("This system has no systemd: let its own supervisor run `tidemill agent run`.")


def _program() -> Path:
    return Path(sys.executable).with_name("tidemill")


def _make_user(user: str, home: Home) -> None:
    if _account(user) is None:
        shell = shutil.which("nologin") or "/usr/sbin/nologin"
        _run_command("useradd", "--system", "--user-group", "--home-dir", str(home.path), "--shell", shell, user)


def _account(user: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return None


def _check_program(program: Path, user: str) -> None:
    """Refuse a program that the service's user cannot run. If that user is not made yet, try as `nobody`."""
    account = _account(user) or pwd.getpwnam("nobody")
    try:
        trial = subprocess.run(
            [program, "--version"],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    except PermissionError:
        trial = None
    if trial is None or trial.returncode:
        raise CommandRefused(
            f"The user {user} cannot run {program}: install Tidemill where all may read it, as in /opt."
        )


def _give(home: Home, user: str) -> None:
    """Give the service a home that root made by joining. Root leaves alone what belongs to others, or lies behind a
    link."""
    account = pwd.getpwnam(user)
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.path.is_symlink():
        raise CommandRefused(f"{home.path} is a symbolic link: set agent.home to the place itself.")
    if home.path.stat().st_uid != 0:
        return
    for path in (home.path, *home.path.iterdir()):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def _has_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _systemctl(*arguments: str) -> None:
    _run_command("systemctl", *arguments)


def _run_command(*command: str) -> None:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise CommandRefused(f"`{' '.join(command)}` failed: {process.stderr.strip() or process.returncode}")


def _next_step(program: Path, home: Home, user: str) -> str:
    if home.membership.exists():
        return f"The agent runs as the service {SERVICE}, as the user {user}: `systemctl status {SERVICE}`."
    return (
        f"The service is ready. Join a pool: `sudo {program} agent join URL --once`, then `systemctl start {SERVICE}`."
    )
