"""Checks of all that may keep an agent from working, one after the other. A failed one names its cause and a fix.

Checks change nothing: neither the link of a running agent, nor its files.
"""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from tidemill.agent.home.home import Home, prepare, running_pid
from tidemill.agent.home.identity import Membership, read_membership
from tidemill.agent.home.rules_file import RulesFile
from tidemill.agent.home.status_file import read_status
from tidemill.agent.home.unit import SERVICE, UNIT
from tidemill.agent.machine import Hardware
from tidemill.agent.sandboxes.bubblewrap.program import MISSING, bubblewrap_program, tried
from tidemill.core.faults import Fault
from tidemill.core.nodes.machine.hardware import DeviceKind
from tidemill.core.settings.sections.agent import AgentSettings
from tidemill.core.signatures import fingerprint
from tidemill.host.clocks import wall
from tidemill.link.dialled.connection import DIAL_S, PoolUnreachable, endpoint_of, trust_of, why_unreachable
from tidemill.link.dialled.probe import probe_pool
from tidemill.wire.handshake import shared_version

_FREE_BYTES = 1024**3
_SKEW_S = 60.0
_STALE_S = 180.0
_SYSTEMCTL_S = 10.0


@dataclass(frozen=True)
class DoctorCheck:
    """The outcome of one check. A failed one says the cause, and what to do; a note names what this machine does
    without."""

    name: str
    ok: bool
    detail: str
    is_note: bool = False


async def examine(home: Home, settings: AgentSettings) -> AsyncIterator[DoctorCheck]:
    """Run all checks. Each comes after those that it depends on."""
    membership = None
    for finding in _check_home(home):
        yield finding
    with suppress(Fault):
        membership = read_membership(home.membership)
    for finding in _check_running(home, membership):
        yield finding
    for finding in _check_disk(home, settings):
        yield finding
    async for finding in _check_hardware(home):
        yield finding
    yield await asyncio.to_thread(_check_sandbox)
    if membership is not None:
        ca_file = settings.ca_file or (home.authority if home.authority.exists() else None)
        for url in membership.urls:
            async for finding in _check_pool(url, membership, ca_file):
                yield finding
    yield await asyncio.to_thread(_check_service)


def _check_home(home: Home) -> Iterator[DoctorCheck]:
    if not home.path.exists():
        yield DoctorCheck("home", False, f"{home.path} is not there: run `tidemill agent join URL` with a join token.")
        return
    yield _check_action("home", lambda: prepare(home), f"{home.path} is ours and closed to others.")
    yield _check_action("rights", lambda: _write(home), "Files can be written there.")
    yield _check_action("identity", lambda: _expect_joined(home), "This machine has joined a pool.")
    yield _check_action("rules", lambda: RulesFile(home.rules).read(), "The owner's rules can be read.")


def _check_running(home: Home, membership: Membership | None) -> Iterator[DoctorCheck]:
    """Whether an agent runs, and what its last status says."""
    pid, status = running_pid(home), read_status(home.status, wall())
    if membership is None:
        return
    if pid is None:
        yield DoctorCheck("agent", False, "No agent runs: start it with `tidemill agent run`, or the service.")
        return
    if status is None or status.age_s > _STALE_S:
        yield DoctorCheck("agent", False, f"Process {pid} has written no status for a while: restart it.")
        return
    yield DoctorCheck("agent", True, f"It runs as process {pid}.")
    link = status.fields.get("link", {})
    state, sentence = link.get("state"), link.get("sentence") or "The pool is being called."
    yield DoctorCheck("link", state == "linked", "It is linked to the pool." if state == "linked" else str(sentence))
    yield from _check_work(status.fields.get("work", {}).get("can"))


def _check_work(can: Mapping[str, Any] | None) -> Iterator[DoctorCheck]:
    """What the running agent can carry out, and what its sandboxes cannot enforce."""
    if can is None:
        return
    kinds = can["kinds"]
    yield DoctorCheck(
        "kinds", bool(kinds), f"It carries out {', '.join(kinds)}." if kinds else "It carries out nothing."
    )
    for missing in can["why_not"]:
        # A missing ability keeps a machine from some kinds of work. Only a machine without any kind fails.
        yield DoctorCheck(missing["what"].lower(), bool(kinds), missing["why"], is_note=bool(kinds))


def _check_disk(home: Home, settings: AgentSettings) -> Iterator[DoctorCheck]:
    if not home.path.exists():
        return
    free = shutil.disk_usage(home.path).free
    text = f"{free / 2**30:.1f} GiB are free where {home.path} is"
    yield DoctorCheck("disk", free >= _FREE_BYTES, f"{text}." if free >= _FREE_BYTES else f"{text}: make room there.")
    yield _check_spool(home, settings.spool_bytes)


def _check_spool(home: Home, most_bytes: int) -> DoctorCheck:
    """How much waits for the pool. The file keeps its size after the pool has what was in it."""
    size = sum(_size(home.spool.with_name(home.spool.name + end)) for end in ("", "-wal"))
    status = read_status(home.status, wall())
    waiting = status.fields.get("reports_waiting") if status else None
    text = f"The file of reports takes {size / 2**20:.1f} MiB"
    if waiting is not None:
        text = f"{_waiting_for_pool(waiting)}; {text[0].lower()}{text[1:]}"
    full = size > most_bytes
    return DoctorCheck("spool", not full, f"{text}: let the agent reach the pool." if full else f"{text}.")


def _waiting_for_pool(reports: int) -> str:
    """How many reports the pool does not have yet."""
    if reports == 0:
        return "Nothing waits for the pool"
    return "1 report waits for the pool" if reports == 1 else f"{reports:,} reports wait for the pool"


async def _check_hardware(home: Home) -> AsyncIterator[DoctorCheck]:
    try:
        machine = await Hardware(home.path).machine()
    except Fault as fault:
        yield DoctorCheck("hardware", False, str(fault))
        return
    for device in machine.devices:
        name = f"device {device.index}"
        if device.failing:
            yield DoctorCheck(
                name, False, f"{device.name or device.kind.value} fails ({device.failing}): see its driver."
            )
        elif device.kind is DeviceKind.CPU:
            yield DoctorCheck(name, True, f"{device.name}; no driver of a GPU was found, so the CPU is the device.")
        else:
            yield DoctorCheck(name, True, f"{device.name}, {device.memory_mib:,} MiB, driver {device.driver}.")


def _check_sandbox() -> DoctorCheck:
    """Which bubblewrap is used, and whether it works for the current user."""
    program = bubblewrap_program()
    if program is None:
        return DoctorCheck("sandbox", False, MISSING)
    return DoctorCheck("sandbox", not (useless := tried(program)), useless or f"Tasks run in {program}.")


async def _check_pool(url: str, membership: Membership, ca_file: Path | None) -> AsyncIterator[DoctorCheck]:
    """Check the way to the pool step by step, up to the first step that fails."""
    endpoint = endpoint_of(url)
    try:
        trust = trust_of(ca_file)
        async with asyncio.timeout(DIAL_S):
            addresses = await asyncio.get_running_loop().getaddrinfo(
                endpoint.host, endpoint.port, type=socket.SOCK_STREAM
            )
            yield DoctorCheck("DNS", True, f"{endpoint.host} is {addresses[0][4][0]}.")
            await _connect(endpoint.host, endpoint.port, None)
            yield DoctorCheck("TCP", True, f"{endpoint} answers.")
            if endpoint.secure:
                await _connect(endpoint.host, endpoint.port, trust)
                yield DoctorCheck("TLS", True, "Its certificate is trusted.")
    except OSError as error:
        name = "DNS" if isinstance(error, socket.gaierror) else "TLS" if isinstance(error, ssl.SSLError) else "TCP"
        yield DoctorCheck(name, False, why_unreachable(endpoint, error))
        return
    except PoolUnreachable as fault:
        yield DoctorCheck("TLS", False, str(fault))
        return
    yield await _check_clock(url, trust)
    yield await _check_key(url, membership, trust)


async def _check_key(url: str, membership: Membership, trust: ssl.SSLContext) -> DoctorCheck:
    try:
        challenge = await probe_pool(url, trust)
    except PoolUnreachable as fault:
        return DoctorCheck("pool", False, f"{fault} Ask its operator whether {url} is the pool's address.")
    if fingerprint(challenge.pool_key) != membership.pool_fingerprint:
        return DoctorCheck("pool", False, f"{url} is another pool than the one that was joined: check the address.")
    if shared_version(challenge) is None:
        return DoctorCheck("pool", False, "The pool speaks other versions of the link: upgrade this program.")
    return DoctorCheck("pool", True, "It shows the key that the join token named, and speaks our link.")


async def _check_clock(url: str, trust: ssl.SSLContext) -> DoctorCheck:
    """Rules such as windows go by this machine's clock."""
    import httpx2

    try:
        async with httpx2.AsyncClient(verify=trust, trust_env=False, timeout=DIAL_S) as client:
            pool_date = (await client.get(f"{url}/livez")).headers.get("date", "")
        skew_s = time.time() - parsedate_to_datetime(pool_date).timestamp()
    except (httpx2.HTTPError, ValueError, TypeError):
        return DoctorCheck("clock", True, "The pool did not tell its time, so nothing can be said.")
    if abs(skew_s) > _SKEW_S:
        return DoctorCheck("clock", False, f"This machine's clock is {skew_s:+.0f} s from the pool's: let NTP set it.")
    return DoctorCheck("clock", True, "This machine's clock agrees with the pool's.")


def _check_service() -> DoctorCheck:
    if not UNIT.exists():
        return DoctorCheck("service", True, "There is none; `tidemill agent install` makes one.", is_note=True)
    try:
        answer = subprocess.run(
            ["systemctl", "is-active", SERVICE], capture_output=True, text=True, timeout=_SYSTEMCTL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return DoctorCheck("service", False, f"systemd cannot be asked ({error}): see `systemctl status {SERVICE}`.")
    state = answer.stdout.strip() or "unknown"
    fix = f"run `systemctl restart {SERVICE}`, and see `journalctl -u {SERVICE}`"
    return DoctorCheck(
        "service", state == "active", f"It is {state}." if state == "active" else f"It is {state}: {fix}."
    )


async def _connect(host: str, port: int, trust: ssl.SSLContext | None) -> None:
    _, writer = await asyncio.open_connection(host, port, ssl=trust, server_hostname=host if trust else None)
    writer.transport.abort()


def _check_action(name: str, action: Callable[[], object], success: str) -> DoctorCheck:
    try:
        action()
    except Fault as fault:
        return DoctorCheck(name, False, str(fault))
    except OSError as error:
        return DoctorCheck(name, False, f"{error.strerror} ({error.filename}): run this as the agent's user.")
    return DoctorCheck(name, True, success)


def _write(home: Home) -> None:
    probe = home.path / f".doctor-{os.getpid()}"
    try:
        probe.write_bytes(b"?")
    finally:
        probe.unlink(missing_ok=True)


def _expect_joined(home: Home) -> None:
    from tidemill.agent.startup import member_of

    member_of(home)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
