"""docs/BOUNDS.md has a line for each table, and for nothing else; and the defaults that it names are the defaults."""

import re

import pytest

from tests.tidy.source import ROOT
from tidemill.core.settings.display import shown
from tidemill.core.settings.tree import by_name

PAGE = (ROOT / "docs" / "BOUNDS.md").read_text("utf-8")
MIGRATIONS = sorted((ROOT / "src" / "tidemill" / "store" / "migrations").glob("0*.sql"))
MADE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (\w+)", re.MULTILINE)
LINE = re.compile(r"^\| (\w+) \| [^|]+ \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
DEFAULT = re.compile(r"^\| [^|]+ \| `([^`]+)` \| `([\w.]+)` \|$", re.MULTILINE)


def test_every_table_has_an_owner_a_bound_and_somebody_who_empties_it() -> None:
    told = [name for name in LINE.findall(PAGE) if name != "table"]
    tables = {name for file in MIGRATIONS for name in MADE.findall(file.read_text("utf-8"))}
    assert sorted(told) == sorted(set(told)), "a table has one line"
    assert tables - set(told) == set(), "tables without a line in docs/BOUNDS.md"
    assert set(told) - tables == set(), "lines in docs/BOUNDS.md about tables that are no more"


@pytest.mark.parametrize(("value", "name"), DEFAULT.findall(PAGE))
def test_a_default_that_the_page_names_is_the_default(value: str, name: str) -> None:
    definition = by_name()[name]
    assert shown(definition.kind, definition.default) == value
