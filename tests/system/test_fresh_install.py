"""A fresh copy on a machine with Python and make alone: two commands, and a job is done and paid."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.tidy.source import ROOT
from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import free_port, until

PROGRAMS = ("sh", "make", "dirname", "python3", "useradd")
"""All that is on the path: neither bwrap nor node, docker, podman or psql."""
NOT_FRESH = shutil.ignore_patterns(".git", ".venv", ".venv.lock", "__pycache__", ".*_cache", ".hypothesis")
ROOTS, NOBODYS = 0, 65534
READY_S = 400.0

pytestmark = [pytest.mark.soak, pytest.mark.needs("root", "bubblewrap"), pytest.mark.timeout(600)]


@pytest.mark.parametrize("user", [ROOTS, NOBODYS])
def test_python_and_make_are_enough_for_a_job_that_is_done_and_paid(user: int) -> None:
    """In a directory that nobody else can enter: neither a run's user nor the database's."""
    with reachable_directory() as place:
        clone, home = place / "clone", place / "home"
        shutil.copytree(ROOT, clone, ignore=NOT_FRESH)
        home.mkdir(mode=0o711)
        for path in (clone, *clone.rglob("*"), home):
            os.chown(path, user, user, follow_symlinks=False)
        clone.chmod(0o700)
        environment = _environment(place, home)
        said = place / "said"
        with said.open("w") as out:
            pool = subprocess.Popen(
                ["make", "run"],
                cwd=clone,
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[],
            )
        try:
            until(lambda: "The first node may get work" in said.read_text(), said.read_text, READY_S)
            done = _tidemill(clone, environment, user, "run", "matmul", "--m", "2048", "--n", "2048", "--k", "2048")
            assert re.search(r"^Done\. ", done, re.MULTILINE), done
            assert re.search(r"^It cost 0\.0\d+ credits; .* got 0\.0\d+\.$", done, re.MULTILINE), done
            assert "installed with Tidemill" in _tidemill(clone, environment, user, "status")
        finally:
            os.killpg(pool.pid, signal.SIGTERM)
            pool.wait(60)


def _environment(place: Path, home: Path) -> dict[str, str]:
    path = place / "path"
    path.mkdir(mode=0o755)
    for name in PROGRAMS:
        found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        assert found, name
        (path / name).symlink_to(found)
    ours = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    port = str(free_port())
    return {**ours, "PATH": str(path), "HOME": str(home), "TIDEMILL_HOME": str(home / "pool"), "TIDEMILL_PORT": port}


def _tidemill(clone: Path, environment: dict[str, str], user: int, *words: str) -> str:
    done = subprocess.run(
        [clone / ".venv/bin/tidemill", *words],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=user,
        extra_groups=[],
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
