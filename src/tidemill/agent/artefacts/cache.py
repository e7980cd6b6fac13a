"""Artefacts on this machine's disk: each fetched once, checked before it is used, and kept while there is room.

`content/<digest>` is whole and right, or was at this process's last check: before the first use it hashes the file,
before every other use it compares size and times. `parts/<digest>` holds what has come so far; a download resumes from
it. The least recently used artefacts go first; one in use never goes. One agent has the cache at a time.
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
"""Disk space that stays free for the machine's owner and the agent's spool."""

_CONTENT, _PARTS = "content", "parts"
_HASH_BYTES = 1024 * 1024
_WRONG_MAX = 3
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_Stamp = tuple[int, int, int, int]
"""Inode, size, and times of modification and change of a file. Nobody can set the last."""


class ArtefactSource(Protocol):
    """Where artefacts come from."""

    async def download(self, digest: Digest, size_bytes: int, into: int) -> None:
        """Append the missing bytes to an open file, or raise a fault."""
        ...

    def distrust(self) -> None:
        """The bytes were wrong: ask elsewhere the next time."""
        ...


@dataclass
class _CacheEntry:
    """One digest: whether its artefact is here, the space it has, and its file's stamp at the last check."""

    is_here: bool = False
    size_bytes: int = 0
    stamp: _Stamp | None = None
    users: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Cache:
    """A directory with artefacts, the least recently used first."""

    def __init__(
        self, path: Path, limit_bytes: int, source: ArtefactSource, keep_free_bytes: int = KEEP_FREE_BYTES
    ) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._source = source
        self._keep_free_bytes = keep_free_bytes
        self._entries: OrderedDict[Digest, _CacheEntry] = OrderedDict()
        self._making_room = asyncio.Lock()

    @classmethod
    async def open(
        cls, path: Path, limit_bytes: int, source: ArtefactSource, keep_free_bytes: int = KEEP_FREE_BYTES
    ) -> "Cache":
        """Open with what an earlier process left. Foreign files are removed; a foreign directory is refused."""
        cache = cls(path, limit_bytes, source, keep_free_bytes)
        await asyncio.to_thread(cache._load)
        return cache

    @asynccontextmanager
    async def use(self, digest: Digest, size_bytes: int) -> AsyncIterator[Path]:
        """A read-only file with the artefact, which stays for as long as the context is open."""
        entry = self._entries.setdefault(digest, _CacheEntry())
        entry.users += 1
        try:
            async with entry.turn:  # the first user fetches; if it gives up, the next one resumes
                await self._make_ready(digest, entry, size_bytes)
            yield self._path / _CONTENT / digest.text
        finally:
            entry.users -= 1
            self._put_back(digest, entry)

    def contents(self) -> Mapping[Digest, int]:
        """The sizes of the artefacts that are here, the most recently used first."""
        return {digest: entry.size_bytes for digest, entry in reversed(self._entries.items()) if entry.is_here}

    def _put_back(self, digest: Digest, entry: _CacheEntry) -> None:
        """Mark as just used. Forget an artefact that could not be fetched."""
        if entry.users == 0 and not entry.is_here:
            self._entries.pop(digest, None)
        else:
            self._entries.move_to_end(digest)

    async def _make_ready(self, digest: Digest, entry: _CacheEntry, size_bytes: int) -> None:
        if entry.stamp is not None and entry.size_bytes != size_bytes:
            raise AgentFault(f"The task is wrong about the size of {digest}, which has {entry.size_bytes} bytes.")
        with faults(self._path):
            stamp = await _in_thread(self._checked, digest, entry.stamp, size_bytes)
            if stamp is None:
                entry.is_here, entry.size_bytes = False, 0
                try:
                    await self._fetch(digest, entry, size_bytes)
                finally:
                    entry.size_bytes = size_bytes if entry.is_here else 0
            entry.is_here, entry.size_bytes = True, size_bytes
            entry.stamp = await _in_thread(self._touch, digest)

    async def _fetch(self, digest: Digest, entry: _CacheEntry, size_bytes: int) -> None:
        for _ in range(_WRONG_MAX):
            async with self._making_room:
                await self._make_room(digest, size_bytes)
                entry.size_bytes = size_bytes
            file = await _in_thread(self._open_part, digest)
            try:
                await self._source.download(digest, size_bytes, file)
                if await _in_thread(_sha256, file) == digest.text:
                    await _in_thread(self._give_name, file, digest)
                    entry.is_here = True
                    return
            finally:
                os.close(file)
            log.warning("what came was wrong", digest=digest.text)
            await _in_thread(self._remove, _PARTS, digest)
            self._source.distrust()
        raise AgentFault(f"What the pool sends as {digest} is something else, each time: tell its operator.")

    async def _make_room(self, digest: Digest, size_bytes: int) -> None:
        """Remove others until it fits our limit and the disk: first parts that nobody fetches, then artefacts."""
        if size_bytes > self._limit_bytes:
            raise AgentFault(
                f"An artefact of {size_bytes} bytes is larger than the cache: raise agent.cache_bytes on this machine."
            )
        came_bytes, parts = await asyncio.to_thread(self._parts, digest)
        while True:
            sizes = (entry.size_bytes for other, entry in self._entries.items() if other != digest)
            used_bytes = sum(sizes) + sum(size for _, size in parts)
            is_full = used_bytes + size_bytes > self._limit_bytes
            if not is_full and not await asyncio.to_thread(self._lacks_space, size_bytes - came_bytes):
                return
            if parts:
                await _in_thread(self._remove, _PARTS, parts.pop(0)[0])
            elif not await self._evict():
                raise DiskFull(f"There is no room for more in {self._path}, where all is in use: make space there.")

    async def _evict(self) -> bool:
        """Remove the least recently used artefact. Whoever asks for it meanwhile waits, and fetches it again."""
        for digest, entry in self._entries.items():
            if entry.users == 0:
                async with entry.turn:
                    await _in_thread(self._remove, _CONTENT, digest)
                    entry.is_here, entry.size_bytes, entry.stamp = False, 0, None
                if entry.users == 0:
                    self._entries.pop(digest, None)
                return True
        return False

    # The methods below run in a thread.

    def _load(self) -> None:
        with faults(self._path), directory(self._path, _CONTENT, make=True) as content:
            files = []
            for name in os.listdir(content):
                stamp, digest = _stamp(content, name), read_digest(name)
                if stamp and isinstance(digest, Digest):
                    files.append((stamp[2], digest, stamp[1]))
                else:
                    _discard(content, name)
        for _, digest, size_bytes in sorted(files):
            self._entries[digest] = _CacheEntry(is_here=True, size_bytes=size_bytes)

    def _checked(self, digest: Digest, last_stamp: _Stamp | None, size_bytes: int) -> _Stamp | None:
        """The stamp of the artefact's file. A wrong file is removed."""
        with directory(self._path, _CONTENT, make=True) as content:
            stamp = _stamp(content, digest.text)
            if stamp and stamp[1] == size_bytes and (stamp == last_stamp or _is_right(content, digest)):
                return stamp
            _discard(content, digest.text)
            return None

    def _touch(self, digest: Digest) -> _Stamp | None:
        """Note the time of use for the next process."""
        with directory(self._path, _CONTENT) as content:
            os.utime(digest.text, dir_fd=content, follow_symlinks=False)
            return _stamp(content, digest.text)

    def _parts(self, needed: Digest) -> tuple[int, list[tuple[Digest, int]]]:
        """How much of an artefact has come, and the parts of others that nobody fetches, the oldest first."""
        parts_found = []
        with directory(self._path, _PARTS, make=True) as parts:
            for name in os.listdir(parts):
                stamp, digest = _stamp(parts, name), read_digest(name)
                if stamp is None or not isinstance(digest, Digest):
                    _discard(parts, name)
                elif digest == needed or digest not in self._entries:
                    parts_found.append((stamp[2], digest, stamp[1]))
        came_bytes = sum(size for _, digest, size in parts_found if digest == needed)
        return came_bytes, [(digest, size) for _, digest, size in sorted(parts_found) if digest != needed]

    def _lacks_space(self, more_bytes: int) -> bool:
        disk = os.statvfs(self._path)
        return disk.f_bavail * disk.f_frsize - more_bytes < self._keep_free_bytes

    def _open_part(self, digest: Digest) -> int:
        with directory(self._path, _PARTS, make=True) as parts:
            if _stamp(parts, digest.text) is None:
                _discard(parts, digest.text)
            return os.open(digest.text, os.O_RDWR | os.O_CREAT | _FILE, 0o600, dir_fd=parts)

    def _give_name(self, file: int, digest: Digest) -> None:
        with directory(self._path, _PARTS) as parts, directory(self._path, _CONTENT, make=True) as content:
            os.fchmod(file, 0o444)
            os.fsync(file)
            os.rename(digest.text, digest.text, src_dir_fd=parts, dst_dir_fd=content)
            os.fsync(content)

    def _remove(self, folder: str, digest: Digest) -> None:
        with directory(self._path, folder, make=True) as folder_descriptor:
            _discard(folder_descriptor, digest.text)


async def _in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Wait for the thread even when cancelled: the next user must find the files in their final state."""
    return await whole(asyncio.to_thread(work, *args, **kwargs))


def _stamp(folder: int, name: str) -> _Stamp | None:
    """The stamp of a regular file that is ours alone; None for everything else."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid != os.geteuid():
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_right(folder: int, digest: Digest) -> bool:
    file = os.open(digest.text, os.O_RDONLY | _FILE, dir_fd=folder)
    try:
        return _sha256(file) == digest.text
    finally:
        os.close(file)


def _sha256(file: int) -> str:
    state, at = hashlib.sha256(), 0
    while piece := os.pread(file, _HASH_BYTES, at):
        state.update(piece)
        at += len(piece)
    return state.hexdigest()


def _discard(folder: int, name: str) -> None:
    """Remove an entry, whatever it is. Of a link, its target stays."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        with suppress(OSError):
            os.rmdir(name, dir_fd=folder)
