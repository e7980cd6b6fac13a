"""The addresses at which agents find a pool. Only a pool on the same machine may be reached without TLS."""

from ipaddress import ip_address
from urllib.parse import urlsplit

URLS_MAX = 8
_URL_MAX = 300


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; of names, only localhost is known to be such."""
    return ip_address(host).is_loopback if is_address(host) else host.lower() == "localhost"


def is_pool_url(url: str) -> bool:
    """Whether an agent may call there: a host and perhaps a path, no user, query or fragment."""
    if len(url) > _URL_MAX or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # reject impossible names now, not when an agent calls there
    except ValueError:
        return False
    if not host or parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def is_as_safe(url: str, as_url: str) -> bool:
    """Whether a pool that was reached at one address may send its agents to another: with TLS always, else only where
    there was none before. So no pool can make an agent call services on its own machine."""
    return url.startswith("https:") or not as_url.startswith("https:")
