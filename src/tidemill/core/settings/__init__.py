"""Every number and name that an operator may change, each defined once, in one frozen object built once.

The caller brings the TOML file's content, the environment and the flags; nothing here reads them by itself.
"""

from tidemill.core.settings.building import Built, build
from tidemill.core.settings.checks import is_loopback
from tidemill.core.settings.definition import PREFIX, Definition, Scope
from tidemill.core.settings.edge import HttpSettings, LimitsSettings, LoginSettings
from tidemill.core.settings.layers import CONFIG_VARIABLE, Place, Source
from tidemill.core.settings.money import (
    BonusFundSettings,
    ContributionSettings,
    EpochsSettings,
    IssuanceSettings,
    MoneySettings,
    NvlinkSettings,
    OffersSettings,
    PlansSettings,
    QualitySettings,
    StakeSettings,
)
from tidemill.core.settings.process import (
    ClockSettings,
    DatabaseSettings,
    EventsSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    LoopsSettings,
    TracingSettings,
)
from tidemill.core.settings.showing import Row, reference, rows
from tidemill.core.settings.tree import Settings, catalogue, pool_fingerprint
from tidemill.core.settings.trust import (
    AuditSettings,
    DisputesSettings,
    ExposureSettings,
    FindingsSettings,
    NewcomersSettings,
    ReputationSettings,
    VerificationSettings,
)
from tidemill.core.settings.work import (
    ContainersSettings,
    FastPolicySettings,
    HeadsSettings,
    JobsSettings,
    LinkSettings,
    NodesSettings,
    Policy,
    SchedulingSettings,
    TrainingSettings,
    ValuePolicySettings,
)

__all__ = [
    "CONFIG_VARIABLE",
    "PREFIX",
    "AuditSettings",
    "BonusFundSettings",
    "Built",
    "ClockSettings",
    "ContainersSettings",
    "ContributionSettings",
    "DatabaseSettings",
    "Definition",
    "DisputesSettings",
    "EpochsSettings",
    "EventsSettings",
    "ExposureSettings",
    "FastPolicySettings",
    "FindingsSettings",
    "HeadsSettings",
    "HttpSettings",
    "IssuanceSettings",
    "JobsSettings",
    "LimitsSettings",
    "LinkSettings",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "LoginSettings",
    "LoopsSettings",
    "MoneySettings",
    "NewcomersSettings",
    "NodesSettings",
    "NvlinkSettings",
    "OffersSettings",
    "Place",
    "PlansSettings",
    "Policy",
    "QualitySettings",
    "ReputationSettings",
    "Row",
    "SchedulingSettings",
    "Scope",
    "Settings",
    "Source",
    "StakeSettings",
    "TracingSettings",
    "TrainingSettings",
    "ValuePolicySettings",
    "VerificationSettings",
    "build",
    "catalogue",
    "is_loopback",
    "pool_fingerprint",
    "reference",
    "rows",
]
