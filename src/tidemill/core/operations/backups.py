"""Which backups to keep. Pure: file names in, file names out.

A backup's name carries the instant it was made. We keep the newest of each of the last days and weeks; a file that is
not named like a backup is never touched.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from tidemill.core.clock import SECOND, Instant

_FORMAT = "tidemill-%Y%m%dT%H%M%SZ.dump"


def backup_name(at: Instant) -> str:
    return datetime.fromtimestamp(at / SECOND, UTC).strftime(_FORMAT)


def made_at(name: str) -> datetime | None:
    """When a backup was made, by its name; None for other files."""
    try:
        return datetime.strptime(name, _FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def superfluous(names: Iterable[str], *, keep_daily: int, keep_weekly: int) -> list[str]:
    """The backups that may be deleted."""
    dated = {name: at for name in names if (at := made_at(name))}
    newest_first = sorted(dated, key=lambda name: dated[name], reverse=True)
    keep = _newest_each(newest_first, {name: at.strftime("%Y-%j") for name, at in dated.items()}, keep_daily)
    keep |= _newest_each(newest_first, {name: at.strftime("%G-%V") for name, at in dated.items()}, keep_weekly)
    return [name for name in newest_first if name not in keep]


def _newest_each(newest_first: list[str], period_of: dict[str, str], most: int) -> set[str]:
    """The newest name of each of the newest `most` periods."""
    newest: dict[str, str] = {}
    for name in newest_first:
        newest.setdefault(period_of[name], name)
    return set(list(newest.values())[:most])
