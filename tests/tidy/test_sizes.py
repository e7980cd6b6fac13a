"""Modules, functions and routes that can be read at a glance."""

import ast
from collections.abc import Iterator

from tests.tidy.source import ROOT, Function, Module, example, expect_none, modules

MODULE_MAX = 400
TEST_MODULE_MAX = 600
FUNCTION_MAX = 40
ROUTE_MAX = 15


def long_functions(module: Module) -> Iterator[str]:
    for function in module.functions:
        lines = (function.end_lineno or 0) - function.lineno + 1
        if lines > FUNCTION_MAX:
            yield f"{module.at(function)}: {function.name} has {lines} lines, {FUNCTION_MAX} at the most"


def long_routes(module: Module) -> Iterator[str]:
    for function in module.functions:
        lines = _body_lines(function)
        if any(_is_route(decorator) for decorator in function.decorator_list) and lines > ROUTE_MAX:
            yield f"{module.at(function)}: {function.name} has {lines} lines of body, {ROUTE_MAX} at the most"


def test_modules_are_short() -> None:
    tests = [(file.relative_to(ROOT), file.read_text("utf-8")) for file in (ROOT / "tests").rglob("*.py")]
    sized = [
        *((module.path, module.text, MODULE_MAX) for module in modules()),
        *((path, text, TEST_MODULE_MAX) for path, text in tests),
    ]
    expect_none(
        (f"{path}: {lines} lines, {most} at the most" for path, text, most in sized if (lines := _lines(text)) > most),
        "Divide the module by what it decides; each half gets a docstring of its own.",
    )


def test_functions_are_short() -> None:
    expect_none(
        (line for module in modules() for line in long_functions(module)),
        "Give a part of the function a name of its own.",
    )


def test_routes_are_short() -> None:
    expect_none(
        (line for module in modules() for line in long_routes(module)),
        "A route parses, authorises, makes one decision and one store call, and shows the result. Decide in core.",
    )


def test_every_module_says_what_it_is_for() -> None:
    expect_none(
        (f"{module.path}:1" for module in modules() if not ast.get_docstring(module.tree)),
        "Begin with a docstring: what the module decides, and what always holds.",
    )


def test_what_is_too_long_is_noticed() -> None:
    body = "    x = 1\n"
    function = "def f():\n" + body * FUNCTION_MAX
    route = '@router.get("/")\nasync def f():\n    """Does."""\n' + body * (ROUTE_MAX + 1)
    assert list(long_functions(example("core/a.py", function)))
    assert list(long_routes(example("control/routes/a.py", route)))
    assert not list(long_functions(example("core/a.py", function.replace(body, "", 1))))
    assert not list(long_routes(example("control/routes/a.py", route.replace(body, "", 1))))


def _is_route(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and "router" in called.value.id


def _body_lines(function: Function) -> int:
    """The lines of a body, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def _lines(text: str) -> int:
    return len(text.splitlines())
