"""How many links a process takes, and how often their agents beat."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkRules:
    """Of the connections open at once some are still shaking hands; few of those may come from one address."""

    beat_ms: int
    connections_max: int = 20_000
    shaking_max: int = 2_000
    shaking_from_one_address_max: int = 64
    trusted_proxies: tuple[str, ...] = ()
