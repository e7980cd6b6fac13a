"""Queries: one `.sql` file each, with `:names` for parameters and a declared type for its rows.

A query is read and compiled once, at import. It knows nothing of transactions: the caller passes the connection it runs
on. What is specific to PostgreSQL stays here:

- A row becomes the declared type: a named tuple or dataclass whose fields are the columns in their order, or one plain
  value. Fields of a named tuple that are looked up afterwards come last, and have defaults.
  `tests/store/test_queries.py` compares every declaration with what PostgreSQL answers.
- A parameter that the text casts by `::text::uuid[]` is a long column: it is sent as an array literal, because the
  driver's own arrays take eight times as long. The caller passes a sequence.
- `by_key` says that the query looks few rows of large tables up by their keys, whatever the planner believes.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property
from importlib.resources import files
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from uuid import UUID

import asyncpg

if TYPE_CHECKING:
    PlainConnection: TypeAlias = asyncpg.Connection[asyncpg.Record]
else:
    PlainConnection = asyncpg.Connection

Row = TypeVar("Row")

_TOKEN = re.compile(
    r"""--[^\n]*          # a comment, left out
      | '(?:[^']|'')*'  # a string
      | :(?P<name>[a-z][a-z0-9_]*)(?P<column>::text::[a-z]+\[\])?
      | ::              # a cast
    """,
    re.VERBOSE,
)


class Connection(PlainConnection):
    """A connection that remembers what its current transaction has done.

    It knows which accounts the appended events concern, so that they can be told after the commit. Nothing that we do
    outlives its transaction, so a connection is reset only after a failure: that saves a round trip each time one is
    used.
    """

    _appended: list[UUID] | None = None
    _finds_by_key = False
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

    def mark_begun(self) -> None:
        """A new transaction begins."""
        self._appended, self._finds_by_key = None, False

    def mark_appended(self, accounts: Iterable[UUID]) -> None:
        self._appended = [*(self._appended or ()), *accounts]

    def take_appended(self) -> list[UUID] | None:
        """The accounts that the appended events concern; None if there were no events."""
        appended, self._appended = self._appended, None
        return appended

    async def find_by_key(self) -> None:
        """Find rows by their keys until the transaction ends: its cost must not grow with the tables."""
        if not self._finds_by_key:
            assert self.is_in_transaction(), "how rows are found is changed for one transaction only"
            await _BY_KEY.run(self)
            self._finds_by_key = True


class Query(Generic[Row]):
    """One statement. `Query("jobs/task/make")` is `jobs/queries/task/make.sql`; without an area, the store's own."""

    declared: Final[list["Query[Any]"]] = []
    """Every query of the program, for the test that holds its declaration against the database."""

    @overload
    def __init__(self: "Query[Any]", name: str, *, by_key: bool = False) -> None: ...

    @overload
    def __init__(self, name: str, row: type[Row], *, by_key: bool = False) -> None: ...

    def __init__(self, name: str, row: type[Row] | None = None, *, by_key: bool = False) -> None:
        self.name, self.row_type, self.by_key = name, row, by_key
        *area, thing, verb = name.split("/")
        text = files("tidemill.store").joinpath(*area, "queries", thing, f"{verb}.sql").read_text(encoding="utf-8")
        self.sql, self.names, self._literals = compile_names(text)
        self._wanted = frozenset(self.names)
        self.declared.append(self)

    async def rows(self, connection: Connection, **values: Any) -> list[Row]:
        arguments = await self._arguments(connection, values)
        make = self._make
        return [make(record) for record in await connection.fetch(self.sql, *arguments)]

    async def row(self, connection: Connection, **values: Any) -> Row | None:
        """The first row, if there is one."""
        record = await connection.fetchrow(self.sql, *await self._arguments(connection, values))
        return None if record is None else self._make(record)

    async def only(self, connection: Connection, **values: Any) -> Row:
        """The row of a query that always has one."""
        row = await self.row(connection, **values)
        assert row is not None, f"{self.name} answers with a row"
        return row

    async def run(self, connection: Connection, **values: Any) -> None:
        await connection.execute(self.sql, *await self._arguments(connection, values))

    async def _arguments(self, connection: Connection, values: dict[str, Any]) -> list[Any]:
        """The values in the order of the text. A long column may be a literal already, or null."""
        if self.by_key:
            await connection.find_by_key()
        assert values.keys() == self._wanted, f"{self.name} expects {self.names}, got {sorted(values)}"
        for name, literal in self._literals.items():
            if (column := values[name]) is not None and not isinstance(column, str):
                values[name] = literal(column)
        return [values[name] for name in self.names]

    @cached_property
    def _make(self) -> Callable[[Any], Row]:
        return (lambda record: cast(Row, record)) if self.row_type is None else row_maker(self.row_type)


def row_maker(row_type: type[Row]) -> Callable[[Any], Row]:
    """What makes a value of the type from the columns of a record, in their order. Words become members of enums."""
    hints = row_fields(row_type).values()
    if not hints:
        word = _enum_of(row_type) or (lambda value: value)
        return lambda record: cast(Row, word(record[0]))
    enums = [(position, enum) for position, hint in enumerate(hints) if (enum := _enum_of(hint))]
    if not enums:
        is_whole = not getattr(row_type, "_field_defaults", True)  # what is looked up afterwards is no column
        return getattr(row_type, "_make") if is_whole else lambda record: row_type(*record)  # noqa: B009

    def make(record: asyncpg.Record) -> Row:
        values = list(record)
        for position, enum in enums:
            if values[position] is not None:
                values[position] = enum(values[position])
        return row_type(*values)

    return make


def row_fields(row_type: type[Row]) -> Mapping[str, Any]:
    """The columns of a row and their types; none for a plain value. What belongs to the class is no column."""
    names = [field.name for field in fields(row_type)] if is_dataclass(row_type) else getattr(row_type, "_fields", ())
    hints = get_type_hints(row_type) if names else {}
    return {name: hints[name] for name in names}


def _enum_of(hint: Any) -> type[Enum] | None:
    """The enum that a field holds, perhaps optionally."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    enums = [member for member in members if isinstance(member, type) and issubclass(member, Enum)]
    return enums[0] if enums else None


def compile_names(text: str) -> tuple[str, list[str], dict[str, Callable[[Sequence[Any]], str]]]:
    """Turn `:name` into `$1`, `$2`, …, and return the name of each number, and how long columns are written. Comments
    are dropped."""
    names: list[str] = []
    literals: dict[str, Callable[[Sequence[Any]], str]] = {}

    def number(match: re.Match[str]) -> str:
        name, column = match["name"], match["column"] or ""
        if name is None:
            return "" if match[0].startswith("--") else match[0]
        if name not in names:
            names.append(name)
        if column:
            literals[name] = _LITERALS[column]
        return f"${names.index(name) + 1}{column}"

    return _TOKEN.sub(number, text).strip(), names, literals


def _uuid_array(values: Sequence[UUID | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else f"{value.int:032x}" for value in values]) + "}"


def _bigint_array(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def _boolean_array(values: Sequence[bool]) -> str:
    return "{" + ",".join(["t" if value else "f" for value in values]) + "}"


def _text_array(values: Sequence[str]) -> str:
    if not values:
        return "{}"
    everything = "".join(values)
    if '"' in everything or "\\" in everything:
        values = [value.replace("\\", r"\\").replace('"', r"\"") for value in values]
    return '{"' + '","'.join(values) + '"}'


_LITERALS: Mapping[str, Callable[[Sequence[Any]], str]] = {
    "::text::uuid[]": _uuid_array,
    "::text::bigint[]": _bigint_array,
    "::text::integer[]": _bigint_array,
    "::text::smallint[]": _bigint_array,
    "::text::boolean[]": _boolean_array,
    "::text::text[]": _text_array,
    "::text::jsonb[]": _text_array,
}

_BY_KEY = Query("plans/by_key")
