"""What a command works with: the settings, and the database of the pool they name.

A command that asks over HTTP needs only the settings, so the store is imported where the database is used.
"""

import os
import pwd
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.cli.client.identity import AS_VARIABLE, KEY_VARIABLE, URL_VARIABLE, named_url
from tidemill.cli.terminal.as_option import named_by_option
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.faults import NotRunning, SettingsFault
from tidemill.core.settings import CONFIG_VARIABLE, Settings, SourcedSettings, build
from tidemill.core.settings.process_addresses import own_address, public_url
from tidemill.host.standard_error import say

if TYPE_CHECKING:
    from tidemill.store.address import DatabaseUrls
    from tidemill.store.embedded import EmbeddedServer
    from tidemill.store.query import Connection

_NOTHING: Mapping[str, object] = {}


def load_configuration(overrides: Mapping[str, object] = _NOTHING) -> SourcedSettings:
    """The settings of this process, from the file, the environment and the flags."""
    home = default_home()
    named = os.environ.get(CONFIG_VARIABLE)
    file = Path(named) if named else named_home() / "tidemill.toml"
    return build(
        toml=_read(file, required=bool(named)),
        toml_name=str(file),
        environment=os.environ,
        home=home,
        overrides={name: value for name, value in overrides.items() if value is not None},
        reserved=(URL_VARIABLE, KEY_VARIABLE, AS_VARIABLE),
    )


def named_home() -> Path:
    """The home that the environment names, or the usual one: where the file of settings is looked for."""
    return Path(os.environ.get("TIDEMILL_HOME") or default_home())


def home_settings(overrides: Mapping[str, object] = _NOTHING) -> Settings:
    """The settings of a command that works in the home of this machine's pool, as the user who runs it."""
    settings = load_configuration(overrides).settings
    refuse_elsewhere(settings)
    return settings


def operator_name() -> str:
    """Who runs the command. Not from the environment: a user who could choose the name could act as two operators."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def default_home() -> Path:
    """Root's own home is closed to the server's user, so root's pool lives where services keep their state."""
    if os.geteuid() == 0:
        return Path("/var/lib/tidemill")
    import platformdirs

    return platformdirs.user_data_path("tidemill", appauthor=False)


def server_of(settings: Settings, report: Callable[[str], None] = say) -> "EmbeddedServer":
    from tidemill.store.embedded import EmbeddedServer

    return EmbeddedServer(settings.home, server_user=settings.database.server_user, report=report)


def outside_urls(settings: Settings) -> "DatabaseUrls | None":
    """The URLs of an outside server, if one is set."""
    if settings.database_url is None:
        return None
    from tidemill.store.address import DatabaseUrls

    return DatabaseUrls(settings.database_url, settings.database_owner_url or settings.database_url)


def refuse_elsewhere(settings: Settings) -> None:
    """For commands that work on the home or the database of this machine's pool, as the user who runs them: refuse to
    ignore somebody else or another pool that the user has named."""
    if (name := named_by_option()) is not None:
        raise CommandRefused(
            f"This works on the pool in {settings.home} itself, as the user of this machine who runs it: leave out "
            f"`--as {name}`."
        )
    if (url := named_url()) not in (None, own_address(settings), public_url(settings)):
        raise CommandRefused(
            f"{URL_VARIABLE} names {url}, but this works only on the pool in {settings.home}: unset {URL_VARIABLE}, or "
            "run this on that pool's own machine."
        )


def running_urls(settings: Settings) -> "DatabaseUrls":
    """The database of a pool that is up; a fault if it is not."""
    refuse_elsewhere(settings)
    return own_urls(settings)


def own_urls(settings: Settings) -> "DatabaseUrls":
    """As `running_urls`, for a part of a command that acts as somebody at this machine's own pool."""
    from tidemill.store.embedded import attach

    return outside_urls(settings) or attach(settings.home)


@asynccontextmanager
async def database_urls(settings: Settings) -> "AsyncIterator[DatabaseUrls]":
    """The pool's database. An embedded server that is down is started for the length of one command.

    Only `tidemill up` and `tidemill db restore` make a database: a command that reads finds one, or says that there is
    none."""
    from tidemill.store.embedded import has_cluster

    try:
        urls = running_urls(settings)
    except NotRunning:
        if not has_cluster(settings.home):
            raise NotRunning(
                f"There is no pool in {settings.home}: start one with `tidemill up`, or name its home in TIDEMILL_HOME."
            ) from None
        server = server_of(settings)
        await server.start()
        try:
            yield server.urls
        finally:
            await server.stop()
    else:
        yield urls


@asynccontextmanager
async def connected(url: str) -> "AsyncIterator[Connection]":
    from tidemill.store.database import connect

    connection = await connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def _read(file: Path, *, required: bool) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if required:
            raise SettingsFault(f"{file}, named by {CONFIG_VARIABLE}, does not exist.") from None
        return {}
    except (OSError, ValueError) as error:
        raise SettingsFault(f"{file} cannot be read: {error}") from error
