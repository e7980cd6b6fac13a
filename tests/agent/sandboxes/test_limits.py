"""A hostile task takes all that it can get. Every try is bounded, in case a limit is not there."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import PYTHON, Cell, opened_cell
from tidemill.core.jobs.sandboxes import MIB, Ability, RunEnding

pytestmark = pytest.mark.needs("bubblewrap", "python3")


def skip_unless(cell: Cell, ability: Ability) -> None:
    if ability not in cell.sandbox.enforced.abilities:
        pytest.skip(ability.value)


async def test_a_fork_bomb_stops_at_its_limit(cell: Cell) -> None:
    skip_unless(cell, Ability.PIDS)
    ran = await cell.python(
        "import time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 100:\n"
        "        if os.fork() == 0: time.sleep(30); os._exit(0)\n"
        "        count += 1\n"
        "except OSError as refused: print(count, errno.errorcode[refused.errno])\n"
    )
    assert ran.out.split() == ["15", "EAGAIN"]
    assert ran.outcome.succeeded


async def test_threads_count_as_well(cell: Cell) -> None:
    skip_unless(cell, Ability.PIDS)
    ran = await cell.python(
        "import threading, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 100: threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); count += 1\n"
        "except RuntimeError: print(count)\n"
        "sys.stdout.flush(); os._exit(0)\n"
    )
    assert ran.out.split() == ["15"]


async def test_memory_ends_the_run(cell: Cell) -> None:
    skip_unless(cell, Ability.MEMORY)
    ran = await cell.python("hog = [bytearray(b'x' * 2**20) for _ in range(300)]\nprint('ESCAPED')")
    assert ran.outcome.ending is RunEnding.MEMORY
    assert "ESCAPED" not in ran.out


@pytest.mark.parametrize("way", ["memfd", "children", "system five"])
async def test_memory_by_a_side_door_is_memory(cell: Cell, way: str) -> None:
    skip_unless(cell, Ability.MEMORY)
    program = {
        "memfd": "file = os.memfd_create('x')\nfor _ in range(40): os.lseek(file, 0, 2); "
        "[os.ftruncate(one := os.memfd_create('y'), 0) or os.write(one, b'x' * 2**20 * 7) for _ in range(1)]\n",
        "children": "import time\nfor _ in range(8):\n    if os.fork() == 0: hog = b'x' * 2**20 * 30; time.sleep(20)\n"
        "time.sleep(20)\n",
        "system five": "libc.shmat.restype = ctypes.c_void_p\nfor _ in range(30):\n"
        "    place = libc.shmat(libc.shmget(0, 2**23, 0o1600), None, 0)\n"
        "    ctypes.memset(ctypes.c_void_p(place), 1, 2**23)\n",
    }[way]
    ran = await cell.python(program + "print('ESCAPED')")
    assert ran.outcome.ending is RunEnding.MEMORY, ran.errors
    assert "ESCAPED" not in ran.out


@pytest.mark.parametrize("where", ["/dev/shm", "/tmp"])
async def test_memory_filesystems_are_full_at_their_size(cell: Cell, where: str) -> None:
    ran = await cell.python(
        f"attempt('fill', lambda: os.write(os.open('{where}/x', os.O_CREAT | os.O_RDWR), b'x' * 2**20 * 4) < 2**22)\n"
        f"attempt('more', lambda: os.write(os.open('{where}/y', os.O_CREAT | os.O_RDWR), b'x' * 2**20))"
    )
    assert ran.out.splitlines()[-1] == "more ENOSPC"


async def test_a_file_ends_at_its_size_and_open_files_at_their_number(cell: Cell) -> None:
    ran = await cell.python(
        "import signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "file = os.open('big', os.O_CREAT | os.O_RDWR)\n"
        "attempt('size', lambda: [os.write(file, b'x' * 2**20) for _ in range(20)])\n"
        "attempt('sparse', lambda: os.ftruncate(file, 2**40))\n"
        "attempt('files', lambda: [os.open('/dev/null', os.O_RDONLY) for _ in range(200)])\n"
    )
    assert ran.out.splitlines() == ["size EFBIG", "sparse EFBIG", "files EMFILE"]


async def test_no_limit_can_be_raised(cell: Cell) -> None:
    ran = await cell.python(
        "import resource\n"
        "for name in ('NOFILE', 'FSIZE', 'NPROC', 'CORE', 'MEMLOCK', 'MSGQUEUE', 'RTPRIO'):\n"
        "    kind = getattr(resource, 'RLIMIT_' + name, None) or {'RTPRIO': 14}[name]\n"
        "    hard = resource.getrlimit(kind)[1]\n"
        "    try: resource.setrlimit(kind, (hard + 1, hard + 1)); print(name, 'ESCAPED')\n"
        "    except ValueError: print(name, 'refused')\n"
        "attempt('nice', lambda: os.nice(-5))\n"
        "attempt('groups', lambda: os.listdir('/sys/fs/cgroup'))\n"
    )
    assert "ESCAPED" not in ran.out
    assert ran.out.count("refused") == 7, ran.errors


@pytest.mark.parametrize("way", ["files", "deleted", "mapped", "quick"])
async def test_a_full_disk_ends_the_run(cell: Cell, way: str) -> None:
    program = {
        "files": "for n in range(5): open(str(n), 'wb').write(b'x' * 2**20 * 7)\ntime.sleep(20)",
        "deleted": "kept = []\nfor n in range(5):\n"
        "    kept.append(open('x', 'wb', 0)); kept[-1].write(b'x' * 2**20 * 7)\n"
        "    os.unlink('x')\ntime.sleep(20)",
        "mapped": "libc.mmap.restype = ctypes.c_void_p\nfor n in range(5):\n"
        "    file = os.open('x', os.O_CREAT | os.O_RDWR); os.write(file, b'x' * 2**20 * 7)\n"
        "    libc.mmap(None, ctypes.c_size_t(2**20 * 7), 3, 1, file, ctypes.c_long(0))\n"
        "    os.close(file); os.unlink('x')\ntime.sleep(20)",
        "quick": "for n in range(5): open(str(n), 'wb').write(b'x' * 2**20 * 7)",
    }[way]
    ran = await cell.python("import time\n" + program, memory_bytes=256 * MIB)
    assert ran.outcome.ending is RunEnding.DISK, ran.errors


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A directory on a disk: in memory, what a file takes would count as the run's memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="tm-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


async def test_space_that_is_taken_without_writing_does_not_outrun_the_watch(on_disk: Path) -> None:
    """By the hostile review: 40 times 300 MiB within a limit of 384 MiB took 12 GiB before the kill."""
    program = (
        "import os\n"
        "for n in range(40): os.posix_fallocate(os.open(str(n), os.O_CREAT | os.O_RDWR), 0, 300 * 2**20)\n"
        "print('ESCAPED')"
    )
    limit = 384 * MIB
    taken: list[int] = []

    async def collected(work: Path) -> None:
        taken.append(sum(entry.stat().st_blocks * 512 for entry in os.scandir(work)))

    async with opened_cell(on_disk) as cell:
        order = cell.order(PYTHON, "-c", program, disk_bytes=limit, file_bytes=limit, memory_bytes=512 * MIB)
        ran = await cell.run(order, collected=collected)
    assert ran.outcome.ending is RunEnding.DISK, ran.errors
    assert "ESCAPED" not in ran.out
    assert taken[0] < 4 * limit


@pytest.mark.parametrize("way", ["many", "deep"])
async def test_too_many_files_and_too_deep_a_tree_end_the_run_and_are_removed(cell: Cell, way: str) -> None:
    program = {
        "many": "for n in range(5000): os.mknod(str(n))",
        "deep": "for n in range(1900): os.mkdir('d' * 200); os.chdir('d' * 200)\nos.chmod('.', 0)",
    }[way]
    ran = await cell.python(program)
    assert ran.outcome.ending is RunEnding.DISK, ran.errors


async def test_output_is_cut_and_ends_the_run(cell: Cell) -> None:
    ran = await cell.python("while True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)")
    assert ran.outcome.ending is RunEnding.OUTPUT
    assert len(ran.out) + len(ran.errors) == 64 * 1024


async def test_processor_time_is_shared(cell: Cell) -> None:
    skip_unless(cell, Ability.CPU)
    ran = await cell.python(
        "import time\nuntil = time.monotonic() + 1\nwhile time.monotonic() < until: pass\nprint(time.process_time())",
        cpu_share=0.2,
    )
    assert float(ran.out) < 0.45
