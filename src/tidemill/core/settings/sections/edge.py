"""Settings of the pool's edge: HTTP, logging in, how often a key may call.

Every wait on a peer has a deadline and every size a limit, so no single peer can block a process.
"""

from dataclasses import dataclass
from pathlib import Path

from tidemill.core.accounts.roles import RolesByRequest
from tidemill.core.accounts.sessions import Binding
from tidemill.core.rate_limits import COUNT_MAX
from tidemill.core.settings.definition import SettingScope, optional, setting
from tidemill.core.settings.kinds.quantities import DURATION, INTEGER, SHARE, SIZE
from tidemill.core.settings.kinds.texts import NETWORKS, PATH, choice


@dataclass(frozen=True)
class HttpSettings:
    """The HTTP server of a control process."""

    tls_certificate: Path | None = optional(
        PATH, meaning="The file with the certificate chain, in PEM; needs `http.tls_key`."
    )
    tls_key: Path | None = optional(
        PATH, meaning="The file with the certificate's private key, in PEM; needs `http.tls_certificate`."
    )
    trusted_proxies: tuple[str, ...] = setting(
        NETWORKS, (), meaning="The proxies whose word about a caller's address and about TLS is believed."
    )
    header_deadline_s: float = setting(
        DURATION, "10s", low="100ms", high="10m", meaning="How long a caller may take to send a request's headers."
    )
    body_deadline_s: float = setting(
        DURATION, "60s", low="100ms", high="1h", meaning="How long a caller may take to send a request's whole body."
    )
    write_deadline_s: float = setting(
        DURATION, "30s", low="100ms", high="1h", meaning="How long a caller may leave an answer unread."
    )
    keep_alive_s: float = setting(
        DURATION, "15s", high="1h", meaning="How long an idle connection is kept for the next request."
    )
    body_limit_bytes: int = setting(
        SIZE,
        "1MiB",
        low="1KiB",
        high="1GiB",
        scope=SettingScope.POOL,
        meaning="The largest body of a request; uploads of artefacts have their own way.",
    )
    header_limit_bytes: int = setting(
        SIZE, "32KiB", low="1KiB", high="1MiB", meaning="The largest set of headers of a request."
    )
    body_memory_bytes: int = setting(
        SIZE,
        "256MiB",
        low="16MiB",
        high="1TiB",
        meaning="The most memory that bodies take while they are received, in all.",
    )
    body_memory_share: float = setting(
        SHARE,
        "12.5%",
        low="1%",
        high="50%",
        meaning="The share of the memory still free that bodies of one account, or of one address without credentials, "
        "may take.",
    )
    connections_max: int = setting(
        INTEGER,
        2000,
        unit="connections",
        low=1,
        high=1_000_000,
        meaning="The most connections open at once; when there are more, one that waits for its caller is closed.",
    )
    connections_per_caller_max: int = setting(
        INTEGER,
        100,
        unit="connections",
        low=1,
        high=1_000_000,
        meaning="The most connections of one address (of IPv6 a /64), or of one account once it is known.",
    )
    connections_reserved: int = setting(
        INTEGER,
        100,
        unit="connections",
        high=1_000_000,
        meaning="How many of `http.connections_max` only requests of operators may use, pages and probes aside.",
    )
    event_streams_max: int = setting(
        INTEGER,
        500,
        unit="streams",
        low=1,
        high=1_000_000,
        meaning="The most event streams open at once; operators are let in beyond it.",
    )
    event_streams_per_caller_max: int = setting(
        INTEGER,
        20,
        unit="streams",
        low=1,
        high=1_000_000,
        meaning="The most event streams of one account, or of one address without credentials; fewer when most streams "
        "are taken.",
    )
    drain_delay_s: float = setting(
        DURATION,
        "0s",
        high="10m",
        meaning="How long a stopping process still takes requests while /readyz says no, so that balancers turn away.",
    )
    drain_s: float = setting(
        DURATION, "20s", high="1h", meaning="How long a stopping process lets running requests finish."
    )
    page_limit_default: int = setting(
        INTEGER,
        50,
        unit="rows",
        low=1,
        scope=SettingScope.POOL,
        meaning="The rows of a list when a caller asks for none.",
    )
    page_limit_max: int = setting(
        INTEGER,
        500,
        unit="rows",
        low=1,
        high=10_000,
        scope=SettingScope.POOL,
        meaning="The most rows of a list at once.",
    )
    idempotency_keep_s: float = setting(
        DURATION,
        "7d",
        low="1h",
        high="366d",
        scope=SettingScope.POOL,
        meaning="How long the answer to an `Idempotency-Key` is kept.",
    )
    event_heartbeat_s: float = setting(
        DURATION, "15s", low="1s", high="5m", meaning="How often a quiet stream of events sends a comment line."
    )


@dataclass(frozen=True)
class AccountsSettings:
    """What people may do with their accounts by themselves."""

    roles_by_request: RolesByRequest = setting(
        choice(RolesByRequest),
        "both",
        meaning="The roles that people take on by themselves, at registration and later; operators give all others.",
    )


@dataclass(frozen=True)
class LoginSettings:
    """Logging in with a password, and what mail may confirm."""

    failures_max: int = setting(
        INTEGER, 5, unit="failures", low=1, high=100, meaning="So many failures lock an account for an address."
    )
    lock_s: float = setting(
        DURATION, "15m", low="1s", high="7d", meaning="How long an account stays locked for an address."
    )
    mail_token_s: float = setting(
        DURATION, "24h", low="1m", high="30d", meaning="How long the single-use link in a mail is good."
    )
    session_idle_s: float = setting(
        DURATION, "24h", low="1m", high="90d", meaning="A session ends after being idle for so long."
    )
    session_lifetime_s: float = setting(
        DURATION, "7d", low="1m", high="366d", meaning="A session ends after so long, however busy it is."
    )
    session_remembered_s: float = setting(
        DURATION, "30d", low="1m", high="366d", meaning="A session that asked to be remembered ends after so long."
    )
    session_binding: Binding = setting(
        choice(Binding),
        "warn",
        meaning="What happens when a session goes on from another browser or network: it ends, it is told, or nothing.",
    )
    access_token_s: float = setting(
        DURATION, "5m", low="10s", high="1h", meaning="How long an access token is good before it is refreshed."
    )
    signing_key_s: float = setting(
        DURATION, "30d", low="1h", high="366d", meaning="How often a new key signs the access tokens."
    )
    fresh_s: float = setting(
        DURATION, "10m", low="10s", high="24h", meaning="How long a typed password is good for what needs a fresh one."
    )
    failures_everywhere_max: int = setting(
        INTEGER,
        50,
        unit="failures",
        low=1,
        high=1_000_000,
        meaning="So many failures from all networks together let only networks in that the account was used from.",
    )
    hashes_at_once: int = setting(
        INTEGER, 2, unit="hashes", low=1, high=64, meaning="How many passwords a process checks at once, 19 MiB each."
    )
    hashes_waiting_max: int = setting(
        INTEGER, 50, unit="hashes", low=1, high=10_000, meaning="How many wait for that before callers are turned away."
    )
    history_keep_s: float = setting(
        DURATION, "90d", low="1d", high="3660d", meaning="How long tries to log in are kept for their account to see."
    )
    key_overlap_s: float = setting(
        DURATION, "24h", low="0s", high="90d", meaning="How long an API key that was rotated still works."
    )


@dataclass(frozen=True)
class LimitsSettings:
    """How often a caller may ask. What is not used is saved up, to one period's worth at the most."""

    data_centre_per_minute: int = setting(
        INTEGER,
        1000,
        unit="requests/min",
        low=1,
        high=COUNT_MAX,
        meaning="The requests a minute of a data centre's key.",
    )
    data_centre_account_per_minute: int = setting(
        INTEGER,
        5000,
        unit="requests/min",
        low=1,
        high=COUNT_MAX,
        meaning="The requests a minute of all keys of a data centre together.",
    )
    customer_per_minute: int = setting(
        INTEGER, 100, unit="requests/min", low=1, high=COUNT_MAX, meaning="The requests a minute of a customer's key."
    )
    operator_per_minute: int = setting(
        INTEGER, 3000, unit="requests/min", low=1, high=COUNT_MAX, meaning="The requests a minute of an operator's key."
    )
    account_per_minute: int = setting(
        INTEGER,
        600,
        unit="requests/min",
        low=1,
        high=COUNT_MAX,
        meaning="The requests a minute of one account: of all its keys and sessions together.",
    )
    orders_per_minute: int = setting(
        INTEGER,
        60,
        unit="orders/min",
        low=1,
        high=COUNT_MAX,
        meaning="The quotes and confirmations a minute of one account; each hundred tasks begun count as one.",
    )
    answers_kib_per_day: int = setting(
        INTEGER,
        16_384,
        unit="KiB/day",
        low=1_024,
        high=COUNT_MAX,
        meaning="How much of the answers to its Idempotency-Keys the pool keeps for one account a day.",
    )
    credentials_per_hour: int = setting(
        INTEGER,
        100,
        unit="credentials/h",
        low=1,
        high=COUNT_MAX,
        meaning="The API keys and join tokens that one account may make an hour.",
    )
    node_per_minute: int = setting(
        INTEGER,
        600,
        unit="requests/min",
        low=1,
        high=COUNT_MAX,
        meaning="The requests a minute of a node, for artefacts; what goes over its link does not count.",
    )
    stranger_per_minute: int = setting(
        INTEGER,
        300,
        unit="requests/min",
        low=1,
        high=COUNT_MAX,
        meaning="The requests a minute without credentials from one address; an IPv6 address counts with its /64.",
    )
    login_per_minute: int = setting(
        INTEGER, 5, unit="tries/min", low=1, high=COUNT_MAX, meaning="The login tries a minute of one address."
    )
    mail_per_hour: int = setting(
        INTEGER,
        5,
        unit="letters/h",
        low=1,
        high=COUNT_MAX,
        meaning="The letters a stranger may cause to one address an hour.",
    )
