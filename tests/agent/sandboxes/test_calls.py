"""A hostile task makes calls that would let it out, and tries to gain rights."""

import platform
import re
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import Cell
from tidemill.agent.sandboxes.bubblewrap.seccomp import CHECKED, PROCESSORS, REFUSED, call_filter, call_profile

needs_all = pytest.mark.needs("bubblewrap", "python3")
COLUMN = PROCESSORS[platform.machine()].column


def number(name: str) -> int | None:
    return {**REFUSED, **CHECKED}[name][COLUMN]


@needs_all
async def test_every_refused_call_is_refused(cell: Cell) -> None:
    numbers = {name: number(name) for name in REFUSED if number(name) is not None}
    ran = await cell.python(
        f"for name, number in {numbers!r}.items(): attempt(name, lambda: call(number, 0, 0, 0, 0, 0))"
    )
    assert ran.out.splitlines() == [f"{name} EPERM" for name in numbers], ran.errors


@needs_all
@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
async def test_no_namespace_can_be_made(cell: Cell, flag: int) -> None:
    ran = await cell.python(
        f"attempt('unshare', lambda: call({number('unshare')}, {flag}))\n"
        f"attempt('clone', lambda: call({number('clone')}, {flag} | 17, 0, 0, 0, 0))\n"
        f"attempt('clone3', lambda: call({number('clone3')}, 0, 0))\n"
    )
    assert ran.out.splitlines() == ["unshare EPERM", "clone EPERM", "clone3 ENOSYS"]


@needs_all
async def test_calls_that_are_too_new_do_not_exist_and_those_of_other_processors_end_the_process(cell: Cell) -> None:
    ran = await cell.python("attempt('new', lambda: call(460))\nattempt('newer', lambda: call(5000))")
    assert ran.out.splitlines() == ["new ENOSYS", "newer ENOSYS"]
    ran = await cell.python("call(0x40000000 + 39)\nprint('ESCAPED')")
    assert ran.outcome.signal == 31
    assert "ESCAPED" not in ran.out


@needs_all
async def test_it_has_no_rights_and_no_way_to_any(cell: Cell) -> None:
    ran = await cell.python(
        "lines = [line.split() for line in open('/proc/self/status') if len(line.split()) == 2]\n"
        "status = {name: value for name, value in lines}\n"
        "rights = {status[name] for name in ('CapInh:', 'CapPrm:', 'CapEff:', 'CapBnd:', 'CapAmb:')}\n"
        "print(rights, status['NoNewPrivs:'], status['Seccomp:'])\n"
        "attempt('setuid', lambda: os.setuid(0))\n"
        "attempt('setgid', lambda: os.setgid(0))\n"
        "attempt('groups', lambda: os.setgroups([0]))\n"
        "attempt('chroot', lambda: os.chroot('/tmp'))\n"
        "attempt('chown', lambda: os.chown('/work', 0, 0))\n"
        "attempt('device', lambda: os.mknod('/work/disk', 0o60666, os.makedev(8, 0)))\n"
    )
    rights, *tries = ran.out.splitlines()
    assert rights == "{'0000000000000000'} 1 2"
    assert all(re.fullmatch(r"\w+ (EPERM|EINVAL)", line) for line in tries), tries


@needs_all
async def test_a_setuid_program_gives_nothing(cell: Cell) -> None:
    ran = await cell.python(
        "import shutil, subprocess\n"
        "shutil.copy('/usr/bin/id', '/work/id'); os.chmod('/work/id', 0o6755)\n"
        "print(subprocess.run(['/work/id', '-u'], capture_output=True, text=True).stdout)\n"
        "print(os.stat('/usr/bin/mount').st_uid)\n"
        "print(subprocess.run(['/usr/bin/mount', '-t', 'tmpfs', 'none', '/tmp']).returncode != 0)\n"
    )
    assert ran.out.split() == ["1000", "65534", "True"], ran.errors


@needs_all
async def test_the_sandboxs_own_first_process_cannot_be_reached(cell: Cell) -> None:
    ran = await cell.python(
        "import signal\n"
        "print(os.listdir('/proc/1'))\n"
        "for path in ('mem', 'root', 'fd', 'task/1/mem'): attempt(path, lambda: os.open('/proc/1/' + path, 0))\n"
        "for one in (signal.SIGKILL, signal.SIGSTOP): os.kill(1, one)\n"
        "print('alive')\n"
    )
    assert ran.out.split() == ["[]", "mem", "ENOENT", "root", "ENOENT", "fd", "ENOENT", "task/1/mem", "ENOENT", "alive"]
    assert ran.outcome.succeeded


def test_an_unknown_processor_has_no_filter() -> None:
    assert call_filter("riscv64") is None


def test_only_containers_with_several_gpus_may_reserve_space() -> None:
    """NCCL takes shared memory with fallocate, and has no other way."""
    usual, of_many_gpus = (str(call_profile("x86_64", may_reserve)) for may_reserve in (False, True))
    assert "fallocate" in usual
    assert "fallocate" not in of_many_gpus


@pytest.mark.parametrize(
    ("column", "header"),
    [(0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")],
)
def test_the_numbers_are_the_kernels(column: int, header: str) -> None:
    """Read from the kernel's own headers where a compiler has brought them."""
    if not Path(header).exists():
        return
    lines = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(header).read_text())
    known = {name: int(number) for name, number in lines}
    for name, numbers in {**REFUSED, **CHECKED}.items():
        assert numbers[column] == known.get(name), name
