"""What a machine can carry out, what it says where it cannot, and how runs of images are ordered."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from tests.worlds.sandboxes.runner_tasks import task_of
from tidemill.agent.runners import RUNNERS, available, embed
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.sandboxes import Image, RunGrants
from tidemill.core.nodes.machine.hardware import EngineVersion, Machine

MACHINE = Machine("Debian", "6.1", "x86_64", "A processor", 4, 8192, 100_000, devices=())


def test_every_runner_carries_out_a_kind_of_the_table() -> None:
    assert RUNNERS.keys() <= KINDS.keys()
    assert all(runner.kind is KINDS[name] for name, runner in RUNNERS.items())


def test_a_machine_without_an_engine_says_so() -> None:
    found = available(MACHINE)
    assert "container" not in found.kinds
    assert "install Podman or Docker" in found.why_not["container"]
    assert "container" in available(replace(MACHINE, engines=(EngineVersion("podman", "4.3"),))).kinds
    assert {"matmul", "script", "render"} <= set(found.kinds)


@pytest.mark.parametrize(("package", "reason"), [("no_such_package", embed.MISSING), ("email", embed.DAMAGED)])
def test_a_machine_without_the_model_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, package: str, reason: str
) -> None:
    monkeypatch.setattr(embed, "PACKAGE", package)
    embed.installed_model.cache_clear()
    try:
        assert available(MACHINE).why_not["embed"] == reason
    finally:
        embed.installed_model.cache_clear()


def test_an_image_by_its_name_is_ordered_with_its_inputs(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"not an image, but a file of that name")
    files = {"image": tmp_path / "image"}
    parameters = {
        "image": "ghcr.io/tools/blender:4.2",
        "command": ["blender", "-b", "/inputs/image"],
        "environment": [{"name": "THREADS", "value": "2"}],
        "seconds": 60,
        "devices": 2,
        "gpu_memory_mib": 1024,
    }
    order = RUNNERS["container"].specify_run(task_of("container", parameters, files), "a", files, python_runtime())
    assert order.image == Image("ghcr.io/tools/blender:4.2")
    assert order.grants == RunGrants()
    assert order.command.arguments == ("blender", "-b", "/inputs/image")
    assert order.command.environment == {"THREADS": "2"}
    assert [mount.target for mount in order.inputs] == [PurePosixPath("/inputs/image")]
    assert order.limits.gpu_memory_bytes == 2 * 1280 * 2**20, "of both devices together"


def test_an_image_in_a_file_is_the_engines_and_is_not_shown_to_the_command(tmp_path: Path) -> None:
    files = {"image": tmp_path / "image", "scene.blend": tmp_path / "scene"}
    for path in files.values():
        path.write_bytes(b"x")
    order = RUNNERS["container"].specify_run(
        task_of("container", {"command": ["/bin/true"], "seconds": 5}, files), "a", files, python_runtime()
    )
    assert order.image == Image(tarball=PurePosixPath(tmp_path / "image"))
    assert [mount.target.name for mount in order.inputs] == ["scene.blend"]
    assert order.grants == RunGrants()


@pytest.mark.parametrize("program", ["matmul", "embed", "script", "render"])
def test_a_program_in_a_sandbox_loads_only_what_it_needs(program: str) -> None:
    """Every task pays for its start-up."""
    code = f"import sys, tidemill.agent.inside.{program}\nprint(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"asyncio", "logging", "ssl", "urllib", "typer", "msgspec", "cryptography", "torch", "multiprocessing"}
    assert not heavy & set(loaded)
    assert {name for name in loaded if name.startswith("tidemill.core.")} <= {
        "tidemill.core.matrices",
        *(f"tidemill.core.matrices.{name}" for name in ("npy", "products", "safetensors", "seeded_matrices")),
        "tidemill.core.pictures",
    }
    assert ("numpy" in loaded) is (program != "script")
