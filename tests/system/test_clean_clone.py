"""A newcomer's first minutes: a clean clone, nothing but Python and make, as root and as a new user."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.system.pool import free_port, until

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
    home = Path("/var/tmp/tidemill-clone") if newcomer.pw_uid == 0 else Path(newcomer.pw_dir)
    home.mkdir(exist_ok=True)
    subprocess.run(["git", "clone", "--quiet", f"file://{ROOT}", home / "tidemill"], check=True)
    for path in (home, *home.rglob("*")):
        os.chown(path, newcomer.pw_uid, newcomer.pw_gid, follow_symlinks=False)
    try:
        yield home / "tidemill"
    finally:
        shutil.rmtree(home / "tidemill")


@pytest.fixture
def bare_path(tmp_path: Path) -> Iterator[Path]:
    """A PATH with the system's programs and a Python, but no Node, PostgreSQL or Docker."""
    folder = Path("/var/tmp/tidemill-path")
    folder.mkdir()
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


def own_processes(newcomer: pwd.struct_passwd, clone: Path) -> list[psutil.Process]:
    """What runs on behalf of the newcomer's pool."""
    names = [newcomer.pw_name] if newcomer.pw_uid else ["tidemill"]
    return [
        p
        for p in psutil.process_iter(["username", "name"])
        if p.info["username"] in names and "postgres" in p.info["name"]
    ]


def test_make_run_serves_and_ctrl_c_leaves_nothing(newcomer: pwd.struct_passwd, clone: Path, bare_path: Path) -> None:
    port = free_port()
    settings = environment(newcomer, bare_path, port)
    if newcomer.pw_uid == 0:
        settings["TIDEMILL_HOME"] = "/var/tmp/tidemill-clone/home"
    for attempt, within_s in (("first", 180), ("second", 10)):
        before = own_processes(newcomer, clone)
        began = time.monotonic()
        make = start(newcomer, clone, settings, "run")
        until(lambda: httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200, f"the {attempt} run", within_s)
        print(f"{newcomer.pw_name}: the {attempt} make run was ready after {time.monotonic() - began:.1f} s")  # noqa: T201
        os.killpg(make.pid, signal.SIGINT)
        make.wait(30)
        assert own_processes(newcomer, clone) == before
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"http://127.0.0.1:{port}/readyz")


def test_make_test_passes(newcomer: pwd.struct_passwd, clone: Path, bare_path: Path) -> None:
    began = time.monotonic()
    make = start(newcomer, clone, environment(newcomer, bare_path, free_port()), "test")
    assert make.wait(1500) == 0
    print(f"{newcomer.pw_name}: make test took {time.monotonic() - began:.0f} s")  # noqa: T201
