"""Customers' programs: the same each time, and kept to their sandbox."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.source import ROOT
from tests.worlds.sandboxes.runner_tasks import Done, run, task_of
from tests.worlds.sandboxes.sandbox_cell import Cell
from tidemill.agent.inside.dialogue import EXIT_UNFIT
from tidemill.agent.runners import RUNNERS, ResultFiles

pytestmark = pytest.mark.needs("bubblewrap", "python3")


async def ran(cell: Cell, program: str, **more: Any) -> Done:
    return await run(cell, task_of("script", {"program": program, "seconds": 20, **more}))


async def test_what_a_program_writes_below_out_is_its_result(cell: Cell) -> None:
    done = await ran(
        cell,
        "import os, sys, numpy\n"
        "os.makedirs('out/deep/er')\n"
        "open('out/sum.txt', 'w').write(str(numpy.arange(10).sum()))\n"
        "open('out/deep/er/arguments', 'w').write(repr(sys.argv))\n"
        "open('elsewhere', 'w').write('no result')\n",
        arguments=["--size", "größe"],
    )
    assert done.outcome.succeeded, done.errors
    assert done.files == {
        "sum.txt": b"45",
        "deep/er/arguments": "['program.py', '--size', 'größe']".encode(),
    }


async def test_a_program_and_its_inputs_come_as_artefacts(cell: Cell, place: Path) -> None:
    files = {"program": place / "program", "words.txt": place / "words"}
    files["program"].write_text("open('out/x', 'w').write(open('/inputs/words.txt').read().upper())\n")
    files["words.txt"].write_text("tide mill")
    done = await run(cell, task_of("script", {"seconds": 20}, files), files)
    assert done.files == {"x": b"TIDE MILL"}, done.errors


async def test_two_runs_see_the_same(cell: Cell) -> None:
    program = (
        "import json, locale, os, sys, time\n"
        "seen = {'hash': hash('tide'), 'set': list(map(str, {'a', 'b', 'c', 'd'})), 'zone': time.tzname,\n"
        "        'locale': locale.getlocale(), 'environment': dict(os.environ), 'path': sys.path,\n"
        "        'flags': str(sys.flags),\n"
        "        'home': os.path.expanduser('~'), 'encoding': sys.getfilesystemencoding(), 'directory': os.getcwd()}\n"
        "json.dump(seen, open('out/seen', 'w'), sort_keys=True)\n"
    )
    first, second = [await ran(cell, program) for _ in range(2)]
    assert first.files == second.files
    seen = json.loads(first.files["seen"])
    assert seen["environment"]["PYTHONHASHSEED"] == "0"
    assert seen["environment"]["OPENBLAS_NUM_THREADS"] == "1"
    assert (seen["zone"], seen["directory"], seen["home"]) == (["UTC", "UTC"], "/work", "/work")
    assert not [name for name in seen["environment"] if "TIDEMILL" in name or "TOKEN" in name]


async def test_it_is_the_main_module_with_its_own_traceback(cell: Cell) -> None:
    done = await ran(
        cell,
        "import pickle, __main__\n"
        "class Thing: pass\n"
        "assert __name__ == '__main__' and __main__.Thing is Thing\n"
        "pickle.loads(pickle.dumps(Thing()))\n"
        "def deep(): raise OSError(5, 'mine')\n"
        "deep()\n",
    )
    assert done.outcome.exit_code == 1
    assert done.errors.splitlines()[-1] == "OSError: [Errno 5] mine"
    assert done.errors.splitlines() == [
        "Traceback (most recent call last):",
        '  File "program.py", line 6, in <module>',
        "    deep()",
        '  File "program.py", line 5, in deep',
        "    def deep(): raise OSError(5, 'mine')",
        "                ^^^^^^^^^^^^^^^^^^^^^^^^",
        "OSError: [Errno 5] mine",
    ]


@pytest.mark.parametrize(("leave", "code"), [("sys.exit(7)", 7), ("exit(8)", 8), ("import os; os._exit(9)", 9)])
async def test_its_exit_code_is_its_own(cell: Cell, leave: str, code: int) -> None:
    assert (await ran(cell, f"import sys\n{leave}\n")).outcome.exit_code == code


@pytest.mark.parametrize("program", ["if:", "x = '\0'", "\x00", "return 1"])
async def test_what_is_no_program_is_said_in_a_sentence(cell: Cell, program: str) -> None:
    done = await ran(cell, program)
    assert done.outcome.exit_code == EXIT_UNFIT, done.errors
    assert done.errors.startswith("The program is not Python 3.")


async def test_there_is_no_network_and_nothing_of_the_owner(cell: Cell) -> None:
    done = await ran(
        cell,
        "import os, socket\n"
        "for address in ('127.0.0.1', '169.254.169.254', '1.1.1.1'):\n"
        "    try:\n"
        "        socket.create_connection((address, 80), 2)\n"
        "        print('ESCAPED', address)\n"
        "    except OSError: pass\n"
        f"for path in ('/root', '/home', '/etc/shadow', '/var/lib', {str(ROOT)!r}):\n"
        "    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)): print('ESCAPED', path)\n"
        "import tidemill\n"
        "try: open(tidemill.__file__, 'a'); print('ESCAPED', 'writes to the runtime')\n"
        "except OSError: pass\n",
    )
    assert done.outcome.succeeded, done.errors
    assert done.out == ""


@pytest.mark.parametrize("trick", ["link", "fifo", "out link", "hard link", "out file"])
async def test_what_is_no_file_of_its_own_is_no_result(cell: Cell, trick: str) -> None:
    program = {
        "link": "os.symlink('/etc/passwd', 'out/x')",
        "fifo": "os.mkfifo('out/x')",
        "hard link": "open('y', 'w').write('mine'); os.link('y', 'out/x')",
        "out link": "os.rmdir('out'); os.symlink('/', 'out')",
        "out file": "os.rmdir('out'); open('out', 'w').write('x')",
    }[trick]
    done = await ran(cell, f"import os\n{program}\n")
    assert done.outcome.succeeded, done.errors
    if trick.startswith("out"):
        assert not isinstance(done.checked, ResultFiles)
    else:
        assert done.files == ({"x": b"mine"} if trick == "hard link" else {})


async def test_more_than_was_ordered_is_no_result(cell: Cell) -> None:
    done = await ran(cell, "open('out/x', 'wb').write(bytes(2**20 + 1))\n", disk_mib=1)
    assert done.outcome.succeeded, done.errors
    assert not isinstance(done.checked, ResultFiles)
    assert done.checked is not None
    assert "1,048,577 bytes, and may have 1,048,576" in done.checked.sentence


async def test_a_program_of_the_largest_size_is_run(cell: Cell) -> None:
    program = "#" + "ж" * 16_000 + "\nopen('out/x', 'w').write('done')\n"
    done = await ran(cell, program, arguments=["y" * 400] * 60)
    assert done.files == {"x": b"done"}, done.errors


def test_no_directory_is_an_empty_result(tmp_path: Path) -> None:
    task = task_of("script", {"program": "pass", "seconds": 1})
    assert RUNNERS["script"].check(task, tmp_path) == ResultFiles((), 0)


def test_a_file_that_the_task_closed_is_the_tasks_own_fault(place: Path) -> None:
    """It would look like a fault of the machine, and the task would be tried on one after the other."""
    closed = place / "work" / "out" / "closed"
    closed.parent.mkdir(parents=True)
    closed.touch(mode=0o000)
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom tidemill.agent.runners.results import any_files\n"
        "if os.geteuid() == 0: os.setgroups([]); os.setresuid(65534, 65534, 65534)\n"
        "print(any_files(Path(sys.argv[1]), 10, 10).sentence)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, closed.parents[1]], capture_output=True, text=True, check=False
    )
    assert "readable" in ran.stdout, ran.stderr
