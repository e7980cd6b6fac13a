"""Proxies whose word about a caller is believed."""

from collections.abc import Iterable
from ipaddress import ip_address, ip_network


class TrustedProxies:
    """Networks of proxies. `address in proxies` says whether one of them calls."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ip_network(network) for network in networks]

    def __contains__(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)
