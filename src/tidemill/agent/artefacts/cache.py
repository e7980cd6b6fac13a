"""Artefacts on this machine's disk: each fetched once, checked before it is used, and kept while there is room.

`content/<digest>` is whole and right, or was when this process last looked; what a process finds there is hashed before
its first use, and looked at by its size and times before every other. `parts/<digest>` is what has come so far, and is
gone on with. The least recently used go first; what is in use never goes. One agent has the cache at a time.
"""

import asyncio
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

import structlog

from tidemill.artefacts.directories import directory, faults
from tidemill.artefacts.threads import whole
from tidemill.core.artefacts.artefact import Digest, read_digest
from tidemill.core.faults import AgentFault, DiskFull

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

KEEP_FREE_BYTES = 1024**3
"""What is left to the machine's owner and to the agent's spool."""

_CONTENT, _PARTS = "content", "parts"
_HASH_BYTES = 1024 * 1024
_WRONG_MAX = 3
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_Stamp = tuple[int, int, int, int]
"""Inode, size and times of a file; the last of them nobody can set."""


class ArtefactSource(Protocol):
    """Where artefacts come from."""

    async def download(self, digest: Digest, size_bytes: int, into: int) -> None:
        """Bring all that is missing into an open file, or raise a fault."""
        ...

    def distrust(self) -> None:
        """What came was wrong: ask elsewhere the next time."""
        ...


@dataclass
class _Kept:
    """What is known of one digest: whether it is here, the room that it has, and its file as it was last checked."""

    here: bool = False
    size_bytes: int = 0
    stamp: _Stamp | None = None
    users: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Cache:
    """A directory with artefacts, the least recently used first."""

    def __init__(
        self, place: Path, limit_bytes: int, source: ArtefactSource, keep_free_bytes: int = KEEP_FREE_BYTES
    ) -> None:
        self._place = place
        self._limit_bytes = limit_bytes
        self._source = source
        self._keep_free_bytes = keep_free_bytes
        self._kept: OrderedDict[Digest, _Kept] = OrderedDict()
        self._making_room = asyncio.Lock()

    @classmethod
    async def open(
        cls, place: Path, limit_bytes: int, source: ArtefactSource, keep_free_bytes: int = KEEP_FREE_BYTES
    ) -> "Cache":
        """With what an earlier process left there. What is not ours is removed, or the place is refused."""
        cache = cls(place, limit_bytes, source, keep_free_bytes)
        await asyncio.to_thread(cache._find)
        return cache

    @asynccontextmanager
    async def use(self, digest: Digest, size_bytes: int) -> AsyncIterator[Path]:
        """A file with the artefact, to be read only, which stays as long as this lasts."""
        kept = self._kept.setdefault(digest, _Kept())
        kept.users += 1
        try:
            async with kept.turn:  # whoever is first fetches; if they give up, the next one goes on
                await self._make_ready(digest, kept, size_bytes)
            yield self._place / _CONTENT / digest.text
        finally:
            kept.users -= 1
            self._put_back(digest, kept)

    def contents(self) -> Mapping[Digest, int]:
        """What is here, the most recently used first, with the sizes."""
        return {digest: kept.size_bytes for digest, kept in reversed(self._kept.items()) if kept.here}

    def _put_back(self, digest: Digest, kept: _Kept) -> None:
        """Used just now. What could not be fetched is forgotten."""
        if kept.users == 0 and not kept.here:
            self._kept.pop(digest, None)
        else:
            self._kept.move_to_end(digest)

    async def _make_ready(self, digest: Digest, kept: _Kept, size_bytes: int) -> None:
        if kept.stamp is not None and kept.size_bytes != size_bytes:
            raise AgentFault(f"The task is wrong about the size of {digest}, which has {kept.size_bytes} bytes.")
        with faults(self._place):
            stamp = await _in_thread(self._checked, digest, kept.stamp, size_bytes)
            if stamp is None:
                kept.here, kept.size_bytes = False, 0
                try:
                    await self._fetch(digest, kept, size_bytes)
                finally:
                    kept.size_bytes = size_bytes if kept.here else 0
            kept.here, kept.size_bytes = True, size_bytes
            kept.stamp = await _in_thread(self._touch, digest)

    async def _fetch(self, digest: Digest, kept: _Kept, size_bytes: int) -> None:
        for _ in range(_WRONG_MAX):
            async with self._making_room:
                await self._make_room(digest, size_bytes)
                kept.size_bytes = size_bytes
            file = await _in_thread(self._open_part, digest)
            try:
                await self._source.download(digest, size_bytes, file)
                if await _in_thread(_hashed, file) == digest.text:
                    await _in_thread(self._give_name, file, digest)
                    kept.here = True
                    return
            finally:
                os.close(file)
            log.warning("what came was wrong", digest=digest.text)
            await _in_thread(self._remove, _PARTS, digest)
            self._source.distrust()
        raise AgentFault(f"What the pool sends as {digest} is something else, each time: tell its operator.")

    async def _make_room(self, digest: Digest, size_bytes: int) -> None:
        """Remove others until it fits, below our limit and on the disk: what nobody fetches any more, then the rest."""
        if size_bytes > self._limit_bytes:
            raise AgentFault(
                f"An artefact of {size_bytes} bytes is larger than the cache: raise agent.cache_bytes on this machine."
            )
        came_bytes, parts = await asyncio.to_thread(self._parts, digest)
        while True:
            others = (kept.size_bytes for one, kept in self._kept.items() if one != digest)
            used_bytes = sum(others) + sum(size for _, size in parts)
            is_full = used_bytes + size_bytes > self._limit_bytes
            if not is_full and not await asyncio.to_thread(self._lacks, size_bytes - came_bytes):
                return
            if parts:
                await _in_thread(self._remove, _PARTS, parts.pop(0)[0])
            elif not await self._evict():
                raise DiskFull(f"There is no room for more in {self._place}, where all is in use: make space there.")

    async def _evict(self) -> bool:
        """Remove the least recently used. Whoever asks for it meanwhile waits, and fetches it again."""
        for digest, kept in self._kept.items():
            if kept.users == 0:
                async with kept.turn:
                    await _in_thread(self._remove, _CONTENT, digest)
                    kept.here, kept.size_bytes, kept.stamp = False, 0, None
                if kept.users == 0:
                    self._kept.pop(digest, None)
                return True
        return False

    # From here on everything works in a thread.

    def _find(self) -> None:
        with faults(self._place), directory(self._place, _CONTENT, make=True) as content:
            found = []
            for name in os.listdir(content):
                stamp, digest = _stamp(content, name), read_digest(name)
                if stamp and isinstance(digest, Digest):
                    found.append((stamp[2], digest, stamp[1]))
                else:
                    _discard(content, name)
        for _, digest, size_bytes in sorted(found):
            self._kept[digest] = _Kept(here=True, size_bytes=size_bytes)

    def _checked(self, digest: Digest, known: _Stamp | None, size_bytes: int) -> _Stamp | None:
        """The file's stamp if it is what it should be. Another one is removed."""
        with directory(self._place, _CONTENT, make=True) as content:
            stamp = _stamp(content, digest.text)
            if stamp and stamp[1] == size_bytes and (stamp == known or _is_hashed(content, digest)):
                return stamp
            _discard(content, digest.text)
            return None

    def _touch(self, digest: Digest) -> _Stamp | None:
        """Note when it was used, for the next process."""
        with directory(self._place, _CONTENT) as content:
            os.utime(digest.text, dir_fd=content, follow_symlinks=False)
            return _stamp(content, digest.text)

    def _parts(self, wanted: Digest) -> tuple[int, list[tuple[Digest, int]]]:
        """How much of an artefact has come, and what has come of others that nobody fetches, the oldest first."""
        found = []
        with directory(self._place, _PARTS, make=True) as parts:
            for name in os.listdir(parts):
                stamp, digest = _stamp(parts, name), read_digest(name)
                if stamp is None or not isinstance(digest, Digest):
                    _discard(parts, name)
                elif digest == wanted or digest not in self._kept:
                    found.append((stamp[2], digest, stamp[1]))
        came_bytes = sum(size for _, digest, size in found if digest == wanted)
        return came_bytes, [(digest, size) for _, digest, size in sorted(found) if digest != wanted]

    def _lacks(self, more_bytes: int) -> bool:
        disk = os.statvfs(self._place)
        return disk.f_bavail * disk.f_frsize - more_bytes < self._keep_free_bytes

    def _open_part(self, digest: Digest) -> int:
        with directory(self._place, _PARTS, make=True) as parts:
            if _stamp(parts, digest.text) is None:
                _discard(parts, digest.text)
            return os.open(digest.text, os.O_RDWR | os.O_CREAT | _FILE, 0o600, dir_fd=parts)

    def _give_name(self, file: int, digest: Digest) -> None:
        with directory(self._place, _PARTS) as parts, directory(self._place, _CONTENT, make=True) as content:
            os.fchmod(file, 0o444)
            os.fsync(file)
            os.rename(digest.text, digest.text, src_dir_fd=parts, dst_dir_fd=content)
            os.fsync(content)

    def _remove(self, where: str, digest: Digest) -> None:
        with directory(self._place, where, make=True) as here:
            _discard(here, digest.text)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Waited for also by whoever is cancelled: whoever has the next turn must find files as they will stay."""
    return await whole(asyncio.to_thread(work, *args, **kwargs))


def _stamp(here: int, name: str) -> _Stamp | None:
    """Of a file that is ours alone; None for everything else."""
    try:
        found = os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_hashed(here: int, digest: Digest) -> bool:
    file = os.open(digest.text, os.O_RDONLY | _FILE, dir_fd=here)
    try:
        return _hashed(file) == digest.text
    finally:
        os.close(file)


def _hashed(file: int) -> str:
    state, at = hashlib.sha256(), 0
    while piece := os.pread(file, _HASH_BYTES, at):
        state.update(piece)
        at += len(piece)
    return state.hexdigest()


def _discard(here: int, name: str) -> None:
    """Remove a name, whatever it is; of a link, not what it leads to."""
    try:
        os.unlink(name, dir_fd=here)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        with suppress(OSError):
            os.rmdir(name, dir_fd=here)
