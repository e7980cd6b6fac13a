"""Settings of secrets at rest: where the master key comes from.

At most one place is named. Without any, it is the file `master.key` in the pool's home.
"""

from dataclasses import dataclass
from pathlib import Path

from tidemill.core.operations.master_keys import master_keys_of, text_of
from tidemill.core.settings.definition import optional
from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue
from tidemill.core.settings.kinds.texts import MASK, PATH, TEXT


def _read_keys(raw: object) -> str | UnreadableValue:
    keys = master_keys_of(raw) if isinstance(raw, str) else None
    return " ".join(map(text_of, keys)) if keys else UnreadableValue()


MASTER_KEYS: SettingKind[str] = SettingKind(
    "master keys",
    "one or more keys of 32 bytes, each written as base64url, with spaces between them",
    _read_keys,
    lambda value: value,
    mask=lambda _: MASK,
)


@dataclass(frozen=True)
class SecretsSettings:
    """The master key, which opens every secret that the database holds."""

    master_key: str | None = optional(
        MASTER_KEYS, meaning="The master key itself; of several, the first wraps and the others only unwrap."
    )
    master_key_command: str | None = optional(
        TEXT, meaning="A command that prints the master key, as `master_key` would hold it; no shell is used."
    )
    master_key_file: Path | None = optional(
        PATH, meaning="The file of the master key; not set is `master.key` in the home, made at the first start."
    )
