"""Images that tasks name: fetched as anybody could, gone after the run, and never the owner's own."""

import asyncio
import io
import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.sandboxes.image_registry import PASSWORD, Registry, open_registry
from tests.worlds.sandboxes.podman import PASSWORDS, podman_service
from tests.worlds.sandboxes.sandbox_cell import SMALL, Cell, opened_engine_cell
from tidemill.agent.sandboxes.engine import keeper
from tidemill.agent.sandboxes.engine.images import FETCHING
from tidemill.agent.sandboxes.interface import SandboxFault
from tidemill.core.jobs.sandboxes import Command, Image, RunEnding, RunSpecification

pytestmark = pytest.mark.needs("root", "podman", "runc", "busybox")
BUSYBOX = Path("/usr/bin/busybox")


@contextmanager
def registry_and_engine() -> Iterator[tuple[Registry, Path]]:
    """An engine whose owner has the password of the registry."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("bin/busybox")
        entry.size, entry.mode = BUSYBOX.stat().st_size, 0o755
        archive.addfile(entry, io.BytesIO(BUSYBOX.read_bytes()))
    with open_registry(content.getvalue()) as registry:
        passwords = json.dumps({"auths": {registry.name: {"auth": PASSWORD}}})
        with podman_service(registry.name, passwords) as service:
            yield registry, service


def run_of(reference: str, **more: Any) -> RunSpecification:
    command = Command(("/bin/busybox", "ls", "/bin"))
    return RunSpecification(f"image-{time.monotonic_ns()}", command, replace(SMALL, **more), image=Image(reference))


def names(service: Path) -> list[str]:
    found = keeper._ask(str(service), "GET", "/images/json")
    return sorted(name for one in found for name in one.get("RepoTags") or [])


async def test_images_of_a_registry(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine serves all tries, because its start is what takes long."""
    with registry_and_engine() as (registry, service):
        async with opened_engine_cell(place, service) as cell:
            before = names(service)
            await _an_image_is_fetched_run_and_removed(cell, registry)
            assert names(service) == before
            with monkeypatch.context() as patched:
                patched.setattr("tidemill.agent.sandboxes.engine.images.PASSWORDS", (service.parent / PASSWORDS,))
                await _what_the_owner_has_a_password_for_is_not_fetched(cell, registry)
            await _a_registry_that_never_answers_holds_nobody(cell, registry)
            with monkeypatch.context() as patched:
                patched.setattr("tidemill.agent.sandboxes.engine.images.SPARE_BYTES", 2**60)
                await _an_image_that_leaves_too_little_disk_is_given_up(cell, registry)
            await _an_image_of_the_owner_is_not_shown(cell, registry, service)
        await _what_a_killed_agent_was_fetching_is_removed(place, registry, service)


async def _an_image_is_fetched_run_and_removed(cell: Cell, registry: Registry) -> None:
    ran = await asyncio.gather(*(cell.run(run_of(f"{registry.name}/open/mill:1")) for _ in range(3)))
    assert [one.out for one in ran] == ["busybox\n"] * 3, [one.errors for one in ran]
    assert sum("/manifests/1" in path for path in registry.asked) <= 2


async def _what_the_owner_has_a_password_for_is_not_fetched(cell: Cell, registry: Registry) -> None:
    """Podman uses the password whoever asks. So it is not asked where there is one."""
    with pytest.raises(SandboxFault, match="passwords"):
        await cell.run(run_of(f"{registry.name}/private/mill:1"))
    assert not any("private" in path for path in registry.asked)


async def _a_registry_that_never_answers_holds_nobody(cell: Cell, registry: Registry) -> None:
    began = time.monotonic()
    slow = asyncio.create_task(cell.run(run_of(f"{registry.name}/slow/mill:1", seconds=4)))
    await asyncio.sleep(0.5)
    ran = await cell.run(run_of(f"{registry.name}/open/mill:1"))
    assert ran.out == "busybox\n", ran.errors
    assert not slow.done(), "others do not wait for it"
    late = await slow
    assert (late.outcome.ending, time.monotonic() - began < 15) == (RunEnding.NOT_STARTED, True)
    assert "deadline" in late.errors


async def _an_image_that_leaves_too_little_disk_is_given_up(cell: Cell, registry: Registry) -> None:
    ran = await cell.run(run_of(f"{registry.name}/slow/mill:2"))
    assert ran.outcome.ending is RunEnding.NOT_STARTED
    assert "too little disk" in ran.errors


async def _an_image_of_the_owner_is_not_shown(cell: Cell, registry: Registry, service: Path) -> None:
    own = f"{registry.name}/owner/secret:1"
    keeper._ask(str(service), "POST", f"/images/create?fromImage={own}")
    before = names(service)
    assert own in before
    with pytest.raises(SandboxFault, match="owner"):
        await cell.run(run_of(own))
    assert names(service) == before


async def _what_a_killed_agent_was_fetching_is_removed(place: Path, registry: Registry, service: Path) -> None:
    half = f"{registry.name}/half/mill:1"
    keeper._ask(str(service), "POST", f"/images/create?fromImage={half}")
    (place / "runs" / f"{FETCHING}x").write_text(half)
    async with opened_engine_cell(place, service):
        assert half not in names(service)
