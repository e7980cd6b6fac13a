"""Conditions between settings.

Each check is a sentence that says what must hold, and why where that is not obvious. A check runs only when every
setting it names could be read, so one mistake is reported once.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from typing import Any
from urllib.parse import urlsplit

from tidemill.core.nodes.pool_urls import is_loopback
from tidemill.core.settings.kinds.kind import shown
from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.settings.layers import SettingSource
from tidemill.core.settings.tree import Settings, by_name, value_of


@dataclass(frozen=True)
class SettingsCheck:
    """A rule over the values of some settings, given in the order of their names."""

    names: tuple[str, ...]
    is_met: Callable[..., bool]
    sentence: str


def rising(*names: str) -> SettingsCheck:
    """Each at most the next."""
    sentence = f"{names[0]} must be at most {', which must be at most '.join(names[1:])}"
    return SettingsCheck(names, lambda *values: all(low <= high for low, high in pairwise(values)), sentence)


def longer(longer_name: str, shorter_name: str, why: str) -> SettingsCheck:
    sentence = f"{longer_name} must be longer than {shorter_name}, {why}"
    return SettingsCheck((longer_name, shorter_name), lambda long, short: long > short, sentence)


def sum_to_one(*names: str) -> SettingsCheck:
    sentence = f"{', '.join(names[:-1])} and {names[-1]} must sum to 100%"
    return SettingsCheck(names, _is_one, sentence)


def _is_one(*parts: float) -> bool:
    # Shares of money are integers in parts per million and must sum exactly.
    if all(isinstance(part, int) for part in parts):
        return sum(parts) == ONE_PPM
    return isclose(sum(parts), 1, abs_tol=1e-9)


def _is_guarded(host: str, certificate: object, proxies: Collection[str]) -> bool:
    return is_loopback(host) or certificate is not None or bool(proxies)


def _is_private(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


CHECKS = (
    SettingsCheck(
        ("host", "http.tls_certificate", "http.trusted_proxies"),
        _is_guarded,
        "Listening beyond this machine needs TLS: set http.tls_certificate and http.tls_key, "
        "or name the proxies that bring TLS in http.trusted_proxies (--behind-proxy), or keep host at 127.0.0.1",
    ),
    SettingsCheck(
        ("http.tls_certificate", "http.tls_key"),
        lambda certificate, key: (certificate is None) == (key is None),
        "http.tls_certificate and http.tls_key must be set together",
    ),
    SettingsCheck(
        ("database_url", "database_owner_url"),
        lambda program, owner: program is not None or owner is None,
        "database_owner_url needs database_url, the URL of the program's own role",
    ),
    SettingsCheck(
        ("secrets.master_key", "secrets.master_key_command", "secrets.master_key_file"),
        lambda *sources: sum(source is not None for source in sources) <= 1,
        "Only one of secrets.master_key, secrets.master_key_command and secrets.master_key_file may be set",
    ),
    SettingsCheck(
        ("mail.smtp_host", "mail.sender"),
        lambda host, sender: host is None or sender is not None,
        "mail.smtp_host needs mail.sender, the address that letters come from",
    ),
    SettingsCheck(
        ("mail.smtp_username", "mail.smtp_password"),
        lambda username, password: (username is None) == (password is None),
        "mail.smtp_username and mail.smtp_password must be set together",
    ),
    SettingsCheck(
        ("mail.smtp_tls", "mail.smtp_host", "mail.smtp_plain_allowed"),
        lambda tls, host, plain: tls != "none" or host is None or is_loopback(host) or plain,
        "Letters leave this machine only inside TLS: set mail.smtp_tls to starttls or tls, "
        "or say mail.smtp_plain_allowed = true if the network between is your own",
    ),
    SettingsCheck(
        ("artefacts.s3_endpoint", "artefacts.s3_bucket", "artefacts.s3_access_key", "artefacts.s3_secret_key"),
        lambda *parts: len({part is None for part in parts}) == 1,
        "artefacts.s3_endpoint, artefacts.s3_bucket, artefacts.s3_access_key and artefacts.s3_secret_key must be set "
        "together",
    ),
    SettingsCheck(
        ("artefacts.s3_endpoint", "artefacts.s3_plain_allowed"),
        lambda endpoint, plain: endpoint is None or _is_private(endpoint) or plain,
        "Artefacts leave this machine only inside TLS: let artefacts.s3_endpoint begin with https://, "
        "or say artefacts.s3_plain_allowed = true if the network between is your own",
    ),
    SettingsCheck(
        ("database.backups_enabled", "database.backup_keep_daily", "database.backup_keep_weekly"),
        lambda enabled, daily, weekly: not enabled or daily + weekly > 0,
        "With backups on, database.backup_keep_daily or database.backup_keep_weekly must keep at least one",
    ),
    SettingsCheck(
        ("money.burn", "bonus_fund.commission"),
        lambda burn, fund: burn + fund <= ONE_PPM,
        "money.burn and bonus_fund.commission are both taken from the commission and must be at most 100% together",
    ),
    SettingsCheck(
        ("money.commission", "money.self_trade_loss"),
        lambda commission, loss: (ONE_PPM + commission) * (ONE_PPM - loss) >= ONE_PPM**2,
        "money.commission must cover money.self_trade_loss, so that a provider can receive the price they set",
    ),
    SettingsCheck(
        ("http.connections_max", "http.connections_reserved"),
        lambda most, reserved: reserved < most,
        "http.connections_reserved must be less than http.connections_max, so that customers are served, too",
    ),
    SettingsCheck(
        ("http.body_memory_bytes", "http.body_memory_share", "http.body_limit_bytes"),
        lambda memory, share, limit: memory * share >= limit,
        "http.body_memory_share of http.body_memory_bytes must be at least http.body_limit_bytes, so that the largest "
        "body has room",
    ),
    longer("link.offline_after_s", "link.heartbeat_s", "so that a node that reports in time is online"),
    longer("loops.process_lost_s", "loops.process_heartbeat_s", "so that a process that reports in time is not lost"),
    rising("http.page_limit_default", "http.page_limit_max"),
    rising("artefacts.free_bytes", "artefacts.quota_bytes"),
    rising("database.lock_timeout_s", "database.statement_timeout_s"),
    rising("loops.backoff_first_s", "loops.backoff_most_s"),
    rising("mail.retry_first_s", "mail.retry_most_s"),
    rising("mail.outbox_keep_s", "mail.keep_s"),
    rising("events.batch_max", "events.keep_in_memory"),
    rising("nvlink.without", "nvlink.low", "nvlink.high"),
    rising("value_policy.price_ratio_low", "value_policy.price_ratio_high"),
    rising("nodes.resume_at_c", "nodes.pause_above_c"),
    rising("jobs.light_devices_max", "jobs.medium_devices_max", "jobs.heavy_devices_max"),
    sum_to_one(
        "value_policy.reputation_weight",
        "value_policy.success_weight",
        "value_policy.price_weight",
        "value_policy.nvlink_weight",
    ),
    sum_to_one(
        "fast_policy.latency_weight",
        "fast_policy.load_weight",
        "fast_policy.capability_weight",
        "fast_policy.cost_weight",
    ),
)


def broken(settings: Settings, sources: Mapping[str, SettingSource], doubtful: Collection[str]) -> Iterator[str]:
    """A sentence for each check that fails and names no setting in doubt."""
    for check in CHECKS:
        values: list[Any] = [value_of(settings, by_name()[name]) for name in check.names]
        if not set(check.names) & set(doubtful) and not check.is_met(*values):
            definitions = [by_name()[name] for name in check.names]
            now = (
                f"{d.name} is {shown(d.kind, value)} ({sources[d.name]})"
                for d, value in zip(definitions, values, strict=True)
            )
            yield f"{check.sentence}; now {', '.join(now)}."
