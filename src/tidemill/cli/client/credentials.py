"""The tokens of whoever is logged in, on their own disk: one file a pool, that nobody else can read.

A refresh token is good once, and one that comes back ends its session. So tokens are changed only under the lock of
their file, after reading them again under it, and a file that can be seen is whole.
"""

import fcntl
import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from tidemill.cli.terminal.output import CommandRefused

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FILE_MAX_BYTES = 64 * 1024
_HELD_BACK = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True)
class StoredTokens:
    """A session with a pool, and the tokens that go on with it."""

    url: str
    address: str
    session_id: str
    session_expires_at: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)


def credentials_folder() -> Path:
    return platformdirs.user_config_path("tidemill", appauthor=False) / "credentials"


class CredentialsFile:
    """The file of one pool. Who writes or removes it holds its lock."""

    def __init__(self, folder: Path, url: str) -> None:
        parts = urlsplit(url)
        name = f"{parts.scheme}_{parts.netloc}".replace("[", "").replace("]", "").replace(":", "-")
        self._folder = folder
        self._url = url
        self.file = folder / f"{name}.json"

    def read(self) -> StoredTokens | None:
        """What is stored; None if nobody is logged in there. A file that others can read is refused."""
        stored = _read(self.file)
        if stored is not None and stored.url != self._url:
            raise CommandRefused(f"{self.file} is for {stored.url}: remove it, and log in again.")
        return stored

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the file, and not to be interrupted between the use of a token and the keeping of the next."""
        _make_private(self._folder)
        descriptor = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)
            try:
                yield
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        finally:
            os.close(descriptor)

    def write(self, tokens: StoredTokens) -> None:
        draft = self.file.with_suffix(".draft")
        with suppress(FileNotFoundError):
            draft.unlink()  # of somebody who was killed while writing
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(json.dumps(asdict(tokens)) + "\n")
            out.flush()
            os.fsync(out.fileno())
        draft.rename(self.file)

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)


def stored_pools(folder: Path) -> list[str]:
    """The pools that somebody is logged in to."""
    stored = (_read(file) for file in sorted(folder.glob("*.json")))
    return [tokens.url for tokens in stored if tokens is not None]


def _read(file: Path) -> StoredTokens | None:
    try:
        _refuse_open_to_others(file.parent, os.lstat(file.parent), "700")
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as opened:
        _refuse_open_to_others(file, os.fstat(descriptor), "600")
        try:
            return StoredTokens(**_texts(json.loads(opened.read(_FILE_MAX_BYTES))))
        except (ValueError, TypeError) as error:
            raise CommandRefused(f"{file} does not hold tokens any more: remove it, and log in again.") from error


def _texts(found: object) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise TypeError
    return found


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _refuse_open_to_others(folder, os.lstat(folder), "700")


def _refuse_open_to_others(path: Path, found: os.stat_result, mode: str) -> None:
    if found.st_uid != os.geteuid():
        raise CommandRefused(f"{path} belongs to another user: run this as the user who logged in.")
    if stat.S_ISLNK(found.st_mode) or found.st_mode & _OTHERS:
        raise CommandRefused(
            f"Others can use {path}, and may have seen the tokens in it: run `chmod {mode} {path}`, "
            "then `tidemill logout`, and log in again."
        )
