"""`tidemill artefacts` and `tidemill models`, as somebody uses them at their desk."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import Running, until
from tests.worlds.pools.tus import digest_of
from tidemill.core.accounts.roles import Role

MIB = 1024 * 1024


class Office:
    """A pool, and desks of people who use it."""

    def __init__(self, running: Running, people: People) -> None:
        self.running, self.people = running, people

    def desk(self, place: Path, *roles: Role, balance: int = 0) -> Desk:
        place.mkdir(exist_ok=True)
        desk = Desk(place / "home", self.running.port, place)
        person = self.people.person(*roles, second_factor=Role.OPERATOR in roles)
        desk.keep(person, self.people.session(person))
        if balance:
            self.people.deposit(person, balance * 1_000_000)
        return desk


@pytest.fixture(scope="module")
def office(shared_pool: Running) -> Iterator[Office]:
    with people_of(shared_pool) as people:
        yield Office(shared_pool, people)


def written(place: Path, content: bytes, name: str = "input.bin") -> Path:
    file = place / name
    file.write_bytes(content)
    return file


def test_a_file_goes_into_the_pool_and_comes_back(office: Office, tmp_path: Path) -> None:
    desk, content = office.desk(tmp_path / "ann"), os.urandom(3 * MIB)
    shown = desk.run("artefacts", "put", str(written(tmp_path, content)))
    assert shown.returncode == 0, shown.stderr
    assert digest_of(content) in shown.stdout
    (found,) = desk.json("artefacts", "list")
    assert (found["name"], found["size_bytes"]) == ("input.bin", len(content))
    assert desk.json("artefacts", "show", found["id"]) == found
    target = tmp_path / "back.bin"
    assert desk.run("artefacts", "get", found["id"], "-o", str(target)).returncode == 0
    assert target.read_bytes() == content
    again = desk.run("artefacts", "get", found["id"], "-o", str(target))
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    assert desk.run("artefacts", "delete", found["id"]).returncode == 0
    assert "There are no artefacts" in desk.run("artefacts", "list").stderr


def test_an_empty_file_and_what_is_no_file(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    found = desk.json("artefacts", "put", str(written(tmp_path, b"")))
    assert found["digest"] == digest_of(b"")
    target = tmp_path / "empty"
    assert desk.run("artefacts", "get", found["id"], "-o", str(target)).returncode == 0
    assert target.read_bytes() == b""
    assert "is no file" in desk.run("artefacts", "put", str(tmp_path)).stderr


def test_an_upload_that_was_killed_goes_on(office: Office, tmp_path: Path) -> None:
    desk, content = office.desk(tmp_path / "ann"), os.urandom(100 * MIB)
    file = written(tmp_path, content)
    running = desk.start("artefacts", "put", str(file))

    def offset() -> int:
        uploads = list((office.running.home / "artefacts" / "uploads").glob(f"*/{len(content)}"))
        return uploads[0].stat().st_size if uploads else 0

    until(lambda: offset() > 10 * MIB, "it is under way")
    running.send_signal(signal.SIGKILL)
    running.communicate()
    until(lambda: offset() < len(content), "not all of it is there")
    kept = offset()
    again = desk.run("artefacts", "put", str(file))
    assert again.returncode == 0, again.stderr
    assert "it goes on" in again.stderr
    assert digest_of(content) in again.stdout
    assert kept > 10 * MIB
    once_more = desk.run("artefacts", "put", str(file))
    assert "goes on" not in once_more.stderr, "what is finished is remembered no longer"


def test_a_download_that_was_killed_goes_on_and_a_damaged_one_does_not_pass(office: Office, tmp_path: Path) -> None:
    desk, content = office.desk(tmp_path / "ann"), os.urandom(5 * MIB)
    found = desk.json("artefacts", "put", str(written(tmp_path, content)))
    target, part = tmp_path / "back.bin", tmp_path / "back.bin.part"
    part.write_bytes(content[: 2 * MIB])
    assert desk.run("artefacts", "get", found["id"], "-o", str(target)).returncode == 0
    assert target.read_bytes() == content
    target.unlink()
    part.write_bytes(b"x" * MIB)
    damaged = desk.run("artefacts", "get", found["id"], "-o", str(target))
    assert (damaged.returncode, target.exists(), part.exists()) == (5, False, False)
    assert desk.run("artefacts", "get", found["id"], "-o", str(target)).returncode == 0


def test_an_upload_survives_a_pool_that_is_away_for_a_while(office: Office, tmp_path: Path) -> None:
    desk, content = office.desk(tmp_path / "ann"), os.urandom(100 * MIB)
    running = desk.start("artefacts", "put", str(written(tmp_path, content)))
    uploads = office.running.home / "artefacts" / "uploads"
    until(lambda: any(file.stat().st_size > 20 * MIB for file in uploads.glob(f"*/{len(content)}")), "it is under way")
    office.running.send(signal.SIGSTOP)
    time.sleep(1)
    office.running.send(signal.SIGCONT)
    said, complained = running.communicate(timeout=100)
    assert (running.returncode, digest_of(content) in said) == (0, True), complained


@pytest.mark.timeout(600)
@pytest.mark.parametrize("size_mib", [200, pytest.param(1024, marks=pytest.mark.soak)])
def test_a_large_file_is_uploaded_with_little_memory(office: Office, tmp_path: Path, size_mib: int) -> None:
    desk, file = office.desk(tmp_path / "ann", balance=1), tmp_path / "large"
    with file.open("wb") as opened:
        opened.truncate(size_mib * MIB)
    running, most = desk.start("artefacts", "put", str(file)), 0
    process = psutil.Process(running.pid)
    while running.poll() is None:
        with suppress(psutil.NoSuchProcess):
            most = max(most, process.memory_info().rss)
        time.sleep(0.05)
    said, complained = running.communicate()
    assert (running.returncode, f"({size_mib * MIB} bytes)" in said) == (0, True), complained
    assert most < 120 * MIB, f"{most / MIB:.0f} MiB"


def test_models_are_added_from_a_file_listed_and_removed(office: Office, tmp_path: Path) -> None:
    operator, customer = office.desk(tmp_path / "op", Role.OPERATOR), office.desk(tmp_path / "ann")
    file = written(tmp_path, b"weights", "tiny.safetensors")
    about = ("--source", "our own", "--licence", "MIT", "--gpu-memory", "2048")
    assert "Only an operator" in customer.run("models", "add", "tiny", str(file), *about).stderr
    added = operator.json("models", "add", "tiny", str(file), *about)
    assert (added["digest"], added["gpu_memory_mib"]) == (digest_of(b"weights"), 2048)
    assert [model["name"] for model in customer.json("models", "list")] == ["tiny"]
    assert "2048 MiB" in customer.run("models", "show", "tiny").stdout
    twin = operator.json("models", "add", "twin", added["artefact_id"], *about)
    assert UUID(twin["id"])
    in_use = operator.run("artefacts", "delete", added["artefact_id"])
    assert (in_use.returncode, "needs this artefact" in in_use.stderr) == (1, True)
    for name in ("tiny", "twin"):
        assert operator.run("models", "remove", name).returncode == 0
    assert operator.run("artefacts", "delete", added["artefact_id"]).returncode == 0
    assert "no models yet" in customer.run("models", "list").stderr


def test_what_one_keeps_and_may_keep_is_shown(office: Office, tmp_path: Path) -> None:
    desk = office.desk(tmp_path / "ann")
    desk.json("artefacts", "put", str(written(tmp_path, bytes(3 * MIB))))
    usage = desk.json("artefacts", "usage")
    assert (usage["used_bytes"], usage["allowed_bytes"], usage["free_bytes"]) == (3 * MIB, 100 * MIB, 100 * MIB)
    assert (usage["price"], usage["fee"], usage["unpaid_until"]) == ("0.02", "0", None)
    shown = desk.run("artefacts", "usage").stdout
    assert "0.02 credits a GiB and month" in shown
