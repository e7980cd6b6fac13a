"""A whole backup of a pool: the dump of its database and the bytes of its artefacts. And back again, and a comparison.

Bytes are taken before the dump and once more after it, and the dump gets its name last. So whatever a dump names was
taken, even if it was made or deleted meanwhile. What a killed process leaves is no backup, and is removed later. An
S3-compatible server keeps its bytes itself: then a backup has their list only, and says so.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tidemill.artefacts.backup_contents import (
    FOLDER,
    BackupInHand,
    ListDraft,
    ListedContent,
    TakenContents,
    keeping,
    list_of,
    read_list,
    remove_unlisted,
    take,
)
from tidemill.artefacts.store import ArtefactStore
from tidemill.artefacts.store_choice import local_root, open_store
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.faults import ArtefactFault
from tidemill.core.settings import Settings
from tidemill.store.artefacts import artefacts
from tidemill.store.checks import DatabaseCheck
from tidemill.store.database import connected
from tidemill.store.operations.backup import make_backup

_PAGE = 1_000
_AT_ONCE = 16
OTHERS_S, LOOK_S = 60.0, 0.2
"""How long a backup waits for another one in the same folder, and how often it looks."""


class _State(Enum):
    KEPT = "kept"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class PoolBackup:
    """A backup that was made. `elsewhere` says who keeps the bytes of the artefacts, where the backup does not."""

    size_bytes: int
    artefacts: TakenContents
    elsewhere: str = ""


async def back_up(owner_url: str, file: Path, settings: Settings) -> PoolBackup:
    """Back up the database and the artefacts. The file appears when all of it is there."""
    source = local_root(settings.artefacts, settings.home)
    with ExitStack() as stack:
        target = await _after_others(stack, file.parent)
        draft = stack.enter_context(closing(ListDraft(file)))
        await _pass(owner_url, settings, (source, target), draft, 0)
        taken: list[TakenContents] = []

        async def before_it_is_named() -> None:
            taken.append(await _pass(owner_url, settings, (source, target), draft, 1))
            await asyncio.to_thread(draft.finish)

        size_bytes = await make_backup(owner_url, file, before_it_is_named)
    return PoolBackup(size_bytes, taken[0], elsewhere(settings) if source is None else "")


async def _after_others(stack: ExitStack, folder: Path) -> Path:
    """Enter the tree of bytes, after whoever makes a backup there now: a new pool makes its first one at its start."""
    for _ in range(int(OTHERS_S / LOOK_S)):
        with suppress(BackupInHand):
            return stack.enter_context(keeping(folder))
        await asyncio.sleep(LOOK_S)
    return stack.enter_context(keeping(folder))


def elsewhere(settings: Settings) -> str:
    """Who keeps the bytes of the artefacts, where storage is not on this pool's disk."""
    bucket = f"the bucket {settings.artefacts.s3_bucket} at {settings.artefacts.s3_endpoint}"
    return f"The artefacts are in {bucket}, which keeps them: have it keep old versions, and copies elsewhere."


def bring_back(dump: Path, settings: Settings) -> TakenContents | None:
    """Bring the artefacts of a backup back into storage. None if the backup has no list of them."""
    target, file = local_root(settings.artefacts, settings.home), list_of(dump)
    if not file.is_file() or target is None:
        return None
    with keeping(dump.parent) as source:
        return take(source, target, read_list(file), settings.artefacts.keep_free_bytes)


def forget_unlisted(folder: Path) -> int:
    """Remove the bytes that only deleted backups had. Returns how many files went."""
    return remove_unlisted(folder) if (folder / FOLDER).is_dir() else 0


async def check_artefacts(owner_url: str, settings: Settings, *, digests: bool) -> DatabaseCheck:
    """Compare the artefacts that the database names with the bytes in storage: that they are there with their size, and
    if asked, that they are what their digests say."""
    store = open_store(settings.artefacts, settings.home)
    counts, wrong = Counter[_State](), list[Digest]()
    try:
        async for page in _pages(owner_url):
            for start in range(0, len(page), _AT_ONCE):
                some = page[start : start + _AT_ONCE]
                states = await asyncio.gather(*(_state(store, listed, digests) for listed in some))
                counts.update(states)
                wrong += [one.digest for one, state in zip(some, states, strict=True) if state is not _State.KEPT][:1]
                del wrong[1:]
    except ArtefactFault as fault:
        return DatabaseCheck("artefacts", ok=False, detail=str(fault))
    finally:
        await store.close()
    if wrong:
        gone, damaged = counts[_State.MISSING], counts[_State.DAMAGED]
        how_many = f"Of {counts.total()} artefacts {gone} are missing in storage and {damaged} are damaged"
        return DatabaseCheck("artefacts", False, f"{how_many}; the first is {wrong[0]}: restore them from a backup.")
    depth = "with the bytes that their digests say" if digests else "with their sizes"
    return DatabaseCheck("artefacts", ok=True, detail=f"{counts.total()} in storage, {depth}.")


async def _pass(
    owner_url: str, settings: Settings, places: tuple[Path | None, Path], draft: ListDraft, number: int
) -> TakenContents:
    """Take all bytes that the database names at this time, and add them to the list."""
    (source, target), taken = places, TakenContents()
    keep_free_bytes = settings.artefacts.keep_free_bytes
    async for page in _pages(owner_url):
        if source is not None:
            taken.add(await asyncio.to_thread(take, source, target, page, keep_free_bytes))
        await asyncio.to_thread(draft.add, page, number)
    return taken


async def _pages(owner_url: str) -> AsyncIterator[Sequence[ListedContent]]:
    """All bytes that some artefact refers to, in the order of their digests."""
    after = ""
    async with connected(owner_url) as connection:
        while page := await artefacts.referred(connection, after, _PAGE):
            yield [ListedContent(Digest(content.digest), content.size_bytes) for content in page]
            after = page[-1].digest


async def _state(store: ArtefactStore, listed: ListedContent, digests: bool) -> _State:
    size_bytes = await store.size(listed.digest)
    if size_bytes is None:
        return _State.MISSING
    if size_bytes != listed.size_bytes:
        return _State.DAMAGED
    is_right = not digests or await _digest(store, listed.digest) == listed.digest.text
    return _State.KEPT if is_right else _State.DAMAGED


async def _digest(store: ArtefactStore, digest: Digest) -> str:
    reader = await store.open(digest)
    if isinstance(reader, ArtefactRefusal):
        return ""
    hashed = hashlib.sha256()
    try:
        async for piece in reader:
            hashed.update(piece)
    finally:
        await reader.close()
    return hashed.hexdigest()
