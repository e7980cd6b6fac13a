"""Kinds of settings that are texts: names, paths, addresses, choices, yes or no.

A path is absolute, so that it means the same in every process. A URL's password is never shown.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from tidemill.core.nodes.pool_urls import URLS_MAX, is_address, is_pool_url
from tidemill.core.nodes.versions import is_version
from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue

E = TypeVar("E", bound=StrEnum)

MASK = "***"
SECRET_PARAMETERS = frozenset({"password", "sslpassword"})

_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def choice(options: type[E]) -> SettingKind[E]:
    """One of an enumeration's values."""

    def read(raw: object) -> E | UnreadableValue:
        return next((option for option in options if option.value == raw), UnreadableValue())

    return SettingKind("choice", "one of " + ", ".join(options), read, str)


def _read_switch(raw: object) -> bool | UnreadableValue:
    if isinstance(raw, str):
        return _SWITCH.get(raw.strip().lower(), UnreadableValue())
    return raw if isinstance(raw, bool) else UnreadableValue()


def _read_text(raw: object) -> str | UnreadableValue:
    if not isinstance(raw, str):
        return UnreadableValue()
    if not raw.strip():
        return UnreadableValue("that is empty")
    return raw.strip() if raw.strip().isprintable() else UnreadableValue("that has characters that cannot be printed")


def _read_path(raw: object) -> Path | UnreadableValue:
    text = _read_text(str(raw) if isinstance(raw, Path) else raw)
    if isinstance(text, UnreadableValue):
        return text
    return Path(text) if text.startswith("/") else UnreadableValue('write the full path, beginning with "/"')


def _read_host(raw: object) -> str | UnreadableValue:
    text = _read_text(raw)
    if isinstance(text, UnreadableValue) or is_address(text):
        return text
    # Four numbers that are no address are a typing mistake, not a name.
    is_name = _HOST_NAME.fullmatch(text) and not text.rpartition(".")[2].isdigit()
    return text if is_name else UnreadableValue()


def _read_version(raw: object) -> str | UnreadableValue:
    text = _read_text(raw)
    return text if isinstance(text, UnreadableValue) or is_version(text) else UnreadableValue()


def _items(raw: object) -> tuple[str, ...] | UnreadableValue:
    """The items of a list; the environment separates them with commas."""
    if isinstance(raw, str):
        raw = raw.split(",") if raw.strip() else ()
    if not isinstance(raw, list | tuple):
        return UnreadableValue()
    return tuple(item.strip() if isinstance(item, str) else "" for item in raw)


def _read_networks(raw: object) -> tuple[str, ...] | UnreadableValue:
    items = _items(raw)
    if isinstance(items, UnreadableValue):
        return items
    for item in items:
        try:
            network = ip_network(item)
        except ValueError:
            return UnreadableValue(f"{item[:60]!r} is no address, or a network with bits set beyond its mask")
        if network.prefixlen == 0:
            return UnreadableValue(f"{item!r} is everyone")
    return items


def _read_pool_urls(raw: object) -> tuple[str, ...] | UnreadableValue:
    items = _items(raw)
    if isinstance(items, UnreadableValue):
        return items
    if len(items) > URLS_MAX:
        return UnreadableValue(f"{URLS_MAX} addresses are the most")
    wrong = next((item for item in items if not is_pool_url(item)), None)
    return items if wrong is None else UnreadableValue(f"{wrong[:60]!r} is none; http:// is only for this machine")


def _split(raw: object) -> SplitResult | UnreadableValue:
    text = _read_text(raw)
    if isinstance(text, UnreadableValue):
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return UnreadableValue("that is no URL")
    # An "@" here usually ends a password with a bare "/", "?" or "#" in it: half of it would be shown.
    if "@" in parts.path + parts.query + parts.fragment:
        return UnreadableValue('special characters of a password are written percent-encoded, for example "/" as "%2F"')
    return parts


def _read_database_url(raw: object) -> str | UnreadableValue:
    parts = _split(raw)
    if isinstance(parts, UnreadableValue):
        return parts
    if parts.scheme != "postgresql":
        return UnreadableValue("it does not begin with postgresql://")
    has_user = parts.username or dict(parse_qsl(parts.query)).get("user")
    return str(raw).strip() if has_user else UnreadableValue("it names no user")


def _read_web_url(raw: object) -> str | UnreadableValue:
    parts = _split(raw)
    if isinstance(parts, UnreadableValue):
        return parts
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return UnreadableValue("it does not begin with http:// or https:// and a host")
    return str(raw).strip()


def _mask_database_url(url: str) -> str:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    query = [(key, MASK if key in SECRET_PARAMETERS else value) for key, value in parse_qsl(parts.query)]
    return _joined(parts, f"{user}{colon}{MASK if colon else ''}{at}{host}", query)


def _mask_web_url(url: str) -> str:
    """Services take tokens as user names and as parameters of any name, so none of them is shown."""
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    return _joined(parts, f"{MASK if login else ''}{at}{host}", [(key, MASK) for key, _ in parse_qsl(parts.query)])


def _joined(parts: SplitResult, netloc: str, query: list[tuple[str, str]]) -> str:
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, quote_via=quote, safe="*/")))


def _same(value: str) -> str:
    return value


_join: Callable[[tuple[str, ...]], str] = ",".join

SWITCH: SettingKind[bool] = SettingKind(
    "yes or no", "true or false", _read_switch, lambda value: str(value).lower(), spoken=False
)
TEXT: SettingKind[str] = SettingKind("text", "a text", _read_text, _same)
PATH: SettingKind[Path] = SettingKind("path", "a full path", _read_path, str)
HOST: SettingKind[str] = SettingKind("host", "an IP address or a host name", _read_host, _same)
VERSION: SettingKind[str] = SettingKind("version", "a version such as 0.1 or 1.2.3", _read_version, _same)
NETWORKS: SettingKind[tuple[str, ...]] = SettingKind(
    "networks",
    "a list of IP addresses or networks such as 10.0.0.0/8 (in the environment, with commas between them)",
    _read_networks,
    _join,
)
POOL_URLS: SettingKind[tuple[str, ...]] = SettingKind(
    "URLs",
    "a list of URLs such as https://pool.example.com (in the environment, with commas between them)",
    _read_pool_urls,
    _join,
)
DATABASE_URL: SettingKind[str] = SettingKind(
    "database URL",
    "a URL such as postgresql://user:password@host/database",
    _read_database_url,
    _same,
    mask=_mask_database_url,
)
WEB_URL: SettingKind[str] = SettingKind(
    "URL", "a URL such as https://host/path", _read_web_url, _same, mask=_mask_web_url
)
