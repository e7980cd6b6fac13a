"""All settings in one frozen object, and what holds for every one of them.

Inside, a value is found by its field; outside, a setting by its name. The two differ only where a field's name carries
a unit that nobody writes: `stake.small_uc` inside, in micro-credits, is `stake.small` outside, in credits.
"""

# setting() and the like make a field, as dataclasses.field does

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tidemill.core.settings.definition import (
    OF_POOL,
    OF_PROCESS,
    Definition,
    SettingScope,
    definitions,
    optional,
    required,
    sections_of,
    setting,
)
from tidemill.core.settings.kinds.quantities import INTEGER
from tidemill.core.settings.kinds.texts import DATABASE_URL, HOST, PATH
from tidemill.core.settings.sections.agent import AgentSettings
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.edge import AccountsSettings, HttpSettings, LimitsSettings, LoginSettings
from tidemill.core.settings.sections.mail import MailSettings
from tidemill.core.settings.sections.market import MarketSettings
from tidemill.core.settings.sections.money import BonusFundSettings, MoneySettings, NvlinkSettings, PlansSettings
from tidemill.core.settings.sections.process import (
    ClockSettings,
    DatabaseSettings,
    EventsSettings,
    LogSettings,
    LoopsSettings,
    TracingSettings,
)
from tidemill.core.settings.sections.secrets import SecretsSettings
from tidemill.core.settings.sections.telemetry import TelemetrySettings
from tidemill.core.settings.sections.trail import TrailSettings
from tidemill.core.settings.sections.trust import (
    AuditSettings,
    NewcomersSettings,
    ReputationSettings,
    VerificationSettings,
)
from tidemill.core.settings.sections.work import (
    ContainersSettings,
    FastPolicySettings,
    JobsSettings,
    LinkSettings,
    NodesSettings,
    SchedulingSettings,
    ValuePolicySettings,
)


@dataclass(frozen=True)
class Settings:
    """Where the process lives and listens, and which database it uses."""

    home: Path = required(PATH, meaning="The directory of everything this machine keeps.")
    host: str = setting(HOST, "127.0.0.1", meaning="The address the process listens on.")
    port: int = setting(INTEGER, 8420, unit="port", low=1, high=65535, meaning="The port the process listens on.")
    database_url: str | None = optional(
        DATABASE_URL, meaning="The PostgreSQL server to use; not set uses the embedded one."
    )
    database_owner_url: str | None = optional(
        DATABASE_URL,
        follows="database_url",
        meaning="The same server, as the role that owns the schema; not set uses `database_url`.",
    )
    http: HttpSettings = field(default_factory=HttpSettings, metadata=OF_PROCESS)
    database: DatabaseSettings = field(default_factory=DatabaseSettings, metadata=OF_PROCESS)
    clock: ClockSettings = field(default_factory=ClockSettings, metadata=OF_PROCESS)
    loops: LoopsSettings = field(default_factory=LoopsSettings, metadata=OF_PROCESS)
    events: EventsSettings = field(default_factory=EventsSettings, metadata=OF_PROCESS)
    log: LogSettings = field(default_factory=LogSettings, metadata=OF_PROCESS)
    tracing: TracingSettings = field(default_factory=TracingSettings, metadata=OF_PROCESS)
    secrets: SecretsSettings = field(default_factory=SecretsSettings, metadata=OF_PROCESS)
    agent: AgentSettings = field(default_factory=AgentSettings, metadata=OF_PROCESS)
    accounts: AccountsSettings = field(default_factory=AccountsSettings, metadata=OF_POOL)
    login: LoginSettings = field(default_factory=LoginSettings, metadata=OF_POOL)
    limits: LimitsSettings = field(default_factory=LimitsSettings, metadata=OF_POOL)
    trail: TrailSettings = field(default_factory=TrailSettings, metadata=OF_POOL)
    mail: MailSettings = field(default_factory=MailSettings, metadata=OF_POOL)
    money: MoneySettings = field(default_factory=MoneySettings, metadata=OF_POOL)
    bonus_fund: BonusFundSettings = field(default_factory=BonusFundSettings, metadata=OF_POOL)
    plans: PlansSettings = field(default_factory=PlansSettings, metadata=OF_POOL)
    nvlink: NvlinkSettings = field(default_factory=NvlinkSettings, metadata=OF_POOL)
    market: MarketSettings = field(default_factory=MarketSettings, metadata=OF_POOL)
    reputation: ReputationSettings = field(default_factory=ReputationSettings, metadata=OF_POOL)
    newcomers: NewcomersSettings = field(default_factory=NewcomersSettings, metadata=OF_POOL)
    audit: AuditSettings = field(default_factory=AuditSettings, metadata=OF_POOL)
    verification: VerificationSettings = field(default_factory=VerificationSettings, metadata=OF_POOL)
    scheduling: SchedulingSettings = field(default_factory=SchedulingSettings, metadata=OF_POOL)
    value_policy: ValuePolicySettings = field(default_factory=ValuePolicySettings, metadata=OF_POOL)
    fast_policy: FastPolicySettings = field(default_factory=FastPolicySettings, metadata=OF_POOL)
    jobs: JobsSettings = field(default_factory=JobsSettings, metadata=OF_POOL)
    link: LinkSettings = field(default_factory=LinkSettings, metadata=OF_POOL)
    nodes: NodesSettings = field(default_factory=NodesSettings, metadata=OF_POOL)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings, metadata=OF_POOL)
    challenge: ChallengeSettings = field(default_factory=ChallengeSettings, metadata=OF_POOL)
    containers: ContainersSettings = field(default_factory=ContainersSettings, metadata=OF_POOL)
    artefacts: ArtefactsSettings = field(default_factory=ArtefactsSettings, metadata=OF_POOL)


@cache
def catalogue() -> Sequence[Definition]:
    """Every setting, in the order of the reference."""
    return tuple(definitions(Settings))


@cache
def by_name() -> Mapping[str, Definition]:
    return MappingProxyType({definition.name: definition for definition in catalogue()})


@cache
def sections() -> Mapping[str, type]:
    """The class of each section, by its name."""
    return MappingProxyType(sections_of(Settings))


def value_of(settings: Settings, definition: Definition) -> object:
    """The value inside, in the unit of its field."""
    holder = getattr(settings, definition.section) if definition.section else settings
    return getattr(holder, definition.attribute)


def assemble(values: Mapping[str, object]) -> Settings:
    """The object with these values, by the settings' names; absent ones have their defaults."""
    top: dict[str, object] = {}
    inner: dict[str, dict[str, object]] = {name: {} for name in sections()}
    for name, value in values.items():
        definition = by_name()[name]
        (inner[definition.section] if definition.section else top)[definition.attribute] = value
    section_values = {name: table(**inner[name]) for name, table in sections().items()}
    return Settings(**top, **section_values)  # type: ignore[arg-type]  # each value was read by its own field's kind


def pool_fingerprint(settings: Settings) -> str:
    """SHA-256 over the values that all processes of a pool must share. Secrets are not part of it."""
    agreed = {d.name: d.kind.show(value_of(settings, d)) for d in catalogue() if d.scope is SettingScope.POOL}
    return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()
