"""A database URL carries any role, password and path unharmed, and never shows its password to other users."""

import pytest
from asyncpg.connect_utils import _parse_connect_dsn_and_args
from hypothesis import given
from hypothesis import strategies as st

from tidemill.store.address import role_of, socket_url, tool_arguments

ODD = ["plain", "with space", "p@ss:w/rd?#&=%+", "quo'te\"d", "日本ü", "%41", "a=b&host=evil", "[::1]"]
# What PostgreSQL can hold: no NUL, and UTF-8.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


# A comma separates hosts, whatever its encoding; the embedded server never has one in its socket's directory.
directories = texts.map(lambda text: ("/run" + text.replace(",", "")).rstrip("/"))


@given(directory=directories, role=texts, password=texts, database=texts)
def test_a_url_gives_back_what_it_was_made_of(directory: str, role: str, password: str, database: str) -> None:
    assert _as_asyncpg_reads(socket_url(directory, role, password, database)) == (directory, role, password, database)


@pytest.mark.parametrize("odd", ODD)
def test_a_tool_gets_the_password_in_its_environment_and_nowhere_else(odd: str) -> None:
    url, environment = tool_arguments(socket_url("/run/a b", "tidemill_owner", "secret" + odd, odd))
    assert environment == {"PGPASSWORD": "secret" + odd}
    assert "secret" not in url
    assert _as_asyncpg_reads(url) == ("/run/a b", "tidemill_owner", None, odd)


def test_a_password_among_the_parameters_is_hidden_too() -> None:
    url, environment = tool_arguments("postgresql://me@example.org:6000/pool?sslmode=require&password=secret")
    assert url == "postgresql://me@example.org:6000/pool?sslmode=require"
    assert environment == {"PGPASSWORD": "secret"}


def test_a_url_without_a_password_sets_none() -> None:
    assert tool_arguments("postgresql://me@/pool?host=%2Frun") == ("postgresql://me@/pool?host=%2Frun", {})


@pytest.mark.parametrize("odd", ODD)
def test_the_role_is_read_from_either_place(odd: str) -> None:
    assert role_of(socket_url("/run", odd, "x", "pool")) == odd
    assert role_of("postgresql:///pool?host=/run&user=me") == "me"


def _as_asyncpg_reads(url: str) -> tuple[str, str, str | None, str]:
    addresses, parameters = _parse_connect_dsn_and_args(
        dsn=url,
        host=None,
        port=None,
        user=None,
        password=None,
        passfile=None,
        database=None,
        ssl=None,
        service=None,
        servicefile=None,
        direct_tls=None,
        server_settings=None,
        target_session_attrs=None,
        krbsrvname=None,
        gsslib=None,
    )
    directory = addresses[0].removesuffix("/.s.PGSQL.5432")
    return directory, parameters.user, parameters.password, parameters.database
