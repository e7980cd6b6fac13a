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
from tidemill.cli.terminal.output import AsJson, CommandRefused, Exit, print_json, print_line, report
from tidemill.core.settings import Settings

if TYPE_CHECKING:
    from tidemill.agent.doctor import DoctorCheck

FINAL = (Exit.NO, Exit.USAGE, Exit.SETTINGS, Exit.FINAL)
"""Ends that come back however often the agent is started."""

_USER = "tidemill-agent"
_ROOTS = Path("/var/lib/tidemill-agent")

User = Annotated[str, typer.Option(help="The system user that the agent runs as; made if there is none.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")]


def doctor(as_json: AsJson = False) -> None:
    """Look at everything that may keep this machine from working, and say what to do about it."""
    settings = agent_settings()
    findings = asyncio.run(_examined(settings, own_home(settings), as_json=as_json))
    if as_json:
        print_json([{"check": one.name, "ok": one.ok, "detail": one.detail} for one in findings])
    if failed := [one.name for one in findings if not one.ok]:
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
    report(_installed(program, home, user), {"unit": str(UNIT)}, as_json=False)


def uninstall(as_json: AsJson = False) -> None:
    """Stop the service and remove it. The node stays what it is: `tidemill agent leave` removes it from its pool."""
    _need_root("uninstall")
    if not UNIT.exists():
        raise CommandRefused(f"There is no {UNIT}: nothing was installed here.")
    _systemctl("disable", "--now", SERVICE)
    UNIT.unlink()
    _systemctl("daemon-reload")
    report("The service is gone; the agent's home and its user stay.", {"removed": str(UNIT)}, as_json=as_json)


async def _examined(settings: Settings, home: Home, *, as_json: bool) -> "list[DoctorCheck]":
    from tidemill.agent.doctor import examine

    findings = []
    async for finding in examine(home, settings.agent):
        findings.append(finding)
        if not as_json:
            print_line(f"{'ok    ' if finding.ok else 'FAILED'}  {finding.name:<10} {finding.detail}")
    return findings


def _need_root(command: str) -> None:
    if os.geteuid() != 0:
        raise CommandRefused(f"Only root can do this: run `sudo {_program()} agent {command}`.")
    if shutil.which("systemctl") is None:
        raise CommandRefused("This system has no systemd: let its own supervisor run `tidemill agent run`.")


def _program() -> Path:
    return Path(sys.executable).with_name("tidemill")


def _make_user(user: str, home: Home) -> None:
    if _found(user) is None:
        shell = shutil.which("nologin") or "/usr/sbin/nologin"
        _done("useradd", "--system", "--user-group", "--home-dir", str(home.path), "--shell", shell, user)


def _found(user: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(user)
    except KeyError:
        return None


def _check_program(program: Path, user: str) -> None:
    """A program in somebody's home is closed to the service's user. One not made yet can do what nobody can."""
    found = _found(user) or pwd.getpwnam("nobody")
    try:
        tried = subprocess.run(
            [program, "--version"],
            user=found.pw_uid,
            group=found.pw_gid,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    except PermissionError:
        tried = None
    if tried is None or tried.returncode:
        raise CommandRefused(
            f"The user {user} cannot run {program}: install Tidemill where all may read it, as in /opt."
        )


def _give(home: Home, user: str) -> None:
    """A home that root made when it joined becomes the service's. What is in anybody else's, or behind a link, is none
    of root's."""
    found = pwd.getpwnam(user)
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.path.is_symlink():
        raise CommandRefused(f"{home.path} is a symbolic link: set agent.home to the place itself.")
    if home.path.stat().st_uid != 0:
        return
    for path in (home.path, *home.path.iterdir()):
        os.chown(path, found.pw_uid, found.pw_gid, follow_symlinks=False)


def _has_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


def _systemctl(*arguments: str) -> None:
    _done("systemctl", *arguments)


def _done(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandRefused(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.returncode}")


def _installed(program: Path, home: Home, user: str) -> str:
    if home.membership.exists():
        return f"The agent runs as the service {SERVICE}, as the user {user}: `systemctl status {SERVICE}`."
    return (
        f"The service is ready. Join a pool: `sudo {program} agent join URL --once`, then `systemctl start {SERVICE}`."
    )
