"""Settings of artefacts: where they are kept, how much of them, and for how long."""

import re
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.settings.definition import SettingScope, optional, setting
from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue
from tidemill.core.settings.kinds.quantities import CREDITS, DURATION, INTEGER, SIZE
from tidemill.core.settings.kinds.texts import PATH, SWITCH, TEXT, WEB_URL
from tidemill.core.settings.sections.mail import SECRET

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_PREFIX = re.compile(r"([A-Za-z0-9._-]+/)*", re.ASCII)


def _read_bucket(raw: object) -> str | UnreadableValue:
    return raw if isinstance(raw, str) and _BUCKET.fullmatch(raw) else UnreadableValue()


def _read_prefix(raw: object) -> str | UnreadableValue:
    fits = isinstance(raw, str) and len(raw) <= 200 and _PREFIX.fullmatch(raw)
    return raw if isinstance(raw, str) and fits and ".." not in raw else UnreadableValue()


BUCKET: SettingKind[str] = SettingKind("bucket", "a bucket's name such as artefacts", _read_bucket, lambda value: value)
PREFIX: SettingKind[str] = SettingKind(
    "prefix", "plain names, each with a slash behind it, such as pool/", _read_prefix, lambda value: value
)


@dataclass(frozen=True)
class ArtefactsSettings:
    """Inputs, models and results."""

    place: Path | None = optional(
        PATH,
        scope=SettingScope.PROCESS,
        meaning="The directory of the artefacts; not set uses `artefacts` in the home.",
    )
    s3_endpoint: str | None = optional(
        WEB_URL,
        scope=SettingScope.PROCESS,
        meaning="The S3-compatible server that keeps the artefacts; not set keeps them in `artefacts.place`.",
    )
    s3_bucket: str | None = optional(
        BUCKET,
        scope=SettingScope.PROCESS,
        meaning="The bucket there, which must exist; needed with `artefacts.s3_endpoint`.",
    )
    s3_prefix: str = setting(
        PREFIX,
        "",
        scope=SettingScope.PROCESS,
        meaning="What every key in the bucket begins with, if others use it, too.",
    )
    s3_region: str = setting(
        TEXT, "us-east-1", scope=SettingScope.PROCESS, meaning="The region that requests are signed for."
    )
    s3_access_key: str | None = optional(
        TEXT,
        scope=SettingScope.PROCESS,
        meaning="The name of the key to the bucket; needed with `artefacts.s3_endpoint`.",
    )
    s3_secret_key: str | None = optional(
        SECRET, scope=SettingScope.PROCESS, meaning="The key itself; it signs requests and is never sent."
    )
    s3_plain_allowed: bool = setting(
        SWITCH,
        False,
        scope=SettingScope.PROCESS,
        meaning="Whether artefacts may leave this machine without TLS, in a network of your own.",
    )
    keep_free_bytes: int = setting(
        SIZE,
        "1GiB",
        scope=SettingScope.PROCESS,
        meaning="The space that uploads leave free on the disk: the pool's database may need it.",
    )
    threads: int = setting(
        INTEGER,
        4,
        unit="threads",
        low=1,
        high=64,
        scope=SettingScope.PROCESS,
        meaning="How many threads read, write and hash artefacts.",
    )
    size_max_bytes: int = setting(SIZE, "50GiB", low="1MiB", meaning="The largest artefact.")
    quota_bytes: int = setting(SIZE, "100GiB", meaning="What one account may keep, with its uploads under way.")
    free_bytes: int = setting(
        SIZE,
        "100MiB",
        high="1TiB",
        meaning="What every account may keep without money, with its uploads under way; no more than "
        "`artefacts.quota_bytes`.",
    )
    price_uc: int = setting(
        CREDITS, "0.02", meaning="What a GiB beyond the free part costs a month (30 days); it is paid by the day."
    )
    funded_s: float = setting(
        DURATION,
        "30d",
        low="1d",
        high="366d",
        meaning="To keep more than the free part, an account's balance must pay for so long.",
    )
    unpaid_keep_s: float = setting(
        DURATION,
        "7d",
        low="1h",
        high="366d",
        meaning="How long artefacts are kept after their account was told that it cannot pay for them.",
    )
    result_keep_s: float = setting(
        DURATION,
        "30d",
        low="1h",
        high="366d",
        meaning="How long the results of jobs are kept without a fee.",
    )
    upload_keep_s: float = setting(
        DURATION, "24h", low="1m", high="30d", meaning="How long an upload waits for its next bytes before it is gone."
    )
    unreferenced_keep_s: float = setting(
        DURATION, "24h", low="1h", high="366d", meaning="How long bytes are kept that no artefact refers to any more."
    )
