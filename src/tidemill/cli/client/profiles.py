"""The profiles of this user: whom commands may act as.

A login keeps one under a name. Whoever can read the home of this machine's pool has more without any login: the people
of a demonstration, and the token of the home, which stands for the operator and for no account. Those are found in the
home, and never copied.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from tidemill.cli.client.credentials import (
    CredentialsFile,
    StoredTokens,
    credentials_folder,
    locked,
    stored_sessions,
    write_private,
)
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.accounts.roles import OPERATOR_FILE, Role
from tidemill.core.operations.demonstration import CUSTOMER, PEOPLE, address_of, key_file

HOME_PROFILE = "home"
_CURRENT = "current"
_NAME = re.compile(r"[a-z0-9][a-z0-9.@-]{0,99}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.@-]+")


class ProfileKind(StrEnum):
    """How a profile shows the pool who it is."""

    LOGIN = "login"
    KEY = "API key"
    DEMONSTRATION = "demonstration"
    HOME = "token of the home"


@dataclass(frozen=True)
class Profile:
    """Somebody at a pool. Without an address it is nobody's account, or one that we have not asked for yet."""

    name: str
    url: str
    kind: ProfileKind
    address: str = ""
    roles: tuple[str, ...] = ()
    session: tuple[CredentialsFile, StoredTokens] | None = field(default=None, repr=False)
    secret_file: Path | None = None

    @property
    def is_operator(self) -> bool:
        return Role.OPERATOR in self.roles


@dataclass(frozen=True)
class OwnPool:
    """This machine's pool: its home, its addresses, and whether it can be asked."""

    home: Path
    urls: tuple[str, ...]
    is_running: bool

    @property
    def is_demonstration(self) -> bool:
        return os.access(key_file(self.home, CUSTOMER), os.R_OK)


def kept_profiles() -> list[Profile]:
    """The profiles that logins have kept. Those from before there were names are called after their addresses."""
    sessions = stored_sessions(credentials_folder())
    taken = {tokens.name for _, tokens in sessions} - {""}
    profiles = []
    for credentials, tokens in sessions:
        name = tokens.name or free_name(tokens.address, tokens.url, taken)
        taken.add(name)
        roles = tuple(tokens.roles.split())
        profiles.append(
            Profile(name, tokens.url, ProfileKind.LOGIN, tokens.address, roles, session=(credentials, tokens))
        )
    return profiles


def profiles_of_home(own: OwnPool) -> list[Profile]:
    """Whom the home of this machine's pool lets us act as, because we can read its secrets."""
    url, found = own.urls[0], []
    for name, role in PEOPLE.items():
        if os.access(file := key_file(own.home, name), os.R_OK):
            found.append(
                Profile(name, url, ProfileKind.DEMONSTRATION, address_of(name), (role.value,), secret_file=file)
            )
    if os.access(file := own.home / OPERATOR_FILE, os.R_OK):
        found.append(Profile(HOME_PROFILE, url, ProfileKind.HOME, roles=(Role.OPERATOR.value,), secret_file=file))
    return found


def free_name(address: str, url: str, taken: Iterable[str]) -> str:
    """A name for a new profile: what stands before the @; with the pool's host, if another profile is called so."""
    used = {*taken, HOME_PROFILE}
    first = _NOT_IN_NAMES.sub("-", address.partition("@")[0].lower()).strip("-.@") or "me"
    host = _NOT_IN_NAMES.sub("-", urlsplit(url).netloc.lower()).strip("-")
    full = f"{_NOT_IN_NAMES.sub('-', address.lower()).strip('-.@') or first}@{host}"
    names = (first, f"{first}@{host}", full, *(f"{full}-{number}" for number in range(2, 1000)))
    return next(name[:100] for name in names if name[:100] not in used)


def checked_name(name: str) -> str:
    """A name that somebody has chosen for a profile."""
    if not _NAME.fullmatch(name) or name == HOME_PROFILE:
        raise CommandRefused(
            f"A profile is called with small letters, digits and . @ -, and not `{HOME_PROFILE}`: choose such a name."
        )
    return name


def current_of(profiles: Iterable[Profile]) -> Profile | None:
    """The profile that was chosen last, by logging in or by `tidemill profiles use`."""
    return next((one for one in profiles if (one.name, one.url) == _chosen_last()), None)


def ended_current(profiles: Iterable[Profile]) -> tuple[str, str] | None:
    """Name and pool of the profile that was chosen last, if it is no more: nobody takes its place unasked."""
    chosen = _chosen_last()
    return chosen if chosen and all((one.name, one.url) != chosen for one in profiles) else None


def _chosen_last() -> tuple[str, str] | None:
    try:
        chosen = json.loads((credentials_folder() / _CURRENT).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return (str(chosen.get("name")), str(chosen.get("url"))) if isinstance(chosen, Mapping) else None


def use_from_now(profile: Profile) -> None:
    with locked(credentials_folder(), _CURRENT):
        write_private(credentials_folder() / _CURRENT, json.dumps({"name": profile.name, "url": profile.url}) + "\n")
