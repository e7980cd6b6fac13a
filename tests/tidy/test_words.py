"""One word for each concept, and no word that says nothing."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

import pytest

from tests.tidy.source import PACKAGE, ROOT, Module, example, expect_none, modules

VAGUE = {
    "manager": "say what it does to what it manages",
    "helper": "name the function for what it answers",
    "util": "put it where it is used",
    "handler": "name it for what it does",
    "info": "name what it tells",
    "data": "name what it holds",
    "common": "put it where it is used",
    "misc": "put it where it is used",
}
"""Words that say nothing, in the names of modules, classes and functions."""

SYNONYMS = {
    "miner": "provider",
    "supplier": "provider",
    "renter": "customer",
    "worker": "node, agent or process",
    "executor": "node, runner or sandbox",
    "subtask": "task",
    "blob": "artefact",
}
"""Other words for our concepts, in any name we choose, and ours for them."""

SUFFIXES = {
    "sec": "_s",
    "secs": "_s",
    "seconds": "_s",
    "msec": "_ms",
    "millis": "_ms",
    "milliseconds": "_ms",
    "micros": "_us",
    "mb": "_mib or _bytes",
    "timestamp": "_at",
}
"""Ends of names that carry a unit in another way than ours."""

EXCEPTIONS = {
    ("store/embedded/", "data"): "PostgreSQL's own name for its directory",
    ("serving/deadlines.py", "data_received"): "asyncio's name for the method",
    ("link/dialled/connection.py", "data_received"): "asyncio's name for the method",
    ("link/held/connection.py", "data_received"): "asyncio's name for the method",
    ("control/http/exact_numbers.py", "get_route_handler"): "FastAPI's name for the method",
    ("control/http/guard.py", "get_route_handler"): "FastAPI's name for the method",
}
"""Where a name, or a word in it, is somebody else's."""

OURS = re.compile(r"data[_ ]?(centre|key)s?", re.IGNORECASE)
"""A data centre is one of our users; a data key seals, as everybody calls it."""


def vague_names(module: Module) -> Iterator[str]:
    named: list[tuple[ast.AST, str]] = [
        *((node, node.name) for node in ast.walk(module.tree) if isinstance(node, _NAMED)),
        *((module.tree, part) for part in PurePath(module.place).with_suffix("").parts),
    ]
    for node, name in named:
        for word in _words(OURS.sub("", name)):
            if word in VAGUE and not _excepted(module, name, word):
                yield f"{module.at(node)}: {name}: {VAGUE[word]}"


def foreign_words(module: Module) -> Iterator[str]:
    for node, name in _chosen_names(module):
        for word in _words(name):
            if word in SYNONYMS and not _excepted(module, name, word):
                yield f"{module.at(node)}: {name}: our word is {SYNONYMS[word]}"
        last = name.lower().rpartition("_")
        if last[0].strip("_") and last[2] in SUFFIXES:
            yield f"{module.at(node)}: {name}: our suffix is {SUFFIXES[last[2]]}"


def test_names_of_modules_classes_and_functions_say_something() -> None:
    expect_none((line for module in modules() for line in vague_names(module)), "A name is what a colleague would say.")


def test_names_use_the_glossary_and_our_units() -> None:
    expect_none((line for module in modules() for line in foreign_words(module)), "docs/GLOSSARY.md has our words.")


def test_tables_and_columns_use_the_glossary() -> None:
    expect_none(
        (
            f"{file.relative_to(ROOT)}:{number}: {name}: our word is {SYNONYMS[word]}"
            for file in PACKAGE.rglob("*.sql")
            for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1)
            for name in re.findall(r"[a-z_]+", line.partition("--")[0])
            for word in _words(name)
            if word in SYNONYMS
        ),
        "docs/GLOSSARY.md has our words.",
    )


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("core/node_utils.py", ""),
        ("core/helpers/placing.py", ""),
        ("core/a.py", "class JobManager: ..."),
        ("core/a.py", "def load_data(): ..."),
        ("core/a.py", "class NodeInfo: ..."),
        ("core/a.py", "async def _event_handler(): ..."),
    ],
)
def test_a_vague_name_is_noticed(place: str, text: str) -> None:
    assert list(vague_names(example(place, text)))


@pytest.mark.parametrize(
    "text",
    [
        "class WorkerPool: ...",
        "miners = 3",
        "def f(supplier_id): ...",
        "self.blob = 1",
        "for subtask in job: ...",
        "timeout_seconds = 3",
        "def f(*, size_mb): ...",
    ],
)
def test_a_foreign_word_is_noticed(text: str) -> None:
    assert list(foreign_words(example("core/a.py", text)))


@pytest.mark.parametrize(
    "text", ["class DataCentre: ...", "def metadata(): ...", "def information(): ...", "second = 1"]
)
def test_a_word_that_only_looks_alike_is_let_through(text: str) -> None:
    module = example("core/a.py", text)
    assert not [*vague_names(module), *foreign_words(module)]


_NAMED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _chosen_names(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Every name that we chose: what a module defines, not what it uses."""
    for node in ast.walk(module.tree):
        if isinstance(node, _NAMED):
            yield node, node.name
        elif isinstance(node, ast.arg):
            yield node, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node, node.asname
    yield from ((module.tree, part) for part in PurePath(module.place).with_suffix("").parts)


def _words(name: str) -> list[str]:
    """The words of a name, in lower case and in the singular."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [word.lower().removesuffix("s") if word.lower() not in VAGUE else word.lower() for word in words]


def _excepted(module: Module, name: str, word: str) -> bool:
    return any(module.place.startswith(place) and what in (name, word) for place, what in EXCEPTIONS)
