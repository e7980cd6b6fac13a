"""A newcomer's first minutes: a clean clone, nothing but Python and make, as root and as a new user."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.worlds.pools.pool import free_port, until

pytestmark = [pytest.mark.soak, pytest.mark.needs("root"), pytest.mark.timeout(1800)]

ROOT = Path(__file__).parent.parent.parent
USER = "tidemill-newcomer"
HIDDEN = ("node", "npm", "npx", "docker", "psql", "postgres", "pg_", "createdb", "dropdb", "initdb", "uv", "pip")


@pytest.fixture(params=["root", USER])
def newcomer(request: pytest.FixtureRequest) -> Iterator[pwd.struct_passwd]:
    """Who tries it. The new user and everything of theirs is removed afterwards."""
    if request.param == USER:
        subprocess.run(["useradd", "--create-home", USER], check=True)
    try:
        yield pwd.getpwnam(request.param)
    finally:
        if request.param == USER:
            subprocess.run(["userdel", "--remove", USER], check=True, capture_output=True)


@pytest.fixture
def clone(newcomer: pwd.struct_passwd) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="tidemill-clone-", dir="/var/tmp"))
    place.chmod(0o755)
    subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", place / "tidemill"], check=True)
    for path in (place, *place.rglob("*")):
        os.chown(path, newcomer.pw_uid, newcomer.pw_gid, follow_symlinks=False)
    try:
        yield place / "tidemill"
    finally:
        shutil.rmtree(place)


@pytest.fixture
def bare_path() -> Iterator[Path]:
    """A PATH with the system's programs and a Python, but no Node, PostgreSQL or Docker."""
    folder = Path(tempfile.mkdtemp(prefix="tidemill-path-", dir="/var/tmp"))
    folder.chmod(0o755)
    for source in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
        for program in Path(source).iterdir():
            link = folder / program.name
            if not program.name.startswith(HIDDEN) and not link.is_symlink():
                link.symlink_to(program)
    yield folder
    shutil.rmtree(folder)


def environment(newcomer: pwd.struct_passwd, path: Path, port: int) -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
    who = {"HOME": newcomer.pw_dir, "USER": newcomer.pw_name, "LOGNAME": newcomer.pw_name}
    return {**passed, **who, "PATH": str(path), "TIDEMILL_PORT": str(port), "LANG": "tr_TR.UTF-8", "LC_ALL": "xx_XX"}


def start(newcomer: pwd.struct_passwd, clone: Path, settings: dict[str, str], target: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["make", target],
        cwd=clone,
        env=settings,
        user=newcomer.pw_uid,
        group=newcomer.pw_gid,
        extra_groups=[],
        start_new_session=True,
    )


def servers_of(newcomer: pwd.struct_passwd) -> list[psutil.Process]:
    """The database servers that run on behalf of the newcomer. The dead that nobody has buried yet do not count."""
    name = newcomer.pw_name if newcomer.pw_uid else "tidemill"
    found = psutil.process_iter(["username", "name", "status"])
    return [
        p for p in found if (p.info["username"], p.info["name"]) == (name, "postgres") and p.info["status"] != "zombie"
    ]


def answers(make: subprocess.Popen[bytes], port: int) -> bool:
    assert make.poll() is None, "make has ended"
    return httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200


def test_make_run_serves_and_ctrl_c_leaves_nothing(newcomer: pwd.struct_passwd, clone: Path, bare_path: Path) -> None:
    port = free_port()
    settings = environment(newcomer, bare_path, port)
    if newcomer.pw_uid == 0:
        settings["TIDEMILL_HOME"] = str(clone.parent / "home")
    for attempt, within_s in (("first", 180), ("second", 10)):
        before = servers_of(newcomer)
        began = time.monotonic()
        make = start(newcomer, clone, settings, "run")
        until(partial(answers, make, port), f"the {attempt} run is ready", within_s)
        print(f"{newcomer.pw_name}: the {attempt} make run was ready after {time.monotonic() - began:.1f} s")  # noqa: T201
        os.killpg(make.pid, signal.SIGINT)
        make.wait(30)
        assert servers_of(newcomer) == before
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"http://127.0.0.1:{port}/readyz")


def test_make_test_passes(newcomer: pwd.struct_passwd, clone: Path, bare_path: Path) -> None:
    began = time.monotonic()
    make = start(newcomer, clone, environment(newcomer, bare_path, free_port()), "test")
    assert make.wait(1500) == 0
    print(f"{newcomer.pw_name}: make test took {time.monotonic() - began:.0f} s")  # noqa: T201
