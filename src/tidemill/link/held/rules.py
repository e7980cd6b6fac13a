"""How many links a process takes, and how often their agents beat."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinkRules:
    """The most connections at once; of these, how many may be shaking hands, in all and from one address."""

    beat_ms: int
    connections_max: int = 20_000
    shaking_max: int = 2_000
    shaking_from_one_address_max: int = 64
    trusted_proxies: tuple[str, ...] = ()
