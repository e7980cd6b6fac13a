"""Images for runs in an engine: brought when a run needs one, removed when no run does.

Every image that a run uses gets a name of ours, so that no customer's image takes a name that the owner uses, and all
of ours can be found again. An image in a file is checked before the engine unpacks it. One in a registry is fetched
without passwords, while the disk has space. The owner's own images are not shown to tasks that name them.
"""

import asyncio
import io
import pwd
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tidemill.agent.sandboxes.bubblewrap.view import LINKS, WORK
from tidemill.agent.sandboxes.disk import LOOK_S, SPARE_BYTES, free_bytes
from tidemill.agent.sandboxes.engine.api import EngineApi, EngineFault
from tidemill.agent.sandboxes.engine.archives import unfit_image
from tidemill.agent.sandboxes.engine.keeper import REPOSITORY
from tidemill.core.jobs.image_names import full_name
from tidemill.core.jobs.sandboxes import MIB, Image, SandboxRefusal

UNPACKED_BYTES_MAX = 64 * 1024 * MIB
ENTRIES_MAX = 2_000_000
NOT_THERE = 404
EMPTY = "empty"
FETCHING = "fetching-"
"""The prefix of a file that names an image while the engine may have it under its original name."""
_ENGINES_HOME = Path(pwd.getpwuid(0).pw_dir)
PASSWORDS = (
    Path("/run/containers/0/auth.json"),
    _ENGINES_HOME / ".config/containers/auth.json",
    _ENGINES_HOME / ".docker/config.json",
    _ENGINES_HOME / ".dockercfg",
)
"""Where Podman looks for passwords of registries, whoever asks it to fetch. Docker uses only those it is given."""


class UnfitImage(EngineFault):
    """The image cannot be used: the task's own fault."""

    code = "image_unfit"


@dataclass(frozen=True)
class FetchedImage:
    name: str
    volumes: tuple[str, ...]


class Images:
    """`directory` is the sandbox's, for notes on what is being fetched; `root` is where the engine keeps images."""

    def __init__(self, api: EngineApi, mark: str, directory: Path, root: Path, is_podman: bool) -> None:
        self._api, self._repository, self._directory = api, f"{REPOSITORY}/{mark}", directory
        self._root, self._is_podman = root, is_podman
        self._users: Counter[str] = Counter()
        self._bringing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def sweep(self) -> None:
        """Remove the images that a killed agent was just fetching."""
        for note in self._directory.glob(f"{FETCHING}*"):
            await self._remove(note.read_text())
            note.unlink()

    async def bring_empty(self) -> None:
        """Make an image with nothing but mount points, for runs that use the machine's own programs."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            file.write(_empty_root())
            file.flush()
            await self._import(Path(file.name), await self._name(None))

    @asynccontextmanager
    async def used(self, image: Image | None, within_s: float) -> AsyncIterator[FetchedImage]:
        """The image, which the engine keeps for as long as a run uses it. Fetching it has a deadline."""
        name = await self._name(image)
        self._users[name] += 1
        try:
            try:
                async with asyncio.timeout(within_s), self._bringing[name]:
                    volumes = await self._ensure(name, image)
            except TimeoutError:
                raise UnfitImage("The image did not come before the deadline: name a smaller one.") from None
            yield FetchedImage(name, volumes)
        finally:
            await asyncio.shield(self._let_go(name, image))

    async def _let_go(self, name: str, image: Image | None) -> None:
        """Remove the image with its last user. A run that needs it meanwhile waits, and brings it again.

        A user counts until it has the lock, so a lock that somebody waits for is never deleted.
        """
        async with self._bringing[name]:
            self._users[name] -= 1
            if not self._users[name] and image is not None:
                await self._remove(name)
            if not self._users[name]:
                del self._users[name], self._bringing[name]

    async def _name(self, image: Image | None) -> str:
        if image is None:
            return f"{self._repository}/{EMPTY}:latest"
        if image.tarball is None:
            return f"{self._repository}/{sha256(full_name(image.reference).encode()).hexdigest()}:latest"
        return f"{self._repository}/{await asyncio.to_thread(_digest, Path(image.tarball))}:latest"

    async def _ensure(self, name: str, image: Image | None) -> tuple[str, ...]:
        """Bring the image if need be; returns its volumes."""
        description = await self._description(name)
        if description is None and image is not None:
            await self._bring(name, image)
            description = await self._description(name)
        if description is None:
            raise EngineFault(f"The container engine has lost the image {name}: start the agent again.")
        if description.get("Size", 0) > UNPACKED_BYTES_MAX:
            raise UnfitImage(SandboxRefusal.IMAGE_UNFIT.sentence)
        return tuple((description.get("Config") or {}).get("Volumes") or {})

    async def _description(self, name: str) -> Any:
        try:
            return await self._api.ask("GET", f"{_image_path(name)}/json")
        except EngineFault as fault:
            if fault.status != NOT_THERE:
                raise
        return None

    async def _remove(self, name: str) -> None:
        """Remove a name, and the image if it has no other name."""
        with suppress(EngineFault):  # the sweep at the next start removes it
            await self._api.ask("DELETE", _image_path(name), force="true")

    async def _bring(self, name: str, image: Image) -> None:
        if image.tarball is None:
            await self._fetch(name, full_name(image.reference))
            return
        tarball = Path(image.tarball)
        if unfit := await asyncio.to_thread(unfit_image, tarball, UNPACKED_BYTES_MAX, ENTRIES_MAX):
            raise UnfitImage(unfit.sentence)
        await self._import(tarball, name)

    async def _fetch(self, name: str, source: str) -> None:
        """Fetch an image from its registry and rename it. Refuse if the owner has an image of that name."""
        if await self._description(source) is not None:
            raise EngineFault(f"The owner of this machine has {source} already, and tasks see nothing of the owner's.")
        if self._is_podman and (file := next(filter(Path.exists, PASSWORDS), None)):
            raise EngineFault(
                f"Podman would fetch images for tasks with the owner's passwords in {file}: remove it, or use Docker."
            )
        note = self._directory / f"{FETCHING}{sha256(source.encode()).hexdigest()}"
        note.write_text(source)
        try:
            await self._pull(source)
            repository, _, tag = name.rpartition(":")
            await self._api.ask("POST", f"{_image_path(source)}/tag", repo=repository, tag=tag)
        except EngineFault as fault:
            raise UnfitImage(f"The image {source} could not be fetched: {fault}", fault.status) from fault
        finally:
            await asyncio.shield(self._remove(source))
            note.unlink()

    async def _pull(self, source: str) -> None:
        """Pull an image. No registry says how much it unpacks to, so give up when too little disk is left."""
        pulling = asyncio.ensure_future(self._api.send("/images/create", None, fromImage=source))
        try:
            while not (await asyncio.wait({pulling}, timeout=LOOK_S))[0]:
                if await asyncio.to_thread(_is_full, self._root):
                    raise EngineFault("it leaves this machine too little disk.")
            await pulling
        finally:
            pulling.cancel()

    async def _import(self, tarball: Path, name: str) -> None:
        """Import an archive. Podman knows only the tag `latest` here, so our names differ before the colon."""
        repository, _, tag = name.rpartition(":")
        await self._api.send("/images/create", tarball, fromSrc="-", repo=repository, tag=tag)


def _is_full(root: Path) -> bool:
    try:
        return free_bytes(root) < SPARE_BYTES
    except OSError:  # an engine in a virtual machine fills that machine's disk
        return False


def _image_path(name: str) -> str:
    return f"/images/{quote(name, safe='')}"


def _digest(tarball: Path) -> str:
    with tarball.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _empty_root() -> bytes:
    """An archive with this machine's links, and directories as mount points."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("usr", "proc", "sys", "dev", "etc", "tmp", WORK.strip("/")):
            archive.addfile(_entry(name, tarfile.DIRTYPE))
        for link in filter(Path.is_symlink, map(Path, LINKS)):
            archive.addfile(_entry(link.name, tarfile.SYMTYPE, str(link.readlink())))
        for directory in (link for link in map(Path, LINKS) if link.is_dir() and not link.is_symlink()):
            archive.addfile(_entry(directory.name, tarfile.DIRTYPE))
    return content.getvalue()


def _entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, 0o755
    return entry
