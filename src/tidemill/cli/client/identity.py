"""Who a command acts as, and at which pool. One rule, the same for every command that asks a pool:

1. `--as NAME`, or TIDEMILL_AS, names a profile, and so its pool.
2. Else TIDEMILL_API_KEY, at the pool that TIDEMILL_URL names, or at this machine's.
3. Else, at the pool that TIDEMILL_URL names, the profile of a login there.
4. Else the current profile: that of the last login, or of `tidemill profiles use`. Where it has ended, no other login
   takes its place: the command asks to choose one.
5. Else the only login there is, at this machine's pool first.
6. Else, where this machine's pool is a demonstration, its customer.
7. Else the operator, by the token in the home of this machine's pool.

Nobody acts as two people in one command, and no command chooses somebody because of what it asks: one that needs
another role is refused, and the refusal says which `--as` has it. What is named twice and differently is refused, too.
"""

import os
from collections.abc import Sequence

from tidemill.cli.client.http_calls import pool_address
from tidemill.cli.client.profiles import (
    OwnPool,
    Profile,
    ProfileKind,
    current_of,
    ended_current,
    kept_profiles,
    profiles_of_home,
)
from tidemill.cli.terminal.as_option import named_by_option
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.accounts.keys import looks_like_key
from tidemill.core.faults import NotRunning
from tidemill.core.operations.demonstration import CUSTOMER

URL_VARIABLE = "TIDEMILL_URL"
KEY_VARIABLE = "TIDEMILL_API_KEY"
AS_VARIABLE = "TIDEMILL_AS"
"""Variables that name the pool to ask over HTTP, the key to use instead of a login, and the profile to act as. They are
no settings."""


def named() -> str | None:
    return named_by_option() or os.environ.get(AS_VARIABLE, "").strip() or None


def named_url() -> str | None:
    """The pool that the environment names."""
    url = os.environ.get(URL_VARIABLE, "").strip()
    return pool_address(url) if url else None


def own_pool() -> OwnPool:
    from tidemill.cli.client.local_pool import load_configuration, outside_urls
    from tidemill.core.settings.process_addresses import own_address, public_url
    from tidemill.store.embedded import owner_pid

    settings = load_configuration().settings
    is_running = outside_urls(settings) is not None or owner_pid(settings.home) is not None
    return OwnPool(settings.home, (own_address(settings), public_url(settings)), is_running)


def all_profiles() -> list[Profile]:
    """Everybody that this user may act as here, logins first."""
    return [*kept_profiles(), *profiles_of_home(own_pool())]


def chosen() -> tuple[str, Profile | None]:
    """The pool that a command asks, and whom it acts as there; None if nobody is known there."""
    key, name, url = os.environ.get(KEY_VARIABLE, "").strip(), named(), named_url()
    if KEY_VARIABLE in os.environ and not key:
        raise CommandRefused(f"{KEY_VARIABLE} is empty: put an API key into it, or unset it.")
    if key and name:
        raise CommandRefused(f"{KEY_VARIABLE} and {name!r} both say who you are: unset {KEY_VARIABLE}, or name nobody.")
    if key:
        return _by_key(key, url)
    if name:
        called = profile_called(name)
        return called.url, called if called.secret_file is None else _running(called, own_pool())
    kept, own = kept_profiles(), own_pool()
    everybody = [*kept, *profiles_of_home(own)]
    _refuse_successors(kept, everybody, url)
    if url is not None:
        return url, _at(url, kept) or _of_home(own, url)
    current = current_of(everybody)
    profile = current or _at(own.urls[0], kept) or _demonstrated(own) or _only(kept)
    if profile is None:
        return own.urls[0], _of_home(own, own.urls[0])
    if profile.url not in own.urls and own.is_running and own.is_demonstration:
        raise CommandRefused(
            f"You are {profile.name} at {profile.url}, and a demonstration runs on this machine: say whom you mean "
            f"with `--as {profile.name}` or `--as {CUSTOMER}`, or set {AS_VARIABLE}."
        )
    return profile.url, _running(profile, own)


def _refuse_successors(kept: Sequence[Profile], everybody: Sequence[Profile], url: str | None) -> None:
    """Where the current profile has ended, no other login takes its place until somebody chooses one."""
    ended = ended_current(everybody)
    others = [profile.name for profile in kept if url in (None, profile.url)]
    if ended is None or not others or url not in (None, ended[1]):
        return
    raise CommandRefused(
        f"The profile {ended[0]} at {ended[1]} has ended: say who you are now with `tidemill profiles use NAME` or "
        f"`--as NAME` ({', '.join(others)}), or log in again with `tidemill login`."
    )


def _by_key(key: str, url: str | None) -> tuple[str, Profile]:
    if not looks_like_key(key):
        raise CommandRefused(
            f"{KEY_VARIABLE} does not hold an API key: it begins with tm_ and has 67 letters and digits."
        )
    url = url or own_pool().urls[0]
    return url, Profile(KEY_VARIABLE, url, ProfileKind.KEY)


def profile_called(name: str) -> Profile:
    """The profile of a name, whether its pool runs or not. Logins come first."""
    everybody, url = all_profiles(), named_url()
    same_name = [profile for profile in everybody if profile.name == name]
    if not same_name:
        known = ", ".join(dict.fromkeys(profile.name for profile in everybody))
        there = f"there are {known}" if known else "there is none yet, and `tidemill login` makes one"
        raise CommandRefused(f"There is no profile {name!r}: {there}.")
    matches = [profile for profile in same_name if url in (None, profile.url)]
    if not matches:
        raise CommandRefused(
            f"{name} is a profile at {same_name[0].url}, and {URL_VARIABLE} names {url}: unset {URL_VARIABLE}, "
            "or choose another profile."
        )
    if len({profile.url for profile in matches}) > 1:
        pools = " and ".join(profile.url for profile in matches)
        raise CommandRefused(f"{name} is at {pools}: set {URL_VARIABLE} to the one that you mean.")
    return matches[0]


def _at(url: str, kept: Sequence[Profile]) -> Profile | None:
    """The login at a pool: the only one, or the current one of several."""
    there = [profile for profile in kept if profile.url == url]
    if len(there) < 2:
        return there[0] if there else None
    if (current := current_of(there)) is not None:
        return current
    names = " or ".join(f"`--as {profile.name}`" for profile in there)
    raise CommandRefused(f"Several people are logged in at {url}: add {names}.")


def _only(kept: Sequence[Profile]) -> Profile | None:
    """The only login of all, wherever it is."""
    if len(kept) < 2:
        return kept[0] if kept else None
    known = ", ".join(f"{profile.name} at {profile.url}" for profile in kept)
    raise CommandRefused(
        f"You are logged in more than once: {known}. Choose with `--as NAME`, `tidemill profiles use NAME` or "
        f"{URL_VARIABLE}."
    )


def _demonstrated(own: OwnPool) -> Profile | None:
    return _of_home(own, own.urls[0]) if own.is_demonstration and own.is_running else None


def _of_home(own: OwnPool, url: str) -> Profile | None:
    """Who we are at this machine's pool without a login: a demonstration's customer, or the operator."""
    if url not in own.urls:
        return None
    found = {profile.name: profile for profile in profiles_of_home(own)}
    if not own.is_running and (found or not named_url()):
        raise _not_running(own)
    return found.get(CUSTOMER) or next(iter(found.values()), None)


def _running(profile: Profile, own: OwnPool) -> Profile:
    """The profile; a fault if it is of a home whose pool is down."""
    if profile.secret_file is not None and not own.is_running:
        raise _not_running(own)
    return profile


def _not_running(own: OwnPool) -> NotRunning:
    from tidemill.store.embedded import has_cluster

    if has_cluster(own.home) or profiles_of_home(own):
        return NotRunning("This pool is not running: start it with `tidemill up`.")
    return NotRunning(
        f"There is no pool in {own.home}: start one with `tidemill up`, or name its home in TIDEMILL_HOME."
    )
