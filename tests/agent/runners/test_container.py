"""A customer's image, carried out by Podman's real engine."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worlds.sandboxes.podman import podman_service
from tests.worlds.sandboxes.runner_tasks import run, task_of
from tests.worlds.sandboxes.sandbox_cell import opened_engine_cell
from tidemill.agent.runners import ResultFiles

pytestmark = pytest.mark.needs("root", "podman", "runc", "busybox")
BUSYBOX = Path("/usr/bin/busybox")


@pytest.fixture
def service() -> Iterator[Path]:
    with podman_service() as path:
        yield path


async def test_an_image_that_comes_as_an_input_is_run_with_the_others(place: Path, service: Path) -> None:
    files = {"image": place / "image", "words": place / "words"}
    with tarfile.open(files["image"], "w") as archive:
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = BUSYBOX.stat().st_size, 0o755
        archive.addfile(entry, io.BytesIO(BUSYBOX.read_bytes()))
    files["words"].write_text("tide mill")
    box = "/bin/busybox"
    program = (
        f"{box} mkdir -p out/deep; {box} cat /inputs/words > out/deep/copy; "
        f"echo $PLACE > out/said; {box} ls /inputs > out/inputs"
    )
    parameters = {
        "command": [box, "sh", "-c", program],
        "environment": [{"name": "PLACE", "value": "in an image"}],
        "seconds": 60,
    }
    async with opened_engine_cell(place, service) as cell:
        done = await run(cell, task_of("container", parameters, files), files)
    assert done.outcome.succeeded, done.errors
    assert isinstance(done.checked, ResultFiles)
    assert done.files == {"deep/copy": b"tide mill", "said": b"in an image\n", "inputs": b"words\n"}
