"""Downloads an artefact into a file. An interrupted download resumes, and the file appears only when it is whole.

Incomplete bytes are kept beside the file as `….part`. The digest covers all bytes, also those of earlier tries.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.faults import Fault

_PIECE_BYTES = 1024 * 1024


def download(caller: PoolCaller, artefact: dict[str, Any], target: Path, progress: Callable[[int], None]) -> None:
    """Fetch an artefact's bytes into a new file."""
    if target.exists() or target.is_symlink():
        raise CommandRefused(f"{target} is there already: move it away, or choose another with --output.")
    part = target.with_name(f"{target.name}.part")
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as opened:
        digest = caller.acting(lambda token: _fetch(caller, token, artefact, opened, progress))
        opened.flush()
        os.fsync(opened.fileno())
    if digest != artefact["digest"]:
        part.unlink()
        raise Fault("What came has another SHA-256 than the artefact: run this again.")
    part.replace(target)


def _fetch(
    caller: PoolCaller, token: str, artefact: dict[str, Any], opened: BinaryIO, progress: Callable[[int], None]
) -> str:
    """Fetch the missing bytes; returns the digest of the whole file."""
    opened.seek(0)
    hasher, size = hashlib.sha256(), 0
    while piece := opened.read(_PIECE_BYTES):
        hasher.update(piece)
        size += len(piece)
    if size == artefact["size_bytes"]:
        return hasher.hexdigest()
    headers = {"Range": f"bytes={size}-", "If-Range": f'"{artefact["digest"]}"'} if size else {}
    try:
        with caller.pool.opened(f"/artefacts/{artefact['id']}/content", token=token, headers=headers) as answer:
            if answer.status_code != 206:
                hasher, size = hashlib.sha256(), 0
                opened.seek(0)
                opened.truncate()
            for piece in answer.iter_raw(_PIECE_BYTES):
                opened.write(piece)
                hasher.update(piece)
                size += len(piece)
                progress(size)
    except PoolRefused as refused:
        if refused.code != ArtefactRefusal.RANGE_NOT_THERE.code:
            raise
    return hasher.hexdigest()
