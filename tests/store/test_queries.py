"""Every query's declared rows are what PostgreSQL answers: the same columns, in the same order, of the same types."""

import importlib
import pkgutil
from collections.abc import Iterator
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin
from uuid import UUID

import tidemill.store
from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import AttemptState
from tidemill.core.nodes.health.events import NodeAlertCleared
from tidemill.store.database import Database
from tidemill.store.query import Query, row_fields, row_maker

SERVED_BY: dict[str, tuple[type, ...]] = {
    "uuid": (UUID,),
    "bool": (bool,),
    "int2": (int,),
    "int4": (int,),
    "int8": (int,),
    "numeric": (Decimal,),
    "float4": (float,),
    "float8": (float,),
    "text": (str, Enum),
    "bytea": (bytes,),
    "timestamptz": (int,),
    "xid8": (int,),
    "name": (str,),
    "jsonb": (dict, list, object),
}
"""Which Python types may hold a column of a PostgreSQL type."""


ONLY_RUN = frozenset(
    {
        "plans/by_key",
        "accounts/account/lock",
        "accounts/session/rotate",
        "nodes/node/lock",
        "nodes/node/lock_presence",
        "nodes/admission/lock",
        "nodes/challenge/lock_members",
        "nodes/challenge/lock_round",
        "operations/critical/lock",
        "ledger/ledger/archive_number",
        "ledger/ledger/archive_drop",
    }
)
"""Queries whose rows nobody reads: they lock, or call a function."""


def fits(hint: Any, column_type: str) -> bool:
    """Whether a value of this column may stand in a field with this annotation."""
    if get_origin(hint) in (UnionType, Union):
        return any(fits(member, column_type) for member in get_args(hint) if member is not NoneType)
    if hint is Any:
        return True
    kind = getattr(get_origin(hint) or hint, "__supertype__", get_origin(hint) or hint)
    if column_type.endswith("[]"):
        return issubclass(kind, list | tuple)
    return issubclass(kind, SERVED_BY[column_type])


def every_query() -> list[Query[Any]]:
    for module in pkgutil.walk_packages(tidemill.store.__path__, "tidemill.store."):
        importlib.import_module(module.name)
    return list({query.name: query for query in Query.declared}.values())


async def differences(database: Database) -> Iterator[str]:
    found = []
    async with database.connection() as connection:
        for query in every_query():
            columns = [(column.name, column.type) for column in (await connection.prepare(query.sql)).get_attributes()]
            if query.row_type is None:
                if columns and query.name not in ONLY_RUN:
                    found.append(f"{query.name} answers {[name for name, _ in columns]}, and declares no row")
                continue
            fields = list(row_fields(query.row_type).items()) or [("", query.row_type)]
            later = getattr(query.row_type, "_field_defaults", {})
            while len(fields) > len(columns) and fields[-1][0] in later:
                fields.pop()
            if fields[0][0] and [name for name, _ in fields] != [name for name, _ in columns]:
                found.append(f"{query.name} answers {[name for name, _ in columns]}, declared are {fields}")
                continue
            found += [
                f"{query.name}: {name} is {column.name}, declared is {hint}"
                for (name, hint), (_, column) in zip(fields, columns, strict=bool(fields[0][0]))
                if not fits(hint, column.name)
            ]
    return iter(found)


async def test_the_rows_of_every_query_are_declared_as_they_are(database: Database) -> None:
    assert not list(await differences(database))


class _Row(NamedTuple):
    state: AttemptState
    other: AttemptState | None
    number: int


def test_words_become_members_of_the_enums_that_a_row_declares() -> None:
    make = row_maker(_Row)
    assert make(["offered", None, 1]) == (AttemptState.OFFERED, None, 1)
    assert isinstance(make(["offered", "running", 1]).other, AttemptState)
    assert row_maker(AttemptState)(["lost"]) is AttemptState.LOST
    assert row_maker(int)([7]) == 7


def test_what_belongs_to_the_class_of_a_row_is_no_column() -> None:
    assert list(row_fields(NodeAlertCleared)) == ["account_id", "node_id", "alert", "device"]
    assert not row_fields(Instant)
