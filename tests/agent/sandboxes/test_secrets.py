"""A hostile task looks around: the owner's files, other tasks, the agent, the network."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import Cell, shown
from tidemill.core.jobs.sandboxes import RunEnding

pytestmark = pytest.mark.needs("bubblewrap", "python3")


async def test_it_sees_no_home_no_agent_and_nothing_of_the_machines_settings(cell: Cell, place: Path) -> None:
    key = place / "agent.key"
    key.write_text("the agent's key")
    key.chmod(0o644)
    paths = [
        str(key),
        str(Path.home()),
        "/root",
        "/home",
        "/etc/shadow",
        "/etc/passwd",
        "/var",
        "/run",
        "/sys",
        "/boot",
    ]
    ran = await cell.python(f"for path in {paths!r}: attempt(path, lambda: os.stat(path))")
    assert ran.out.split() == [word for path in paths for word in (path, "ENOENT")]


async def test_it_sees_no_other_task(cell: Cell) -> None:
    secret = "import os, time; open('secret', 'w').write('x'); os.chmod('secret', 0o666); time.sleep(9)"
    other = cell.order("/usr/bin/python3", "-c", secret, environment={"SECRET": "of the other"})
    running = asyncio.create_task(cell.run(other))
    work = cell.place / other.name / "work"
    while not (work / "secret").exists():
        await asyncio.sleep(0.02)
    ran = await cell.python(
        f"attempt('path', lambda: os.stat({str(work)!r}))\n"
        "seen = [pid for pid in os.listdir('/proc') if pid.isdigit()]\n"
        "print(sorted(map(int, seen)) == [1, os.getpid()], os.listdir('/work'))"
    )
    cell.sandbox.cancel(other.name)
    assert (await running).outcome.ending is RunEnding.CANCELLED
    assert ran.out == "path ENOENT\nTrue []\n"


async def test_its_environment_is_what_it_was_given_and_it_inherits_no_descriptor(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOL_TOKEN", "the agent's")
    held = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(held, True)
    try:
        ran = await cell.python(
            "print(*os.environ)\n"
            "open_now = sorted(map(int, os.listdir('/proc/self/fd')))\n"
            "print(open_now[:3], len(open_now))\n",
            environment={"GIVEN": "yes"},
        )
    finally:
        os.close(held)
    names, descriptors = ran.out.splitlines()
    assert set(names.split()) <= {"GIVEN", "PWD", "LC_CTYPE"}
    assert descriptors == "[0, 1, 2] 4"


async def test_a_loader_variable_of_the_task_never_reaches_a_program_outside(cell: Cell, place: Path) -> None:
    place.joinpath("evil.so").write_bytes(b"not a library")
    ran = await cell.run(cell.order("/usr/bin/true", environment={"LD_PRELOAD": str(place / "evil.so")}))
    assert ran.outcome.succeeded
    assert "setpriv" not in ran.errors
    assert "bwrap" not in ran.errors


async def test_its_environment_is_not_in_the_list_of_the_machines_processes(cell: Cell) -> None:
    order = cell.order("/usr/bin/sleep", "5", environment={"PASSWORD": "hunter2"})
    running = asyncio.create_task(cell.run(order))
    await asyncio.sleep(0.3)
    lines = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(b"hunter2" in line.read_bytes() for line in lines if line.exists())
    cell.sandbox.cancel(order.name)
    await running


async def test_it_reaches_neither_the_network_nor_the_machine_nor_a_metadata_address(cell: Cell) -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        ran = await cell.python(
            "import socket\n"
            f"for address in [('127.0.0.1', {port}), ('169.254.169.254', 80), ('192.0.2.1', 443)]:\n"
            "    attempt(address[0], lambda: socket.create_connection(address, 2))\n"
            "print(sorted(name for _, name in socket.if_nameindex()))\n"
            "for family in (40, 17, 38, 31): attempt(family, lambda: socket.socket(family, socket.SOCK_DGRAM))\n"
        )
    answers = ran.out.splitlines()
    assert answers[:4] == ["127.0.0.1 ECONNREFUSED", "169.254.169.254 ENETUNREACH", "192.0.2.1 ENETUNREACH", "['lo']"]
    assert answers[4:] == [f"{family} EAFNOSUPPORT" for family in (40, 17, 38, 31)]


async def test_inputs_can_be_read_and_nothing_but_work_can_be_written(cell: Cell, place: Path) -> None:
    given = place / "given"
    given.mkdir(mode=0o755)
    (given / "file").write_text("content")
    ran = await cell.python(
        "print(open('/input/file').read())\n"
        "for path in ('/input/file', '/input/new', '/usr/new', '/new', '/dev/new', '/proc/sysrq-trigger'):\n"
        "    attempt(path, lambda: open(path, 'w'))\n"
        "open('/work/new', 'w'); open('/tmp/new', 'w'); open('/dev/shm/new', 'w')\n",
        inputs=(shown(given, "/input"),),
    )
    assert ran.outcome.succeeded, ran.errors
    assert "ESCAPED" not in ran.out
    assert (given / "file").read_text() == "content"
