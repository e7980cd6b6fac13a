"""Decisions are pure, and time, randomness and ids are arguments: in core, wire, the store and the loops."""

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.tidy.source import Module, Use, example, expect_none, modules

PURE = {"core", "wire"}

COMPUTING = (
    "abc", "array", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime",
    "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac", "html", "ipaddress",
    "itertools", "json", "math", "numbers", "operator", "pathlib", "random", "re", "statistics", "string", "struct",
    "textwrap", "types", "typing", "unicodedata", "urllib.parse", "uuid", "zlib", "__future__",
)  # fmt: skip
"""What core and wire may import of the standard library: modules whose functions only compute."""

CLOCKS = (
    "time",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
)
CHANCE = (
    "random",
    "secrets",
    "os.urandom",
    "os.getrandom",
    "numpy.random",
    "nacl.utils",
    *(f"{library}.uuid{version}" for library in ("uuid", "uuid_utils") for version in (1, 4, 6, 7, 8)),
    "uuid.getnode",
)
WORLD = (
    *(f"builtins.{name}" for name in ("open", "input", "print", "breakpoint", "exec", "eval")),
    *(f"numpy.{name}" for name in ("load", "save", "savez", "loadtxt", "savetxt", "fromfile", "memmap")),
    "pathlib.Path.cwd",
    "pathlib.Path.home",
    "hashlib.file_digest",
)
UNSTEADY = ("builtins.hash", "builtins.id")
"""Answer differently in another process."""

GENERATORS = ("random.Random", "numpy.random.Generator")
"""May stand in annotations: the caller brings one."""

TOUCHES_DISK = {
    "read_text", "read_bytes", "write_text", "write_bytes", "exists", "is_file", "is_dir", "is_symlink", "iterdir",
    "glob", "rglob", "mkdir", "rmdir", "unlink", "touch", "stat", "lstat", "resolve", "absolute", "expanduser",
    "samefile", "chmod", "symlink_to", "readlink",
}  # fmt: skip
"""Methods of paths that ask the disk; looked for where pathlib is imported."""

DRAWS_KEYS = {"generate", "generate_private_key", "generate_key"}
"""Methods of cryptographic libraries that draw random numbers."""

EXCEPTIONS = (
    ("store/clock.py", "time.monotonic_ns", "this is the production clock; everything else is told the time by it"),
    ("store/embedded/", "time", "waits for processes and compares with the times of files"),
    ("store/embedded/", "secrets", "makes the passwords of the server it starts"),
    ("control/loops/frame.py", "time.perf_counter", "how long a tick took is a metric; no decision reads it"),
)
"""Where in the store and the loops, what, and why."""


def impurities(module: Module) -> Iterator[str]:
    """What keeps a module of core or wire from being pure."""
    for node, name in module.imports:
        top = name.partition(".")[0]
        if _is_standard(top) and not Use(node, name, False).is_any_of(COMPUTING):
            yield f"{module.at(node)}: imports {name}, which is not among the modules that only compute"
    for use in module.uses:
        if use.is_any_of((*CLOCKS, *CHANCE, *WORLD, *UNSTEADY)) and not _brought_by_caller(use):
            yield f"{module.at(use.node)}: uses {use.name}"
    for node, method in _methods(module):
        yield f"{module.at(node)}: calls .{method}()"


def own_clocks_and_dice(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Where a module reads a clock or draws a random number by itself."""
    for use in module.uses:
        if use.is_any_of((*CLOCKS, *CHANCE)) and not _brought_by_caller(use):
            yield use.node, use.name


def test_core_and_wire_only_compute() -> None:
    expect_none(
        (line for module in modules() if module.package in PURE for line in impurities(module)),
        "Let the caller bring it as an argument; the shell (store, control, agent, cli) touches the world.",
    )


def test_the_store_and_the_loops_are_told_the_time_and_bring_no_chance_of_their_own() -> None:
    expect_none(
        (
            f"{module.at(node)}: uses {name}"
            for module in modules()
            if _takes_time_as_argument(module)
            for node, name in own_clocks_and_dice(module)
            if not any(_covers(exception, module, name) for exception in EXCEPTIONS)
        ),
        "Take `now`, `ids` or a draw as an argument, or add an exception with its reason to this module's table.",
    )


def test_every_exception_is_still_needed() -> None:
    used = [
        (module, name)
        for module in modules()
        if _takes_time_as_argument(module)
        for _, name in own_clocks_and_dice(module)
    ]
    expect_none(
        (
            f"{place}: {name}"
            for place, name, reason in EXCEPTIONS
            if not any(_covers((place, name, reason), module, found) for module, found in used)
        ),
        "Nothing uses these exceptions any more: remove them from this module's table.",
    )


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "import asyncio",
        "import os\nhome = os.environ['HOME']",
        "import logging",
        "import socket",
        "import subprocess",
        "import threading",
        "from urllib.request import urlopen",
        "from datetime import datetime\nat = datetime.now()",
        "import datetime as dt\nat = dt.datetime.utcnow()",
        "from datetime import date\nday = date.today()",
        "from datetime import datetime\ndef f(clock=datetime.now): ...",
        "import random\ndraw = random.random()",
        "from random import choice\none = choice([1, 2])",
        "from random import Random\ndice = Random()",
        "import numpy as np\ndice = np.random.default_rng()",
        "from uuid import uuid4\nnew = uuid4()",
        "import uuid\nnew = uuid.uuid1()",
        "from uuid_utils import uuid7\nnew = uuid7()",
        "text = open('file').read()",
        "from pathlib import Path\ntext = Path('file').read_text()",
        "from nacl.signing import SigningKey\nkey = SigningKey.generate()",
        "place = hash('node') % 7",
        "print('done')",
    ],
)
def test_each_way_of_being_impure_is_noticed(text: str) -> None:
    assert list(impurities(example("core/example.py", text)))


@pytest.mark.parametrize(
    "text",
    [
        "from random import Random\ndef draw(dice: Random) -> float:\n    return dice.random()",
        "import random\ndef draw(dice: random.Random) -> float:\n    return dice.random()",
        "from datetime import UTC, datetime\nat = datetime.fromtimestamp(0, UTC)",
        "from uuid import UUID, uuid5\none = uuid5(UUID(int=0), 'name')",
        "from pathlib import Path\nname = Path('a/b').name",
        "from urllib.parse import quote",
        "def tick(clock):\n    return clock.now()",
    ],
)
def test_what_only_computes_is_let_through(text: str) -> None:
    assert not list(impurities(example("core/example.py", text)))


def _takes_time_as_argument(module: Module) -> bool:
    return module.package == "store" or module.place.startswith("control/loops/") or _defines_a_loop(module)


def _defines_a_loop(module: Module) -> bool:
    """Loops may live elsewhere, next to what they serve."""
    bases = (base for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef) for base in node.bases)
    return any(isinstance(base, ast.Name) and base.id in {"Loop", "Duty"} for base in bases)


def _covers(exception: tuple[str, str, str], module: Module, name: str) -> bool:
    place, excepted, _ = exception
    return module.place.startswith(place) and (name == excepted or name.startswith(f"{excepted}."))


def _brought_by_caller(use: Use) -> bool:
    return use.in_annotation and use.name in GENERATORS


def _methods(module: Module) -> Iterator[tuple[ast.AST, str]]:
    imported = {name.partition(".")[0] for _, name in module.imports}
    suspicious = (TOUCHES_DISK if "pathlib" in imported else set()) | (
        DRAWS_KEYS if imported & {"cryptography", "nacl"} else set()
    )
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in suspicious:
            yield node, node.func.attr


def _is_standard(top: str) -> bool:
    return top in sys.stdlib_module_names
