"""Control groups: what a killed agent left is found though its place is gone; the agent steps aside for its runs."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tidemill.agent.sandboxes.cgroups import ABANDONED_S, ASIDE, PREFIX, ParentGroups, remove_abandoned, usable_parents

pytestmark = pytest.mark.needs("root")


@pytest.fixture
def parents() -> Iterator[ParentGroups]:
    """A parent of the test's own: beside those of other agents on this machine, their groups would be found old."""
    found = usable_parents(f"trial-{secrets.token_hex(4)}")
    if not found.paths:
        pytest.skip("there are no control groups here")
    controller, place = next(iter(found.paths.items()))
    own = place / f"test-{secrets.token_hex(6)}"
    own.mkdir()
    yield ParentGroups({controller: own}, found.unified)
    own.rmdir()


@pytest.fixture
def group(parents: ParentGroups) -> Iterator[Path]:
    [parent] = parents.paths.values()
    made = parent / f"{PREFIX}{secrets.token_hex(6)}-1"
    made.mkdir()
    yield made
    with suppress(FileNotFoundError):
        made.rmdir()


def test_an_old_group_without_a_process_is_removed(parents: ParentGroups, group: Path) -> None:
    assert remove_abandoned(parents, group.stat().st_mtime + ABANDONED_S - 1) == 0
    assert group.exists(), "a seat may be about to take it"
    assert remove_abandoned(parents, group.stat().st_mtime + ABANDONED_S + 1) == 1
    assert not group.exists()


def test_a_group_with_a_process_stays_however_old_it_is(parents: ParentGroups, group: Path) -> None:
    sleeping = subprocess.Popen(["/usr/bin/sleep", "60"])
    try:
        (group / "cgroup.procs").write_text(str(sleeping.pid))
        assert remove_abandoned(parents, time.time() + 10 * ABANDONED_S) == 0
        assert group.exists()
    finally:
        sleeping.send_signal(signal.SIGKILL)
        sleeping.wait()


def test_an_agent_steps_aside_and_still_knows_its_group() -> None:
    """In the unified kind a group hands nothing down while a process is in it."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    unified = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if unified is None or not os.access(unified, os.W_OK):
        pytest.skip("there is no unified hierarchy here")
    place = unified / f"{PREFIX}{secrets.token_hex(6)}"
    place.mkdir()
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom tidemill.agent.sandboxes import cgroups\n"
        "place = Path(sys.argv[1])\n"
        "(place / 'cgroup.procs').write_text(str(os.getpid()))\n"
        "for _ in range(2):\n"
        "    cgroups.step_aside(place)\n"
        "    print((place / 'cgroup.procs').read_text().split(), [p for p, u in cgroups._own_groups('memory') if u])\n"
    )
    try:
        ran = subprocess.run([sys.executable, "-c", program, place], capture_output=True, text=True, check=True)
        assert ran.stdout == f"[] [{place!r}]\n" * 2
    finally:
        with suppress(FileNotFoundError):
            (place / ASIDE).rmdir()
        place.rmdir()
