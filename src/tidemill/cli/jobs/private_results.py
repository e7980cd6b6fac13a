"""The key that your private results are sealed to, on your own disk, and how they are opened with it.

The key never leaves this machine. A result is kept only if all of it opens and it is what its node signed.
"""

import hashlib
import os
import re
import secrets
import stat
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tidemill.cli.client.credentials import credentials_folder
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.jobs.results import KEY_BYTES, ReaderKey, ResultBinding, ResultRefusal, opened, opened_envelope
from tidemill.host.private_files import make_private_file_once

_TEXT = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def key_file() -> Path:
    return credentials_folder().parent / "result.key"


def own_key() -> ReaderKey:
    """The key in its file. The file is made when it is first needed."""
    file = key_file()
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private_file_once(file, urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode().rstrip("=") + "\n")
    return _read(file)


def made_private(body: dict[str, Any]) -> dict[str, Any]:
    """The job, with its results sealed to its customer and the pool's verification."""
    if body.get("result_key") is not None:
        raise CommandRefused(
            "The job names a result_key already: leave --private out, or remove the key from its file."
        )
    return {**body, "result_key": urlsafe_b64encode(own_key().public).decode().rstrip("=")}


@dataclass(frozen=True)
class Opener:
    """Opens one sealed result."""

    key: bytes = field(repr=False)
    bound: ResultBinding
    sha256: str

    def pieces(self, sealed: Iterable[bytes]) -> Iterator[bytes]:
        """The plain bytes. If they end in a refusal, none of them may be used."""
        plain = hashlib.sha256()
        for piece in opened(sealed, self.key, self.bound):
            if isinstance(piece, ResultRefusal):
                raise CommandRefused(piece.sentence)
            plain.update(piece)
            yield piece
        if plain.hexdigest() != self.sha256:
            raise CommandRefused("This result is not the one whose hash its node signed: fetch it again.")


def opener_of(result: dict[str, Any]) -> Opener:
    """The opener of a result, from the pool's view of it. Get it before fetching anything."""
    file = key_file()
    if not file.exists():
        raise CommandRefused(
            f"This result is sealed, and the key that opens it is not here: put the result.key that the job was "
            f"ordered with to {file}, readable by you alone."
        )
    binding = ResultBinding(UUID(result["task_id"]), UUID(result["attempt_id"]), result["lease"])
    return Opener(_key_of(result, _read(file), binding), binding, result["sha256"])


def _key_of(result: dict[str, Any], key: ReaderKey, binding: ResultBinding) -> bytes:
    """The result's key. Try the last envelope first: it is from the pool, which has opened the result with it."""
    for envelope in reversed(result["envelopes"]):
        result_key = opened_envelope(b64decode(envelope), key.private, binding)
        if isinstance(result_key, bytes) and len(result_key) == KEY_BYTES:
            return result_key
    raise CommandRefused(ResultRefusal.ENVELOPE_DOES_NOT_OPEN.sentence)


def _read(file: Path) -> ReaderKey:
    try:
        with file.open("rb") as opened_file:
            mode, text = os.fstat(opened_file.fileno()).st_mode, opened_file.read(100).decode("ascii", "replace")
    except OSError as error:
        raise CommandRefused(f"{file} cannot be read: {error.strerror}.") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CommandRefused(f"Others can use {file}, and may have seen the key in it: run `chmod 600 {file}`.")
    if not _TEXT.fullmatch(text.strip()):
        raise CommandRefused(
            f"{file} does not hold a key any more: restore it from a copy; a new one opens no old results."
        )
    return ReaderKey(urlsafe_b64decode(text.strip() + "="))
