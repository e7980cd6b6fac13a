"""Files that only the owner of the home may read, each whole and durable before it has its name."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tidemill.store.embedded.layout import sync_directory


def make_private_file(file: Path, text: str) -> None:
    """Make a file, unless there is one: of processes that make it at once, the first one's text counts."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        os.unlink(draft)
    sync_directory(file.parent)
