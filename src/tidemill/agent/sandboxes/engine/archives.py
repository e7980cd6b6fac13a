"""Checks how much an image's archive unpacks to, before the engine unpacks it.

Inputs are mounted as they are: a task unpacks its own archives under its own limits. Only an image is unpacked
outside, by an engine without limits. So it is read through first, in bounded memory, and what counts is what would lie
on disk afterwards. An endless header is not read to its end.
"""

import tarfile
from pathlib import Path

from tidemill.core.jobs.sandboxes import SandboxRefusal

NAME_BYTES_MAX = 4096
PADDING = 4096
"""Every file takes whole blocks, and its name takes space, even if it is empty."""
HEADER_BYTES_MAX = 1024 * 1024
"""Long names and attributes have a body of their own, which must be in memory to be parsed."""
_IN_MEMORY = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


def unfit_image(tarball: Path, bytes_max: int, entries_max: int) -> SandboxRefusal | None:
    """Why a root filesystem's archive may not be unpacked; None if it may. It may be compressed."""
    total = 0
    try:
        with tarfile.open(tarball, "r|*", errorlevel=2, tarinfo=_Bounded) as archive:
            for count, entry in enumerate(archive, start=1):
                total += entry.size + PADDING
                if total > bytes_max or count > entries_max or _is_odd(entry):
                    return SandboxRefusal.IMAGE_UNFIT
                archive.members = []  # type: ignore[attr-defined]  # it would keep them all
    except (tarfile.TarError, OSError, EOFError, ValueError, MemoryError):
        return SandboxRefusal.IMAGE_UNFIT
    return None if total else SandboxRefusal.IMAGE_UNFIT


class _Bounded(tarfile.TarInfo):
    """An entry that is refused before its headers take too much memory, however well they are compressed."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type == tarfile.GNUTYPE_SPARSE or (self.type in _IN_MEMORY and self.size > HEADER_BYTES_MAX):
            raise tarfile.ReadError("a header without end")
        return super()._proc_member(tarfile_)  # type: ignore[misc,no-any-return]

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise tarfile.ReadError("a file with holes")


def _is_odd(entry: tarfile.TarInfo) -> bool:
    """A file with holes unpacks to more than the archive has, and a name may lead out of the root."""
    outside = entry.name.startswith("/") or ".." in Path(entry.name).parts
    return entry.issparse() or outside or entry.isdev() or len(entry.name.encode(errors="replace")) > NAME_BYTES_MAX
