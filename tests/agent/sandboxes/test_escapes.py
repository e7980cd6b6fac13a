"""A hostile task in each sandbox, one try a test: nothing is reached, the machine stays well, nothing is left.

A try that gets through says ESCAPED. Each is bounded, in case a limit is not there.
"""

import asyncio
import errno
import os
import socket
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
import pytest_asyncio

from tests.worlds.places import reachable_directory
from tests.worlds.sandboxes.podman import podman_service
from tests.worlds.sandboxes.sandbox_cell import PYTHON, Cell, containers, opened_cell, opened_engine_cell, shown
from tidemill.agent.sandboxes.bubblewrap.seccomp import CHECKED, PROCESSORS, REFUSED, RESERVING, this_machine
from tidemill.agent.sandboxes.outputs import open_output, regular_files
from tidemill.core.jobs.sandboxes import MIB, Ability, RunEnding

pytestmark = [pytest.mark.needs("root", "python3"), pytest.mark.asyncio(loop_scope="module")]

NUMBERS = {name: row[PROCESSORS[this_machine()].column] for name, row in {**REFUSED, **CHECKED}.items()}


@dataclass
class Jail:
    """A sandbox, its engine's socket if it has one, and what lies beside it to be stolen."""

    cell: Cell
    home: Path
    engine: Path | None

    def left_behind(self) -> list[object]:
        return [*self.cell.left_behind(), *(containers(self.engine) if self.engine else [])]


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
        pytest.param("engine", marks=pytest.mark.needs("podman", "runc")),
    ],
)
async def jail(request: pytest.FixtureRequest) -> AsyncIterator[Jail]:
    with ExitStack() as stack:
        home = stack.enter_context(reachable_directory())
        for name in ("agent.key", "pool.token"):
            (home / name).write_text("secret")
            (home / name).chmod(0o644)
        if request.param == "bubblewrap":
            async with opened_cell(home) as cell:
                yield Jail(cell, home, None)
            return
        path = stack.enter_context(podman_service())
        async with opened_engine_cell(home, path) as cell:
            yield Jail(cell, home, path)


@pytest.fixture(autouse=True)
def _nothing_left(jail: Jail) -> Iterator[None]:
    yield
    assert jail.left_behind() == []


LOOKS = {
    "the owner's home": "attempt('home', lambda: os.listdir({owner!r}))",
    "the agent's key": "attempt('key', lambda: open({home!r} + '/agent.key').read())",
    "the pool's token": "attempt('token', lambda: open({home!r} + '/pool.token').read())",
    "other runs": "attempt('runs', lambda: os.listdir({home!r} + '/runs'))",
    "the agent's environment": "attempt('environment', lambda: open('/proc/{agent}/environ').read())",
    "the agent's memory": "attempt('memory', lambda: open('/proc/{agent}/mem', 'rb').read(1))",
    "passwords": "attempt('shadow', lambda: open('/etc/shadow').read())",
    "the machine's memory": "for one in ('/dev/mem', '/dev/kmem', '/dev/port'): attempt(one, lambda: open(one, 'rb'))",
    "the kernel's messages": "attempt('kmsg', lambda: open('/dev/kmsg').read(1))",
    "disks": "for one in ('vda', 'sda', 'nvme0n1', 'dm-0'): attempt(one, lambda: open('/dev/' + one, 'rb'))",
    "an engine's socket": "import socket\n"
    "for one in ('/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock', {home!r} + '/socket'):\n"
    "    attempt(one, lambda: socket.socket(socket.AF_UNIX).connect(one))",
    "processes of others": "others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) > 1]\n"
    "print('ESCAPED' if others not in ([], [str(os.getpid())]) else 'alone')",
    "files of the system": "for one in ('/usr/new', '/etc/new', '/new', '/dev/new', '/proc/sys/kernel/core_pattern'):\n"
    "    attempt(one, lambda: open(one, 'w'))",
    "control groups": "for place, _, files in os.walk('/sys/fs/cgroup'):\n"
    "    for file in files: attempt(file, lambda: os.open(os.path.join(place, file), os.O_WRONLY))",
    "another user": "attempt('user', lambda: os.setuid(0)); attempt('group', lambda: os.setgroups([0]))",
    "a device": "attempt('device', lambda: os.mknod('/work/disk', 0o60666, os.makedev(254, 0)))",
    "the clock": "import time\nattempt('clock', lambda: time.clock_settime(time.CLOCK_REALTIME, 0))",
    "higher limits": "import resource\n"
    "for name in ('NOFILE', 'FSIZE', 'CORE', 'MEMLOCK', 'NICE', 'RTPRIO'):\n"
    "    kind = getattr(resource, 'RLIMIT_' + name)\n"
    "    try: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2); print('ESCAPED', name)\n"
    "    except ValueError: pass\n"
    "attempt('nice', lambda: os.nice(-5))",
    "a table longer than memory": "for _ in range(5000):\n"
    "    try: os.open('/usr/bin/env', 0)\n"
    "    except OSError: break\n"
    "else: print('ESCAPED')",
}


@pytest.mark.parametrize("what", LOOKS)
async def test_it_does_not_get(jail: Jail, what: str) -> None:
    program = LOOKS[what].format(home=str(jail.home), owner=str(Path.home()), agent=os.getpid())
    ran = await jail.cell.python(program)
    assert ran.outcome.succeeded, ran.errors
    assert "ESCAPED" not in ran.out


async def test_a_try_that_gets_through_would_be_seen(jail: Jail) -> None:
    ran = await jail.cell.python(
        "attempt('open', lambda: open('/usr/bin/env')); attempt('write', lambda: open('x', 'w'))"
    )
    assert ran.out.count("ESCAPED") == 2, ran.errors


async def test_it_makes_none_of_the_calls_that_lead_out(jail: Jail) -> None:
    """Each alone, so that a call which is let through is seen; a namespace of users is asked for by its flag."""
    numbers = {name: NUMBERS[name] for name in REFUSED if NUMBERS[name] is not None}
    ran = await jail.cell.python(
        f"for name, number in {numbers!r}.items(): attempt(name, lambda: call(number, 0x10000000, 0, 0, 0, 0))\n"
        f"attempt('clone', lambda: call({NUMBERS['clone']}, 0x10000011, 0, 0, 0, 0))\n"
        f"attempt('clone3', lambda: call({NUMBERS['clone3']}, 0, 0))\n"
        f"for family in (40, 17, 38, 31): attempt(family, lambda: call({NUMBERS['socket']}, family, 2, 0))\n"
        f"attempt('personality', lambda: call({NUMBERS['personality']}, 0x0040000))\n"
    )
    assert ran.outcome.succeeded, ran.errors
    assert "ESCAPED" not in ran.out
    assert {line.split()[1] for line in ran.out.splitlines()} <= {"EPERM", "ENOSYS", "EAFNOSUPPORT"}


async def test_it_takes_no_space_without_writing(jail: Jail) -> None:
    """Also by the older ways, whose upper half the kernel ignores. What libraries do instead still works."""
    ran = await jail.cell.python(
        "file = os.open('x', os.O_CREAT | os.O_RDWR)\n"
        f"attempt('fallocate', lambda: call({NUMBERS['fallocate']}, file, 0, 0, 2**20))\n"
        "place = ctypes.create_string_buffer(64)\n"
        f"for code in {RESERVING}:\n"
        "    for upper in (0, 1 << 32):\n"
        f"        attempt(code, lambda: call({NUMBERS['ioctl']}, file, code | upper, ctypes.addressof(place)))\n"
        "print(os.fstat(file).st_blocks)\n"
        "os.posix_fallocate(file, 0, 2**20)\n"
        "print(os.fstat(file).st_size, os.fstat(file).st_blocks * 512 >= 2**20)\n"
    )
    assert ran.outcome.succeeded, ran.errors
    *tries, before, after = ran.out.splitlines()
    assert {line.split()[1] for line in tries} == {errno.errorcode[errno.EOPNOTSUPP]}
    assert len(tries) == 1 + 2 * len(RESERVING)
    assert (before, after) == ("0", f"{MIB} True")


async def test_it_reaches_no_network(jail: Jail) -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        ran = await jail.cell.python(
            "import socket\n"
            f"for address in [('127.0.0.1', {port}), ('169.254.169.254', 80), ('192.0.2.1', 443), ('8.8.8.8', 53)]:\n"
            "    attempt(address[0], lambda: socket.create_connection(address, 2))\n"
            "attempt('names', lambda: socket.getaddrinfo('example.com', 80))\n"
            "attempt('packet', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))\n"
            "print([name for _, name in socket.if_nameindex() if name != 'lo'])\n"
        )
    assert "ESCAPED" not in ran.out
    assert ran.out.splitlines()[-1] == "[]", ran.errors


async def test_it_reaches_no_abstract_socket_of_the_machine(jail: Jail) -> None:
    name = f"tidemill-{jail.cell.token}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        ran = await jail.cell.python(
            f"import socket\nattempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect(chr(0) + {name!r}))"
        )
    assert ran.out == "abstract ECONNREFUSED\n"


TAKES = {
    "processes": (
        "import time\ncount = 0\ntry:\n    while count < 200:\n"
        "        if os.fork() == 0: time.sleep(30); os._exit(0)\n        count += 1\n"
        "except OSError: print('held', count)\nsys.stdout.flush(); os._exit(0)",
        RunEnding.DONE,
    ),
    "memory": ("hog = [bytearray(b'x' * 2**20) for _ in range(300)]", RunEnding.MEMORY),
    "memory of children": (
        "import time\nfor _ in range(8):\n    if os.fork() == 0: hog = b'x' * 2**20 * 30; time.sleep(20)\n"
        "time.sleep(20)",
        RunEnding.MEMORY,
    ),
    "shared memory": ("fill('/dev/shm')", RunEnding.DONE),
    "temporary files": ("fill('/tmp')", RunEnding.DONE),
    "other temporary files": (
        "for one in ('/run', '/var/tmp'): os.path.isdir(one) and fill(one)\nprint('held')",
        RunEnding.DONE,
    ),
    "one huge file": (
        "attempt('huge', lambda: os.truncate(os.open('x', os.O_CREAT | os.O_RDWR), 2**40)); print('held')",
        RunEnding.DONE,
    ),
    "disk": (
        "import time\nfor n in range(5): open(str(n), 'wb').write(b'x' * 2**20 * 7)\ntime.sleep(20)",
        RunEnding.DISK,
    ),
    "disk by deleted files": (
        "import time\nkept = []\nfor n in range(5):\n"
        "    kept.append(open('x', 'wb', 0)); kept[-1].write(b'x' * 2**20 * 7)\n    os.unlink('x')\ntime.sleep(20)",
        RunEnding.DISK,
    ),
    "disk by reserving": (
        "import time\nfor n in range(5): os.posix_fallocate(os.open(str(n), os.O_CREAT | os.O_RDWR), 0, 2**20 * 7)\n"
        "time.sleep(20)",
        RunEnding.DISK,
    ),
    "entries": ("for n in range(5000): os.mknod(str(n))", RunEnding.DISK),
    "log": ("while True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)", RunEnding.OUTPUT),
}
FILL = """
def fill(place):
    written = 0
    try:
        for n in range(64):
            with open(f'{place}/{n}', 'wb', 0) as file: written += file.write(b'x' * 2**20)
        print('ESCAPED', written)
    except OSError as full: print('held', errno.errorcode[full.errno])
"""


@pytest.mark.parametrize("what", TAKES)
async def test_it_does_not_take_all(jail: Jail, what: str) -> None:
    program, ending = TAKES[what]
    if Ability.MEMORY not in jail.cell.sandbox.enforced.abilities and ending is RunEnding.MEMORY:
        pytest.skip(Ability.MEMORY.value)
    memory = SMALL_MEMORY if ending is RunEnding.MEMORY else 256 * MIB
    ran = await jail.cell.python(FILL + program, memory_bytes=memory)
    assert ran.outcome.ending is ending, (ran.outcome, ran.errors)
    assert "ESCAPED" not in ran.out
    assert ending is not RunEnding.DONE or "held" in ran.out
    assert len(ran.out) + len(ran.errors) <= 64 * 1024


SMALL_MEMORY = 96 * MIB
STAYS = {
    "in another session": "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n"
    "        if os.fork() == 0: break\n        os._exit(0)\n",
    "deaf": "for one in range(1, 32):\n    if one not in (9, 19): signal.signal(one, signal.SIG_IGN)\n",
    "stopped": "if os.fork() == 0:\n    os.setsid(); os.kill(os.getpid(), signal.SIGSTOP)\n",
}


@pytest.mark.parametrize("how", STAYS)
async def test_it_does_not_stay_after_its_deadline(jail: Jail, how: str) -> None:
    program = f"import os, signal, time\n{STAYS[how]}while True: time.sleep(1)"
    ran = await jail.cell.run(jail.cell.order(PYTHON, "-c", program, seconds=0.5))
    assert ran.outcome.ending is RunEnding.DEADLINE


TRAPS = """
import os, socket
open('result', 'w').write('good')
os.symlink('/etc/shadow', 'link'); os.symlink('/', 'root'); os.link('result', 'again')
os.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('socket')
os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 2**22)
os.mkdir('closed'); os.chmod('closed', 0)
for name in ('line\\nbreak', '-rf', ' ', 'x' * 255, '\\udcff', '..x'): open(name, 'w')
"""


async def test_its_results_hold_no_traps(jail: Jail) -> None:
    seen: list[str] = []

    async def collected(work: Path) -> None:
        seen.extend(str(path) for path in regular_files(work, 100))
        for trap in ("link", "root/etc/passwd", "pipe", "socket", "../groups", "/etc/passwd", "closed/x", "."):
            with pytest.raises(OSError, match=r"."):
                os.close(open_output(work, PurePosixPath(trap)))

    ran = await jail.cell.run(jail.cell.order(PYTHON, "-c", TRAPS), collected=collected)
    assert ran.outcome.succeeded, ran.errors
    assert seen == sorted(["again", "result", "sparse", "line\nbreak", "-rf", " ", "x" * 255, "\udcff", "..x"])


async def test_a_zip_bomb_among_its_inputs_unpacks_under_its_own_limits(jail: Jail) -> None:
    bomb = jail.home / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number in range(16):
            archive.writestr(str(number), bytes(7 * MIB))
    bomb.chmod(0o644)
    program = "import zipfile, time; zipfile.ZipFile('/input.zip').extractall('.'); time.sleep(20)"
    order = jail.cell.order(PYTHON, "-c", program, inputs=(shown(bomb, "/input.zip"),))
    assert (await jail.cell.run(order)).outcome.ending is RunEnding.DISK


async def test_it_is_nobody_and_can_become_nobody_else(jail: Jail) -> None:
    ran = await jail.cell.python(
        "lines = [line.split() for line in open('/proc/self/status') if len(line.split()) == 2]\n"
        "status = {name: value for name, value in lines}\n"
        "rights = {status[name] for name in ('CapInh:', 'CapPrm:', 'CapEff:', 'CapBnd:', 'CapAmb:')}\n"
        "alone = os.getgroups() in ([], [os.getgid()])\n"
        "print(rights, status['NoNewPrivs:'], status['Seccomp:'], os.getuid() > 0, alone)"
    )
    assert ran.out == "{'0000000000000000'} 1 2 True True\n"
