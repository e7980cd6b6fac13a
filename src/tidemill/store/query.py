"""Queries: one `.sql` file each, with `:names` for parameters. Read and compiled once, at import.

A query knows nothing of transactions: the caller passes the connection it runs on.
"""

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import asyncpg

if TYPE_CHECKING:
    PlainConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    PlainConnection = asyncpg.Connection

_TOKEN = re.compile(
    r"""--[^\n]*          # a comment, left out
      | '(?:[^']|'')*'  # a string
      | ::              # a cast
      | :(?P<name>[a-z][a-z0-9_]*)
    """,
    re.VERBOSE,
)


class Connection(PlainConnection):
    """A connection that remembers which accounts its appended events concern, so that they can be told after the
    commit.

    Nothing that we do outlives its transaction, so a connection is reset only after a failure: that saves a round trip
    each time one is used.
    """

    _appended: list[UUID] | None = None
    _failed = False

    def itself(self) -> "Connection":
        """This connection itself: the pool hands out a stand-in, which becomes unusable when the connection is lost."""
        return self

    def mark_failed(self) -> None:
        self._failed = True

    def get_reset_query(self) -> str:
        """The statement that resets the connection before somebody else gets it."""
        failed, self._failed = self._failed, False
        return str(super().get_reset_query()) if failed else ""

    def mark_appended(self, accounts: Iterable[UUID]) -> None:
        self._appended = [*(self._appended or ()), *accounts]

    def take_appended(self) -> list[UUID] | None:
        """The accounts that the appended events concern; None if there were no events."""
        appended, self._appended = self._appended, None
        return appended


class Query:
    """One statement. `Query("jobs/task/make")` is `jobs/queries/task/make.sql`; without an area, the store's own."""

    def __init__(self, name: str) -> None:
        *area, thing, verb = name.split("/")
        text = files("tidemill.store").joinpath(*area, "queries", thing, f"{verb}.sql").read_text(encoding="utf-8")
        self.sql, self.names = compile_names(text)
        self._wanted = frozenset(self.names)

    async def rows(self, connection: Connection, **values: Any) -> list[asyncpg.Record]:
        return await connection.fetch(self.sql, *self._ordered(values))

    async def row(self, connection: Connection, **values: Any) -> asyncpg.Record | None:
        return await connection.fetchrow(self.sql, *self._ordered(values))

    async def run(self, connection: Connection, **values: Any) -> None:
        await connection.execute(self.sql, *self._ordered(values))

    def _ordered(self, values: dict[str, Any]) -> list[Any]:
        assert values.keys() == self._wanted, f"expected {self.names}, got {sorted(values)}"
        return [values[name] for name in self.names]


def compile_names(text: str) -> tuple[str, list[str]]:
    """Turn `:name` into `$1`, `$2`, … and return the name of each number. Comments are dropped."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return "" if match[0].startswith("--") else match[0]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _TOKEN.sub(number, text).strip(), names
