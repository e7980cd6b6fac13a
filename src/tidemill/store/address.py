"""How a database is reached: one URL for the program's role, one for the role that owns the schema."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit


@dataclass(frozen=True)
class DatabaseUrls:
    """`program` runs the pool and cannot change the schema; `owner` migrates, backs up and restores."""

    program: str
    owner: str


def socket_url(directory: str, role: str, password: str, database: str) -> str:
    """The URL of a database behind a Unix socket, understood by asyncpg and by PostgreSQL's own tools."""
    query = urlencode({"host": directory}, quote_via=quote)
    return f"postgresql://{quote(role, safe='')}:{quote(password, safe='')}@/{quote(database, safe='')}?{query}"


def tool_arguments(url: str) -> tuple[str, dict[str, str]]:
    """The URL without its password, and the environment that carries it: arguments are visible to every user."""
    parts = urlsplit(url)
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    password = dict(parse_qsl(parts.query)).get("password") or unquote(parts.password or "")
    user = quote(unquote(parts.username), safe="") + "@" if parts.username else ""
    host = parts.netloc.rpartition("@")[2]
    bare = urlunsplit(parts._replace(netloc=user + host, query=urlencode(query, quote_via=quote)))
    return bare, {"PGPASSWORD": password} if password else {}


def replace_database(url: str, database: str) -> str:
    """The same server and role, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(database, safe='')}"))


def role_of(url: str) -> str:
    """The role a URL logs in as."""
    parts = urlsplit(url)
    role = unquote(parts.username or dict(parse_qsl(parts.query)).get("user", ""))
    assert role, "a database URL without a role is refused when settings are built"
    return role
