"""Images that customers bring: looked through before an engine unpacks them, and gone after the run."""

import asyncio
import gzip
import io
import os
import signal
import sys
import tarfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath

import pytest
import pytest_asyncio

from tests.worlds.places import reachable_directory
from tests.worlds.sandboxes.podman import podman_service
from tests.worlds.sandboxes.sandbox_cell import SMALL, Cell, containers, opened_engine_cell
from tidemill.agent.runners.container import ContainerRunner
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.agent.sandboxes.bubblewrap.seats import mark
from tidemill.agent.sandboxes.engine import keeper
from tidemill.agent.sandboxes.engine.api import EngineFault, tell_apart
from tidemill.agent.sandboxes.engine.archives import unfit_image
from tidemill.agent.sandboxes.engine.container import ContainerSetting, creation
from tidemill.agent.sandboxes.engine.sandbox import open_engine
from tidemill.agent.sandboxes.interface import OutputStream
from tidemill.core.jobs.image_names import full_name
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import read_task
from tidemill.core.jobs.quotes import tasks_of
from tidemill.core.jobs.quotes.order import parse_order
from tidemill.core.jobs.quotes.tasks import divide
from tidemill.core.jobs.sandboxes import MIB, Command, Image, RunEnding, RunGrants, RunSpecification, SandboxRefusal
from tidemill.core.settings.sections.work import ContainersSettings

BUSYBOX = Path("/usr/bin/busybox")
needs_engine = [pytest.mark.needs("root", "podman", "runc", "busybox"), pytest.mark.asyncio(loop_scope="module")]


def tarball(place: Path, entries: dict[str, bytes | tarfile.TarInfo]) -> Path:
    """An archive of these files, or of entries as given."""
    with tarfile.open(place, "w") as archive:
        for name, content in entries.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    place.chmod(0o644)
    return place


@pytest.fixture(scope="module")
def service() -> Iterator[Path]:
    with podman_service() as path:
        yield path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(service: Path) -> AsyncIterator[Cell]:
    with reachable_directory() as home:
        async with opened_engine_cell(home, service) as cell:
            yield cell


def run_of(image: Image, *arguments: str) -> RunSpecification:
    return RunSpecification(f"image-{time.monotonic_ns()}", Command(arguments), SMALL, image=image)


async def _until_fewer(work: Path, count: int, fewer: asyncio.Event) -> None:
    while len(list(work.iterdir())) == count:
        await asyncio.sleep(0.001)
    fewer.set()


class TestInAnEngine:
    pytestmark = needs_engine

    async def test_an_image_in_a_file_is_run_and_removed(self, engine: Cell, service: Path, tmp_path: Path) -> None:
        image = Image(tarball=PurePosixPath(tarball(tmp_path / "root.tar", {"bin/busybox": BUSYBOX.read_bytes()})))
        before = keeper._ask(str(service), "GET", "/images/json")
        orders = [run_of(image, "/bin/busybox", "ls", "/bin") for _ in range(2)]
        ran = await asyncio.gather(*map(engine.run, orders))
        assert [one.out for one in ran] == ["busybox\n", "busybox\n"]
        assert len(keeper._ask(str(service), "GET", "/images/json")) == len(before)

    async def test_an_image_that_nobody_has_is_the_tasks_own_fault(self, engine: Cell) -> None:
        ran = await engine.run(run_of(Image("localhost:1/nobody/has:this"), "/bin/true"))
        assert ran.outcome.ending is RunEnding.NOT_STARTED
        assert "could not be fetched" in ran.errors

    async def test_a_bomb_is_not_unpacked(self, engine: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tidemill.agent.sandboxes.engine.images.UNPACKED_BYTES_MAX", 8 * MIB)
        bomb = tmp_path / "bomb.tar.gz"
        bomb.write_bytes(gzip.compress(tarball(tmp_path / "bomb.tar", {"zeros": bytes(64 * MIB)}).read_bytes()))
        ran = await engine.run(run_of(Image(tarball=PurePosixPath(bomb)), "/bin/true"))
        assert ran.outcome.ending is RunEnding.NOT_STARTED
        assert SandboxRefusal.IMAGE_UNFIT.sentence in ran.errors

    async def test_a_cancelled_caller_leaves_no_container(self, engine: Cell, service: Path) -> None:
        running = asyncio.create_task(engine.run(engine.order("/usr/bin/sleep", "30")))
        while not containers(service):
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (containers(service), engine.left_behind()) == ([], [])

    async def test_a_caller_cancelled_while_files_are_removed_leaves_its_name_free(self, engine: Cell) -> None:
        removing = asyncio.Event()

        async def left_much(work: Path) -> None:
            for number in range(10_000):
                (work / str(number)).touch()
            asyncio.get_running_loop().create_task(_until_fewer(work, 10_000, removing))

        order = engine.order("/usr/bin/true")
        running = asyncio.create_task(engine.run(order, collected=left_much))
        await removing.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert engine.left_behind() == []
        assert (await engine.run(order)).outcome.succeeded

    async def test_a_container_that_somebody_killed_did_not_run_out_of_memory(
        self, engine: Cell, service: Path
    ) -> None:
        running = asyncio.create_task(engine.run(engine.order("/usr/bin/sleep", "20")))
        first = 0
        while not first:
            await asyncio.sleep(0.05)
            for one in containers(service):
                first = keeper._ask(str(service), "GET", f"/containers/{one['Id']}/json")["State"]["Pid"]
        await asyncio.sleep(0.5)
        os.kill(first, signal.SIGKILL)
        ended = (await running).outcome
        assert (ended.ending, ended.signal) == (RunEnding.KILLED, signal.SIGKILL)

    async def test_a_process_killed_for_memory_is_told_if_the_program_ends_at_once(self, engine: Cell) -> None:
        """Unless the engine is quicker than we are, and removes the group in which it was counted."""
        hog = "tail /dev/zero & wait $!; exit 3"
        for _ in range(5):
            ran = await engine.run(engine.order("/bin/sh", "-c", hog, memory_bytes=16 * MIB))
            if ran.outcome.ending is RunEnding.MEMORY:
                return
            assert (ran.outcome.ending, ran.outcome.exit_code) == (RunEnding.DONE, 3)
        pytest.fail("the engine was never slower")

    async def test_where_the_kernel_does_not_tell_a_program_that_ends_as_if_killed_blames_nobody(
        self, engine: Cell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tidemill.agent.sandboxes.engine.sandbox.wait_status", lambda _: None)
        ran = await engine.run(engine.order("/bin/sh", "-c", "sleep 0.5; exit 137"))
        assert ran.outcome.ending is RunEnding.DONE
        assert not ran.outcome.succeeded

    async def test_a_cancelled_run_ends(self, engine: Cell, service: Path) -> None:
        order = engine.order("/usr/bin/sleep", "30")
        running = asyncio.create_task(engine.run(order))
        while not containers(service):
            await asyncio.sleep(0.05)
        assert engine.sandbox.cancel(order.name)
        assert (await running).outcome.ending is RunEnding.CANCELLED
        assert not engine.sandbox.cancel(order.name)

    async def test_the_keeper_removes_what_a_killed_agent_left(self, service: Path) -> None:
        """Before any other agent starts."""
        with reachable_directory() as home:
            program = (
                "import asyncio, sys\nfrom pathlib import Path\nfrom tests.worlds.sandboxes.sandbox_cell import Cell\n"
                "from tidemill.agent.sandboxes.engine.sandbox import open_engine\n"
                "async def main():\n"
                "    place = Path(sys.argv[1])\n"
                "    cell = Cell(await open_engine(place, Path(sys.argv[2])), place, 'killed')\n"
                "    await cell.run(cell.order('/usr/bin/sleep', '60'))\n"
                "asyncio.run(main())\n"
            )
            agent = await asyncio.create_subprocess_exec(sys.executable, "-c", program, f"{home}/runs", str(service))
            own = mark(home / "runs")
            while not any("killed-1" in str(one["Names"]) for one in containers(service)):
                await asyncio.sleep(0.05)
            os.kill(agent.pid, signal.SIGKILL)
            await agent.wait()
            until = time.monotonic() + 15
            while [*keeper._marked(str(service), own)] and time.monotonic() < until:
                await asyncio.sleep(0.1)
            assert [*keeper._marked(str(service), own)] == []
            async with opened_engine_cell(home, service) as cell:
                ran = await cell.run(cell.order("/usr/bin/sleep", "3"))
                assert ran.outcome.succeeded, "the old keeper does not take the new agent's containers for the old ones"


async def test_an_engine_that_is_not_there_is_said(place: Path) -> None:
    with pytest.raises(EngineFault, match="does not answer"):
        await open_engine(place / "runs", place / "nothing")


def test_archives_that_would_unpack_to_too_much_or_elsewhere_are_unfit(tmp_path: Path) -> None:
    def odd(**fields: object) -> tarfile.TarInfo:
        entry = tarfile.TarInfo("entry")
        for name, value in fields.items():
            setattr(entry, name, value)
        return entry

    fit = tarball(tmp_path / "fit", {"a": b"x" * 1000, "b/c": b"y"})
    assert unfit_image(fit, MIB, 10) is None
    cases = {
        "large": tarball(tmp_path / "1", {"a": bytes(2 * MIB)}),
        "many": tarball(tmp_path / "2", {str(n): b"" for n in range(11)}),
        "padded": tarball(tmp_path / "3", {f"{n}": b"" for n in range(10)} | {"x": bytes(MIB - 4096)}),
        "absolute": tarball(tmp_path / "4", {"x": odd(name="/etc/passwd")}),
        "above": tarball(tmp_path / "5", {"x": odd(name="a/../../b")}),
        "device": tarball(tmp_path / "6", {"x": odd(type=tarfile.BLKTYPE, devmajor=8)}),
        "sparse": tarball(tmp_path / "7", {"x": odd(pax_headers={"GNU.sparse.size": "1", "GNU.sparse.map": "0,1"})}),
        "nothing": tarball(tmp_path / "8", {}),
    }
    for name, content in {"no archive": b"x" * 5000, "cut": fit.read_bytes()[:700], "empty": b""}.items():
        cases[name] = tmp_path / name
        cases[name].write_bytes(content)
    assert {name for name, path in cases.items() if unfit_image(path, MIB, 10) is None} == set()


def test_a_bomb_is_looked_through_in_little_time_and_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file, tarfile.open(fileobj=file, mode="w|") as archive:
        entry = tarfile.TarInfo("zeros")
        entry.size = 256 * MIB
        with open("/dev/zero", "rb") as zeros:
            archive.addfile(entry, zeros)
    began = time.process_time()
    assert unfit_image(bomb, 64 * MIB, 10) is SandboxRefusal.IMAGE_UNFIT
    assert time.process_time() - began < 1


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_SPARSE])
def test_a_header_without_end_takes_no_memory(tmp_path: Path, kind: bytes) -> None:
    """Attributes and long names are read whole: a small file could fill the memory of the agent itself."""
    bomb = tmp_path / "bomb.gz"
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = kind, 16 * MIB
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(16 * MIB))
    tracemalloc.start()
    try:
        assert unfit_image(bomb, 1024 * MIB, 10) is SandboxRefusal.IMAGE_UNFIT
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_a_list_of_holes_without_end_takes_no_memory(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    entry = tarfile.TarInfo("x")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x"}
    entry.size = 16 * MIB
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        file.write(entry.tobuf(tarfile.PAX_FORMAT) + b"1" * 16 * MIB)
    tracemalloc.start()
    try:
        assert unfit_image(bomb, 1024 * MIB, 10) is SandboxRefusal.IMAGE_UNFIT
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


SETTING = ContainerSetting(
    "mark", Path("/place/work"), Path("/place/hosts"), 1_900_000_000, "image", ("/data", "/work"), None, is_podman=False
)


def test_what_an_engine_is_told_leaves_nothing_to_the_image() -> None:
    order = RunSpecification("run", Command(("/bin/sh", "-c", "true"), {"A": "b"}), SMALL, image=Image("busybox:1"))
    body = creation(order, SETTING)
    held = body["HostConfig"]
    assert isinstance(held, dict)
    assert (body["Entrypoint"], body["Cmd"], body["User"]) == (["/bin/sh"], ["-c", "true"], "1900000000:1900000000")
    assert (held["ReadonlyRootfs"], held["CapDrop"], held["NetworkMode"]) == (True, ["ALL"], "none")
    assert set(held["Tmpfs"]) == {"/tmp", "/data"}
    assert [mount["Target"] for mount in held["Mounts"]] == ["/work", "/etc/hosts"]


@pytest.mark.parametrize(("asked", "shared_mib"), [({}, 8192), ({"shared_memory_mib": 256}, 256)])
def test_a_container_gets_the_shared_memory_that_its_order_asks_for_or_else_the_pools(
    asked: dict[str, object], shared_mib: int
) -> None:
    """From the order to what the engine is told; the size travels with the task."""
    body = {"kind": "container", "parameters": {"image": "busybox:1", "command": ["true"], "seconds": 9, **asked}}
    order = parse_order(body)
    assert not isinstance(order, TaskObjection)
    parts = divide(order, ())
    assert not isinstance(parts, TaskObjection)
    made = tasks_of(order, parts, [1], 60, bytes(32), ContainersSettings())
    assert not isinstance(made, TaskObjection)
    task = read_task(made[0].body)
    assert not isinstance(task, TaskObjection)
    run = ContainerRunner().specify_run(task, "run", {}, PythonRuntime("python", (), {}))
    held = creation(run, SETTING)["HostConfig"]
    assert isinstance(held, dict)
    assert held["ShmSize"] == shared_mib * MIB


def test_gpus_are_asked_for_as_each_engine_wants() -> None:
    order = RunSpecification(
        "run", Command(("x",)), SMALL, grants=RunGrants(gpus=("0", "GPU-0123abcd-ef")), image=Image("x")
    )
    docker = creation(order, SETTING)["HostConfig"]
    assert isinstance(docker, dict)
    assert docker["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["0", "GPU-0123abcd-ef"], "Capabilities": [["gpu", "compute", "utility"]]}
    ]
    podman = creation(order, ContainerSetting("m", Path("/w"), Path("/h"), 1, "i", (), None, is_podman=True))[
        "HostConfig"
    ]
    assert isinstance(podman, dict)
    assert [device["PathOnHost"] for device in podman["Devices"]] == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=GPU-0123abcd-ef",
    ]
    with pytest.raises(ValueError, match="UUID"):
        RunGrants(gpus=("all",))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("docker.io/busybox:1", "docker.io/library/busybox:1"),
        ("tide/mill", "docker.io/tide/mill:latest"),
        ("quay.io/tide/mill", "quay.io/tide/mill:latest"),
        ("localhost/mill:New", "localhost/mill:New"),
        (f"tide/mill@sha256:{'0' * 64}", f"docker.io/tide/mill@sha256:{'0' * 64}"),
    ],
)
def test_a_name_says_one_image_of_one_registry(said: str, meant: str) -> None:
    """An engine that is told no tag fetches all of them; one that is told no registry asks the owner's first."""
    assert full_name(said) == full_name(meant) == meant


@pytest.mark.parametrize("wrong", ["", "UPPER", "a b", "../x", "a@sha256:1", "-x", "a/../b", "a//b", "a/", "a:b:c"])
def test_a_name_that_is_none_is_no_image(wrong: str) -> None:
    with pytest.raises(ValueError, match="image"):
        Image(wrong)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100])
async def test_output_is_told_apart_however_it_is_cut(size: int) -> None:
    frames = b"\1\0\0\0\0\0\0\5hello" + b"\2\0\0\0\0\0\0\0" + b"\2\0\0\0\0\0\0\3err" + b"\1\0\0\0\0\0\0\1!"
    heard = dict.fromkeys(OutputStream, b"")

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(frames), size):
            yield frames[start : start + size]

    def hear(stream: OutputStream, chunk: bytes) -> None:
        heard[stream] += chunk

    await tell_apart(chunks(), hear)
    assert heard == {OutputStream.OUTPUT: b"hello!", OutputStream.ERRORS: b"err"}
