"""Images for runs in an engine: brought when a run needs one, removed when no run does.

An image in a file is looked through before the engine unpacks it, and is known by the file's content under a name of
ours, so that no customer's image ever takes a name that the owner uses. An image that was there before stays.
"""

import asyncio
import io
import tarfile
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from urllib.parse import quote

from tidemill.agent.sandboxes.engine_api import EngineApi, EngineFault
from tidemill.agent.sandboxes.engine_keeper import REPOSITORY
from tidemill.agent.sandboxes.unpacking import unfit_image
from tidemill.agent.sandboxes.view import LINKS, WORK
from tidemill.core.sandboxes import MIB, Image

UNPACKED_BYTES_MAX = 64 * 1024 * MIB
ENTRIES_MAX = 2_000_000
NOT_THERE = 404
EMPTY = "empty"


class UnfitImage(EngineFault):
    """The image cannot be used: the task's own fault."""


@dataclass(frozen=True)
class Brought:
    name: str
    volumes: tuple[str, ...]


class Images:
    def __init__(self, api: EngineApi, mark: str) -> None:
        self._api, self._own = api, f"{REPOSITORY}/{mark}"
        self._users: Counter[str] = Counter()
        self._ours: set[str] = set()
        self._bringing = asyncio.Lock()

    async def bring_empty(self) -> None:
        """An image with nothing but places to mount at, for runs that use the machine's own programs."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            file.write(_empty_root())
            file.flush()
            await self._import(Path(file.name), await self._name(None))

    @asynccontextmanager
    async def used(self, image: Image | None) -> AsyncIterator[Brought]:
        """The image, in the engine for as long as somebody uses it."""
        name = await self._name(image)
        self._users[name] += 1
        try:
            async with self._bringing:
                volumes = await self._there(name, image)
            yield Brought(name, volumes)
        finally:
            self._users[name] -= 1
            if not self._users[name] and name in self._ours:
                self._ours.discard(name)
                with suppress(EngineFault):  # the sweep at the next start removes it
                    await self._api.ask("DELETE", _place(name), force="true")

    async def _name(self, image: Image | None) -> str:
        if image is None:
            return f"{self._own}/{EMPTY}:latest"
        if image.tarball is None:
            return image.reference
        return f"{self._own}/{await asyncio.to_thread(_digest, Path(image.tarball))}:latest"

    async def _there(self, name: str, image: Image | None) -> tuple[str, ...]:
        """The volumes of an image, brought if need be."""
        try:
            found = await self._api.ask("GET", f"{_place(name)}/json")
        except EngineFault as fault:
            if fault.status != NOT_THERE or image is None:
                raise
            await self._bring(name, image)
            self._ours.add(name)
            found = await self._api.ask("GET", f"{_place(name)}/json")
        return tuple((found.get("Config") or {}).get("Volumes") or {})

    async def _bring(self, name: str, image: Image) -> None:
        if image.tarball is None:
            try:
                await self._api.send("/images/create", None, fromImage=name)
            except EngineFault as fault:
                raise UnfitImage(f"The image {name} could not be fetched: {fault}", fault.status) from fault
            return
        tarball = Path(image.tarball)
        if unfit := await asyncio.to_thread(unfit_image, tarball, UNPACKED_BYTES_MAX, ENTRIES_MAX):
            raise UnfitImage(unfit.sentence)
        await self._import(tarball, name)

    async def _import(self, tarball: Path, name: str) -> None:
        """Podman knows no tag here but the latest, so that names differ before the colon."""
        repository, _, tag = name.rpartition(":")
        await self._api.send("/images/create", tarball, fromSrc="-", repo=repository, tag=tag)


def _place(name: str) -> str:
    return f"/images/{quote(name, safe='')}"


def _digest(tarball: Path) -> str:
    with tarball.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _empty_root() -> bytes:
    """Links as this machine has them, and directories for the rest."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", WORK.strip("/")):
            archive.addfile(_entry(name, tarfile.DIRTYPE))
        for link in filter(Path.is_symlink, map(Path, LINKS)):
            archive.addfile(_entry(link.name, tarfile.SYMTYPE, str(link.readlink())))
        for directory in (one for one in map(Path, LINKS) if one.is_dir() and not one.is_symlink()):
            archive.addfile(_entry(directory.name, tarfile.DIRTYPE))
    return content.getvalue()


def _entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, 0o755
    return entry
