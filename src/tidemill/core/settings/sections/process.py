"""Settings of a control process's inside: database, clock, loops, events, log, tracing.

They shape how a process works, never what it decides; settings that processes must agree on are marked as the pool's.
"""

from dataclasses import dataclass
from enum import StrEnum

from tidemill.core.settings.definition import SettingScope, optional, setting
from tidemill.core.settings.kinds.quantities import DURATION, INTEGER, SHARE
from tidemill.core.settings.kinds.texts import SWITCH, TEXT, WEB_URL, choice


class LogLevel(StrEnum):
    """The least important line that is still written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line looks; auto is console on a terminal and JSON elsewhere."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


@dataclass(frozen=True)
class DatabaseSettings:
    """PostgreSQL: connections, backups, partitions."""

    connections_max: int = setting(
        INTEGER,
        8,
        unit="connections",
        low=2,
        high=1000,
        meaning="The most connections that requests of one process use.",
    )
    loop_connections_max: int = setting(
        INTEGER, 4, unit="connections", low=2, high=1000, meaning="The connections kept for the loops of one process."
    )
    statement_timeout_s: float = setting(
        DURATION, "30s", low="100ms", high="1h", meaning="A statement that runs for longer is ended."
    )
    lock_timeout_s: float = setting(
        DURATION, "10s", low="10ms", high="1h", meaning="A statement that waits longer for a lock is ended."
    )
    backups_enabled: bool = setting(SWITCH, True, scope=SettingScope.POOL, meaning="Whether backups are made.")
    backup_every_s: float = setting(
        DURATION, "24h", low="1m", high="30d", scope=SettingScope.POOL, meaning="How often a backup is made."
    )
    backup_keep_daily: int = setting(
        INTEGER,
        7,
        unit="backups",
        high=366,
        scope=SettingScope.POOL,
        meaning="The backups kept, one of each of the last days.",
    )
    backup_keep_weekly: int = setting(
        INTEGER,
        4,
        unit="backups",
        high=520,
        scope=SettingScope.POOL,
        meaning="The backups kept, one of each of the last weeks.",
    )
    partitions_ahead_days: int = setting(
        INTEGER,
        92,
        unit="days",
        low=7,
        high=3660,
        scope=SettingScope.POOL,
        meaning="How far ahead the partitions of growing tables exist.",
    )
    server_user: str = setting(
        TEXT, "tidemill", meaning="The system's user that the embedded server runs as when we are started by root."
    )


@dataclass(frozen=True)
class ClockSettings:
    """The process's clock: the database's time plus a monotonic offset."""

    sample_every_s: float = setting(
        DURATION, "5s", low="100ms", high="10m", meaning="How often the database's time is read."
    )
    step_alarm_s: float = setting(
        DURATION, "1s", low="1ms", high="1h", meaning="A step of the database's time larger than this alarms."
    )
    settle_s: float = setting(
        DURATION,
        "10s",
        high="1h",
        meaning="A step must hold for so long before it is believed; loops that need the time wait until then.",
    )
    uncertainty_alarm_s: float = setting(
        DURATION, "500ms", low="1ms", high="1h", meaning="A clock less certain than this alarms."
    )


@dataclass(frozen=True)
class LoopsSettings:
    """Background loops: how often they look, how much they take, when another takes over."""

    poll_s: float = setting(
        DURATION, "1s", low="10ms", high="10m", meaning="A loop that nobody wakes looks for work this often."
    )
    batch_max: int = setting(INTEGER, 1000, unit="rows", low=1, high=100_000, meaning="The most rows of one tick.")
    lease_s: float = setting(
        DURATION,
        "30s",
        low="1s",
        high="1h",
        scope=SettingScope.POOL,
        meaning="How long a loop may hold the work it took.",
    )
    backoff_first_s: float = setting(
        DURATION, "500ms", low="10ms", high="1h", meaning="The wait after a loop's first failure."
    )
    backoff_most_s: float = setting(
        DURATION, "30s", low="10ms", high="24h", meaning="The longest wait after failures in a row."
    )
    process_heartbeat_s: float = setting(
        DURATION,
        "5s",
        low="100ms",
        high="10m",
        scope=SettingScope.POOL,
        meaning="How often a process says that it is there.",
    )
    process_lost_s: float = setting(
        DURATION,
        "30s",
        low="1s",
        high="1h",
        scope=SettingScope.POOL,
        meaning="A process silent for longer is counted as lost.",
    )
    process_keep_s: float = setting(
        DURATION,
        "30d",
        low="1h",
        high="3650d",
        scope=SettingScope.POOL,
        meaning="How long a process that is gone is listed.",
    )


@dataclass(frozen=True)
class EventsSettings:
    """Reading the event log."""

    keep_in_memory: int = setting(
        INTEGER, 10_000, unit="events", low=1, high=10_000_000, meaning="The latest events kept for live views."
    )
    batch_max: int = setting(
        INTEGER, 1000, unit="events", low=1, high=100_000, meaning="The most events read from the log at once."
    )


@dataclass(frozen=True)
class LogSettings:
    """What a process writes about its own work."""

    level: LogLevel = setting(choice(LogLevel), "info", meaning="The least important line that is written.")
    format: LogFormat = setting(
        choice(LogFormat), "auto", meaning="How lines look; `auto` is `console` on a terminal and `json` elsewhere."
    )


@dataclass(frozen=True)
class TracingSettings:
    """OpenTelemetry traces."""

    endpoint: str | None = optional(WEB_URL, meaning="Where traces are sent by OTLP over HTTP; not set sends none.")
    sample: float = setting(SHARE, "100%", meaning="The share of traces that are sent.")
