"""How much an account may keep, and what is kept no longer. Pure: the caller brings the sums and the time.

Whatever is under way is counted as if it were there already, so that many uploads at once do not pass a quota that each
of them alone would respect. What is deleted makes room at once, though its bytes stay in storage for a while: but not
for more than one quota, or whoever uploads and deletes in turns would fill the disk. Nothing that something refers to
is ever deleted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.clock import Instant

SMALLEST_BYTES = 4096
"""What the smallest artefact counts: a file, a name and rows cost so much, even if nothing is in it."""


@dataclass(frozen=True)
class StorageRoom:
    """What an account has kept, what its uploads under way will need, and what it may keep in all.

    `leaving_bytes` were deleted by it, and are still in storage.
    """

    used_bytes: int
    reserved_bytes: int
    quota_bytes: int
    leaving_bytes: int = 0

    @property
    def free_bytes(self) -> int:
        return max(0, self.quota_bytes - self.used_bytes - self.reserved_bytes)


@dataclass(frozen=True)
class OverQuota:
    """A refusal with its figures."""

    room: StorageRoom
    wanted_bytes: int
    refusal: ArtefactRefusal = ArtefactRefusal.ARTEFACT_QUOTA_REACHED

    @property
    def sentence(self) -> str:
        if self.wanted_bytes <= self.room.free_bytes:
            return (
                f"{self.wanted_bytes} bytes do not fit: {self.room.leaving_bytes} that were deleted are still being "
                "removed from storage: try again when they are gone."
            )
        return (
            f"{self.wanted_bytes} bytes do not fit: {self.room.used_bytes} are kept and {self.room.reserved_bytes} "
            f"under way, of {self.room.quota_bytes} in your quota: delete artefacts that you no longer need."
        )


@dataclass(frozen=True)
class Content:
    """Bytes in storage. `idle_since` is when the last reference to them went, or when they came if none ever was."""

    digest: Digest
    size_bytes: int
    references: int
    idle_since: Instant


def counted_bytes(size_bytes: int) -> int:
    """What an artefact of this size counts in its account's quota."""
    return max(SMALLEST_BYTES, size_bytes)


def refused_room(
    room: StorageRoom, wanted_bytes: int, size_max_bytes: int
) -> OverQuota | ArtefactRefusal | UploadRefusal | None:
    """Why an account may not begin an upload of this length; None if it may."""
    if wanted_bytes < 0:
        return UploadRefusal.UPLOAD_LENGTH_MALFORMED
    if wanted_bytes > size_max_bytes:
        return ArtefactRefusal.ARTEFACT_TOO_LARGE
    after_bytes = room.used_bytes + room.reserved_bytes + counted_bytes(wanted_bytes)
    if after_bytes > room.quota_bytes or after_bytes + room.leaving_bytes > 2 * room.quota_bytes:
        return OverQuota(room, counted_bytes(wanted_bytes))
    return None


def deletable(contents: Iterable[Content], keep_us: int, now: Instant) -> list[Content]:
    """What storage may give up: what nothing refers to, and nothing has for long enough.

    A clock that went back makes everything younger, so it deletes nothing too early.
    """
    return [one for one in contents if one.references == 0 and now - one.idle_since > keep_us]
