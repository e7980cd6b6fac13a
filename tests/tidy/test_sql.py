"""SQL lives in .sql files: one file a query, told the time, with a comment that says why it is safe."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.tidy.source import PACKAGE, ROOT, Module, example, expect_none, modules

STORE = PACKAGE / "store"
QUERIES = [file for file in sorted(STORE.rglob("*.sql")) if "queries" in file.parts]
MIGRATIONS = STORE / "migrations"

OWN_CLOCKS_AND_DICE = re.compile(
    r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|random|random_normal|setseed"
    r"|gen_random_uuid|gen_random_bytes|uuidv4|uuidv7|uuid_generate_v\d\w*)\s*\("
    r"|\b(current_timestamp|current_date|current_time|localtimestamp|localtime)\b",
    re.IGNORECASE,
)
READS_THE_CLOCK = STORE / "queries" / "clock" / "read.sql"
"""The one query that asks the server for the time."""

STATEMENT = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|MERGE|COPY|CREATE|ALTER|DROP|TRUNCATE|GRANT|REVOKE|LOCK|NOTIFY"
    r"|LISTEN)\s"
)
WRITTEN_IN_CODE = {
    "store/migrate.py": "runs before there is a schema that a query could be written against",
    "store/operations/backup.py": "makes, renames and drops whole databases, which takes no parameters",
    "store/checks.py": "reads every table there is, whatever its name",
    "store/operations/rotation.py": "seals columns of any table anew, and names take no parameters",
    "store/events/events.py": "NOTIFY takes no parameters",
    "store/embedded/": "makes the roles and the database of a new server",
    "link/dialled/spool_file.py": "the spool is a file of the node's own, in SQLite, and not the store's",
}
"""Where statements stand in Python, and why."""

KNOWS_RECORDS = ("store/query.py", "store/database.py")

GROWS_FOR_EVER = {"event", "transfer", "task", "receipt"}
"""Tables that must be partitioned from the migration that creates them, because it cannot be added later."""


def statements_in_code(module: Module) -> Iterator[str]:
    """SQL in a module's strings, docstrings aside."""
    docstrings = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in docstrings else None
        if isinstance(text, str) and (match := STATEMENT.match(text)):
            yield f"{module.at(node)}: {match[1]} …"


def test_every_query_file_begins_with_a_comment_that_says_what_it_does() -> None:
    files = [*QUERIES, *MIGRATIONS.glob("*.sql")]
    expect_none(
        (f"{file.relative_to(ROOT)}:1" for file in files if not re.match(r"-- \S", file.read_text("utf-8"))),
        "Begin with `-- ` and a sentence: what it does, and why races are safe.",
    )


def test_every_query_file_is_used_by_exactly_one_query_and_every_query_has_its_file() -> None:
    uses = Counter(name for _, name in _queries())
    files = {str(file.relative_to(STORE).with_suffix("")).replace("queries/", "") for file in QUERIES}
    wrong = [f"the file of {name} is used by {uses[name]} queries" for name in files if uses[name] != 1]
    missing = [f"{at}: {name} has no file" for at, name in _queries() if name not in files]
    expect_none([*wrong, *missing], "One file a query: delete what is unused, share the function and not the file.")


def test_sql_is_told_the_time_and_draws_nothing() -> None:
    files = [file for file in (*QUERIES, *MIGRATIONS.glob("*.sql")) if file != READS_THE_CLOCK]
    expect_none(
        (
            f"{file.relative_to(ROOT)}:{number}: {match[0]}"
            for file in files
            for number, line in enumerate(_code(file.read_text("utf-8")).splitlines(), start=1)
            if (match := OWN_CLOCKS_AND_DICE.search(line))
        ),
        "Pass it in, as `:now` or as an id: the simulator and the tests bring their own.",
    )


def test_statements_stand_in_sql_files() -> None:
    expect_none(
        (
            line
            for module in modules()
            if not module.place.startswith(tuple(WRITTEN_IN_CODE))
            for line in statements_in_code(module)
        ),
        "Put the statement into a file under store/queries and call a typed function of the store.",
    )


def records_named(module: Module) -> Iterator[str]:
    """Where a module speaks of the driver's own rows."""
    for use in module.uses:
        if use.name == "asyncpg.Record":
            yield f"{module.at(use.node)}: asyncpg.Record"


def test_the_drivers_records_stay_where_queries_are_made() -> None:
    expect_none(
        (line for module in modules() if module.place not in KNOWS_RECORDS for line in records_named(module)),
        "Declare the type of the query's rows, and let it make them.",
    )


def test_a_record_that_travels_is_noticed() -> None:
    text = "import asyncpg\n\n\ndef f(row: asyncpg.Record) -> int:\n    return 1"
    assert list(records_named(example("store/jobs/jobs.py", text)))


def test_tables_that_grow_for_ever_are_partitioned_and_listed() -> None:
    schema = "\n".join(_code(file.read_text("utf-8"), keep_strings=True) for file in sorted(MIGRATIONS.glob("*.sql")))
    created = re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)([^;]*);", schema, re.DOTALL)
    partitioned = {name for name, _, rest in created if "PARTITION BY RANGE (id)" in rest}
    inserts = re.findall(r"INSERT INTO partitioned_table\b([^;]*);", schema)
    listed = {name for values in inserts for name in re.findall(r"\('(\w+)'", values)}
    assert partitioned, "no partitioned table was found: has the way migrations are written changed?"
    expect_none(
        [
            *(f"{name} is in partitioned_table and is not partitioned" for name in listed - partitioned),
            *(f"{name} is partitioned and not in partitioned_table" for name in partitioned - listed),
            *(f"{name} is not partitioned" for name, *_ in created if name in GROWS_FOR_EVER - partitioned),
        ],
        "Create the table with PARTITION BY RANGE (id) and insert its name into partitioned_table.",
    )


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(file.name for file in MIGRATIONS.glob("*.sql") if file.name != "grants.sql")
    assert all(re.fullmatch(r"\d{4}_[a-z_]+\.sql", name) for name in names), names
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


@pytest.mark.parametrize(
    "line",
    ["DEFAULT now()", "SELECT clock_timestamp()", "WHERE at < CURRENT_TIMESTAMP", "gen_random_uuid ()", "random()"],
)
def test_a_clock_in_sql_is_noticed(line: str) -> None:
    assert OWN_CLOCKS_AND_DICE.search(_code(line))


@pytest.mark.parametrize("line", ["-- not now()", "SELECT 'now()'", "seen_at = :now", "known(x)", "nextval('n')"])
def test_what_only_looks_like_a_clock_in_sql_is_let_through(line: str) -> None:
    assert not OWN_CLOCKS_AND_DICE.search(_code(line))


def test_a_statement_in_code_is_noticed_and_a_sentence_is_not() -> None:
    text = 'def f(table):\n    """SELECT is the word."""\n    return f"SELECT 1 FROM {table}", "Select a node."'
    assert list(statements_in_code(example("control/nodes/routes.py", text))) == [
        "src/tidemill/control/nodes/routes.py:3: SELECT …"
    ]


def _queries() -> Iterator[tuple[str, str]]:
    """Where a query is made, and the file it names."""
    for module in modules():
        names = {id(use.node) for use in module.uses if use.name == "tidemill.store.query.Query"}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and (id(node.func) in names or _is_local_query(module, node.func)):
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{module.at(node)}: write the query's name as a plain string"
                yield module.at(node), str(name.value)


def _is_local_query(module: Module, function: ast.expr) -> bool:
    """Whether the module that defines `Query` makes one itself."""
    return module.place == "store/query.py" and isinstance(function, ast.Name) and function.id == "Query"


def _code(sql: str, *, keep_strings: bool = False) -> str:
    """A statement without its comments and strings, line for line."""
    sql = re.sub(r"--[^\n]*", "", sql)
    return sql if keep_strings else re.sub(r"'(?:[^'\n]|'')*'", "''", sql)
