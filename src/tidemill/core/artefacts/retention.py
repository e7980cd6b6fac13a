"""How much an account may keep, and what storage may delete. Pure: the caller brings the sums and the time.

Uploads under way count as if they were finished, so that many uploads at once cannot pass a quota that each alone
would respect. Deleting makes room at once, though the bytes stay in storage for a while; at most one quota's worth of
them, or an account that uploads and deletes in turns would fill the disk. Content with a reference is never deleted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.clock import Instant

SMALLEST_BYTES = 4096
"""What the smallest artefact counts: even an empty one costs a file, a name and rows."""


@dataclass(frozen=True)
class StorageRoom:
    """What an account keeps, what its uploads under way will need, and what it may keep in all.

    `leaving_bytes` are deleted by the account and still in storage.
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
    """Bytes in storage. `idle_since` is when the last reference went, or when they arrived if there never was one."""

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
    """What storage may delete: content that nothing has referred to for long enough.

    If the clock goes back, everything seems younger, so nothing is deleted too early.
    """
    return [content for content in contents if content.references == 0 and now - content.idle_since > keep_us]
