"""The source as the rules see it: its modules, what they import, which names they use, and where."""

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

import tidemill

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tidemill"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One Python file. `path` is relative to the project."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def place(self) -> str:
        """Where it is inside the package, as rules and their exceptions write it: `core/clock.py`."""
        return "/".join(self.path.parts[2:])

    @property
    def name(self) -> str:
        parts = self.path.with_suffix("").parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The package of the import table it belongs to; the root of all is called `tidemill`."""
        return self.path.parts[2] if len(self.path.parts) > 3 else "tidemill"

    @cached_property
    def imports(self) -> list[tuple[ast.AST, str]]:
        """Every imported name in full, wherever the import stands."""
        return list(_imports(self))

    @cached_property
    def uses(self) -> list["Use"]:
        """Every use of an imported name, and every call of a builtin."""
        visitor = _Uses(self)
        visitor.visit(self.tree)
        return visitor.found

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def origin(self, node: ast.ImportFrom) -> str:
        """The module an import takes names from, also when it is written with dots."""
        if node.level == 0:
            return node.module or ""
        parts = [*self.path.with_suffix("").parts[1:]]
        return ".".join([*parts[: len(parts) - node.level], *filter(None, [node.module])])

    def at(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 1)}"


@dataclass(frozen=True)
class Use:
    """A name in full, such as `datetime.datetime.now`; a builtin is `builtins.open`."""

    node: ast.AST
    name: str
    in_annotation: bool

    def is_any_of(self, names: Iterable[str]) -> bool:
        """Whether it is one of these names, or belongs to one of these modules or classes."""
        return any(self.name == name or self.name.startswith(f"{name}.") for name in names)


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    return tuple(Module(file.relative_to(ROOT), file.read_text("utf-8")) for file in sorted(PACKAGE.rglob("*.py")))


def example(place: str, text: str) -> Module:
    """A module that does not exist, to see that a rule notices it."""
    return Module(Path("src/tidemill") / place, text)


def import_everything() -> None:
    """Import every module of the package, so that every class is known."""
    for module in pkgutil.walk_packages(tidemill.__path__, "tidemill."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def is_ours(one: type) -> bool:
    """Whether a class is the package's; other tests may have defined some in this process."""
    return one.__module__.startswith("tidemill.")


def expect_none(found: Iterable[str], advice: str) -> None:
    """Fail with what was found, a line each, and with what to do."""
    if lines := sorted(set(found)):
        pytest.fail("\n".join([advice, *(f"  {line}" for line in lines)]), pytrace=False)


def _imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{module.origin(node)}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"} and node.args:
            target = node.args[0]
            yield node, str(target.value) if isinstance(target, ast.Constant) else "?"


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Uses(ast.NodeVisitor):
    """Collects uses; knows what is only an annotation."""

    def __init__(self, module: Module) -> None:
        self.found: list[Use] = []
        self._annotation = False
        self._aliases: dict[str, str] = {}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    self._aliases[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._aliases[alias.asname or alias.name] = f"{module.origin(node)}.{alias.name}"

    def visit(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns"} and isinstance(value, ast.AST):
                before, self._annotation = self._annotation, True
                self.visit(value)
                self._annotation = before
        if (name := self._full_name(node)) is not None:
            self.found.append(Use(node, name, self._annotation))
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in self._aliases:
            self.found.append(Use(node, f"builtins.{node.func.id}", self._annotation))
        for field, value in ast.iter_fields(node):
            if field not in {"annotation", "returns"}:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        self.visit(child)

    def _full_name(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            return self._aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._full_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        return None
