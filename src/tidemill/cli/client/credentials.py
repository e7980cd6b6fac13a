"""The tokens of a logged-in user, on their own disk: one file a profile, which nobody else can read.

A refresh token is good once, and using it twice ends its session. So tokens change only under their file's lock, after
reading them again under it, and a visible file is always whole.
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

from tidemill.cli.terminal.output import CommandRefused

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FILE_MAX_BYTES = 64 * 1024
_BLOCKED_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True)
class StoredTokens:
    """A session with a pool, and its current tokens. A file from before there were profiles has neither name nor
    roles."""

    url: str
    address: str
    session_id: str
    session_expires_at: str
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    name: str = ""
    roles: str = ""


def credentials_folder() -> Path:
    import platformdirs

    return platformdirs.user_config_path("tidemill", appauthor=False) / "credentials"


class CredentialsFile:
    """The file of one profile; without a name, the one file that a pool had before there were profiles.

    Hold its lock to write or remove it."""

    def __init__(self, folder: Path, url: str, name: str = "") -> None:
        parts = urlsplit(url)
        before = f"{parts.scheme}_{parts.netloc}".replace("[", "").replace("]", "").replace(":", "-")
        self._folder = folder
        self._url = url
        self.file = folder / f"{name or before}.json"

    def read(self) -> StoredTokens | None:
        """The stored tokens; None if nobody is logged in there. A file that others can read is refused."""
        stored = _read(self.file)
        if stored is not None and stored.url != self._url:
            raise CommandRefused(f"{self.file} is for {stored.url}: remove it, and log in again.")
        return stored

    @contextmanager
    def locked(self) -> Iterator[None]:
        with locked(self._folder, self.file.name.removesuffix(".json")):
            yield

    def write(self, tokens: StoredTokens) -> None:
        write_private(self.file, json.dumps(asdict(tokens)) + "\n")

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)


def stored_sessions(folder: Path) -> list[tuple[CredentialsFile, StoredTokens]]:
    """The sessions that this user has kept, each with its file."""
    found = ((file, _read(file)) for file in sorted(folder.glob("*.json")))
    return [(_file_of(folder, file, tokens.url), tokens) for file, tokens in found if tokens is not None]


def write_private(file: Path, text: str) -> None:
    """Put a text into a file that only its owner can read. Whoever reads it sees the old text or the new one."""
    draft = file.with_suffix(".draft")
    with suppress(FileNotFoundError):
        draft.unlink()  # left by a process that was killed while writing
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)


@contextmanager
def locked(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock in the folder, and block signals: nothing may come between using a token and keeping the next."""
    _make_private(folder)
    descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    finally:
        os.close(descriptor)


def _file_of(folder: Path, file: Path, url: str) -> CredentialsFile:
    return CredentialsFile(folder, url, file.name.removesuffix(".json"))


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


def _texts(fields: object) -> dict[str, str]:
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise TypeError
    return fields


def _make_private(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _refuse_open_to_others(folder, os.lstat(folder), "700")


def _refuse_open_to_others(path: Path, status: os.stat_result, mode: str) -> None:
    if status.st_uid != os.geteuid():
        raise CommandRefused(f"{path} belongs to another user: run this as the user who logged in.")
    if stat.S_ISLNK(status.st_mode) or status.st_mode & _OTHERS:
        raise CommandRefused(
            f"Others can use {path}, and may have seen the tokens in it: run `chmod {mode} {path}`, "
            "then `tidemill logout`, and log in again."
        )
