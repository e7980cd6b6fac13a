"""Which fields of which classes the running program reads, as far as its source tells.

**What runs** is what the roots lead to, name by name: a function or a class runs once something that runs names it, a
class with all its methods; a module's loose lines and decorated functions run once it is imported. **Types** follow
annotations, assignments and calls; a container is taken for what it holds. A read of something whose type cannot be
told does not count: annotate it.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tests.tidy.source import Function, Module

Part = tuple[str, ast.stmt]
"""A module's name, and one of the statements that it consists of."""


@dataclass(frozen=True)
class Named:
    """What a module defines at its top under a name."""

    module: str
    name: str


@dataclass(frozen=True)
class Value:
    """A value of a class of ours."""

    of: Named


@dataclass(frozen=True)
class Itself:
    """A module, class or function itself; `method` is one of the class's."""

    what: Named | str
    method: str = ""


Types = set[Value | Itself]


@dataclass(frozen=True)
class Said:
    """The type of a variable as it is annotated, and the module whose names the annotation uses."""

    annotation: ast.expr
    module: str


Variables = dict[str, list[ast.expr | Said]]


@dataclass(frozen=True)
class Place:
    """Where an expression stands: its module, the class around it, the variables that it sees, innermost last."""

    module: str
    around: Named | None = None
    variables: tuple[Variables, ...] = ()


DEPTH_MAX = 20
"""Imports that lead further than this lead in a circle."""


class Source:
    """Modules as a whole: what each defines and imports."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.imported = {name: dict(_imported(module, module.tree)) for name, module in self.modules.items()}
        self.defined = {name: dict(_defined(module.tree)) for name, module in self.modules.items()}

    def find(self, name: str, depth: int = 0) -> Named | str | None:
        """What a full name stands for: a module, or what a module defines; imports are followed.

        What a package imports under the name of one of its modules hides that module, as it does when it runs.
        """
        parent, _, last = name.rpartition(".")
        owner = parent if parent in self.modules or not parent else self.find(parent, depth)
        if isinstance(owner, str) and owner:
            if last in self.defined[owner]:
                return Named(owner, last)
            target = self.imported[owner].get(last, name)
            if target != name and depth < DEPTH_MAX:
                return self.find(target, depth + 1)
        return name if name in self.modules else None

    def find_in(self, module: str, node: ast.AST) -> Named | str | None:
        """What a name, or names with dots, stands for in a module."""
        name = _dotted(node)
        return self.find(f"{module}.{name}") or self.find(self._in_full(module, name)) if name else None

    def definition(self, thing: Named) -> ast.stmt:
        return self.defined[thing.module][thing.name]

    def _in_full(self, module: str, name: str) -> str:
        top, dot, rest = name.partition(".")
        return self.imported[module].get(top, top) + dot + rest

    def running(self, roots: Iterable[str], without: str) -> Iterator[Part]:
        """Every part that runs. The package `without` is left out, and every module that imports it."""
        seen: set[int] = set()
        waiting = [part for root in roots for part in self._begun(self.find(root))]
        while waiting:
            module, part = waiting.pop()
            if id(part) not in seen and not self._belongs_to(module, without):
                seen.add(id(part))
                yield module, part
                waiting += self._led_to(module, part)

    def _belongs_to(self, module: str, package: str) -> bool:
        return any(f"{name}.".startswith(f"{package}.") for name in (module, *self.imported[module].values()))

    def _begun(self, thing: Named | str | None) -> Iterator[Part]:
        """What runs when something is named: itself, and what its module does when it is imported."""
        if isinstance(thing, Named):
            yield thing.module, self.definition(thing)
        module = thing.module if isinstance(thing, Named) else thing
        if module is not None:
            yield from ((module, part) for part in self.modules[module].tree.body if _runs_at_import(part))

    def _led_to(self, module: str, part: ast.stmt) -> Iterator[Part]:
        """What a part names. To import something is not to use it, but runs its module."""
        for node in ast.walk(part):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name in dict(_imported(self.modules[module], node)).values():
                    thing = self.find(name)
                    yield from self._begun(thing.module if isinstance(thing, Named) else thing)
            elif isinstance(node, ast.Name | ast.Attribute):
                thing = self.find_in(module, node)
                yield from self._begun(thing) if isinstance(thing, Named) else ()


class Reads:
    """What parts of the source read of values whose class is known."""

    def __init__(self, source: Source, attributes: Collection[str]) -> None:
        self._source = source
        self._attributes = frozenset(attributes)
        self._asked: set[int] = set()

    def of(self, part: Part) -> Iterator[tuple[Named, str]]:
        """Each class of ours and which of the attributes is read of it."""
        module, statement = part
        yield from self._inside(statement, Place(module))

    def _inside(self, node: ast.AST, place: Place) -> Iterator[tuple[Named, str]]:
        if isinstance(node, ast.ClassDef) and not place.variables:
            place = Place(place.module, Named(place.module, node.name))
        elif isinstance(node, Function | ast.Lambda):
            place = Place(place.module, place.around, (*place.variables, _variables(node, place)))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in self._attributes:
            owners = self._types(node.value, place)
            yield from ((owner.of, node.attr) for owner in owners if isinstance(owner, Value))
        for child in ast.iter_child_nodes(node):
            yield from self._inside(child, place)

    def _types(self, node: ast.expr | Said, place: Place) -> Types:
        """What an expression may be. One that is asked about while it is worked out adds nothing to itself."""
        if isinstance(node, Said):
            return self._said(node.annotation, node.module)
        if id(node) in self._asked:
            return set()
        self._asked.add(id(node))
        try:
            return self._computed(node, place)
        finally:
            self._asked.discard(id(node))

    def _computed(self, node: ast.expr, place: Place) -> Types:
        match node:
            case ast.Name(id=name):
                return self._variable(name, place)
            case ast.Attribute(value=value, attr=attribute):
                return _union(self._member(owner, attribute) for owner in self._types(value, place))
            case ast.Call(func=called) if not _is_replaced(node):
                return _union(self._answer(one) for one in self._types(called, place))
            case _:
                return _union(self._types(one, place) for one in _passed_on(node))

    def _variable(self, name: str, place: Place) -> Types:
        for variables in reversed(place.variables):
            if name in variables:
                return _union(self._types(one, place) for one in variables[name])
        return self._of_module(self._source.find_in(place.module, ast.Name(name)))

    def _of_module(self, thing: Named | str | None) -> Types:
        if thing is None or isinstance(thing, str):
            return {Itself(thing)} if thing else set()
        match self._source.definition(thing):
            case ast.AnnAssign(annotation=annotation):
                return self._said(annotation, thing.module)
            case ast.Assign(value=value):
                return self._types(value, Place(thing.module))
            case _:
                return {Itself(thing)}

    def _answer(self, called: Value | Itself) -> Types:
        """What calling something answers."""
        if isinstance(called, Value) or isinstance(called.what, str):
            return set()
        definition = self._source.definition(called.what)
        if isinstance(definition, ast.ClassDef):
            if not called.method:
                return {Value(called.what)}
            definition = _methods(definition)[called.method]
        assert isinstance(definition, Function)
        if definition.returns is None:
            return set()
        if called.method and _dotted(definition.returns) == "Self":
            return {Value(called.what)}
        return self._said(definition.returns, called.what.module)

    def _said(self, annotation: ast.expr, module: str) -> Types:
        """The classes of ours that an annotation speaks of."""
        return _union(self._class(one, module) for one in _names_in(annotation))

    def _class(self, name: ast.expr, module: str) -> Types:
        thing = self._source.find_in(module, name)
        definition = self._source.definition(thing) if isinstance(thing, Named) else None
        if isinstance(thing, Named) and isinstance(definition, ast.Assign):  # a name for a longer annotation
            return self._said(definition.value, thing.module)
        return {Value(thing)} if isinstance(thing, Named) and isinstance(definition, ast.ClassDef) else set()

    def _member(self, owner: Value | Itself, attribute: str) -> Types:
        of = owner.of if isinstance(owner, Value) else owner.what
        if isinstance(of, str):
            return self._of_module(self._source.find(f"{of}.{attribute}"))
        definition = self._source.definition(of)
        if not isinstance(definition, ast.ClassDef):
            return set()
        for part in definition.body:
            if isinstance(part, ast.AnnAssign) and _dotted(part.target) == attribute:
                return self._said(part.annotation, of.module)
        if method := _methods(definition).get(attribute):
            return self._answer(Itself(of, attribute)) if _is_property(method) else {Itself(of, attribute)}
        if found := _union(self._types(value, place) for value, place in _kept(definition, attribute, of)):
            return found
        bases = _union(self._said(base, of.module) for base in definition.bases)
        return _union(self._member(base, attribute) for base in bases if base != owner)


def _is_replaced(node: ast.expr) -> bool:
    """Whether it is a copy of a value, with some fields changed."""
    return isinstance(node, ast.Call) and _dotted(node.func) in {"replace", "dataclasses.replace"} and bool(node.args)


def _passed_on(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose types an expression has, as a whole or as what it holds."""
    match node:
        case ast.Call(args=[first, *_]) if _is_replaced(node):
            yield first
        case ast.Await(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
            yield value
        case ast.IfExp(body=one, orelse=other):
            yield from (one, other)
        case ast.BoolOp(values=several) | ast.Tuple(elts=several) | ast.List(elts=several):
            yield from several


def _names_in(annotation: ast.expr) -> Iterator[ast.expr]:
    """The names of an annotation: of the types it joins, and of what its containers hold."""
    match annotation:
        case ast.Constant(value=str(text)):
            yield from _names_in(ast.parse(text, mode="eval").body)
        case ast.BinOp(left=left, right=right):
            yield from (*_names_in(left), *_names_in(right))
        case ast.Subscript(slice=inner):
            yield from _names_in(inner)
        case ast.Tuple(elts=several) | ast.List(elts=several):
            yield from (name for one in several for name in _names_in(one))
        case ast.Name() | ast.Attribute():
            yield annotation


def _union(several: Iterable[Types]) -> Types:
    return set().union(*several)


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for part in tree.body:
        if isinstance(part, Function | ast.ClassDef):
            yield part.name, part
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            for target in part.targets if isinstance(part, ast.Assign) else [part.target]:
                if isinstance(target, ast.Name):
                    yield target.id, part


def _imported(module: Module, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The name that each import gives, and the full name of what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield alias.asname or top, alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, f"{module.origin(node)}.{alias.name}") for alias in node.names)


def _runs_at_import(part: ast.stmt) -> bool:
    if isinstance(part, Function):
        return bool(part.decorator_list)  # a route or a command: whoever decorates it calls it
    return not isinstance(part, ast.ClassDef | ast.Assign | ast.AnnAssign)


def _dotted(node: ast.AST) -> str:
    """A name, or names with dots between them; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _methods(definition: ast.ClassDef) -> dict[str, Function]:
    return {part.name: part for part in definition.body if isinstance(part, Function)}


def _decorators(function: Function) -> set[str]:
    return {_dotted(one).rpartition(".")[2] for one in function.decorator_list}


def _is_property(function: Function) -> bool:
    return bool(_decorators(function) & {"property", "cached_property"})


def _kept(definition: ast.ClassDef, attribute: str, of: Named) -> Iterator[tuple[ast.expr | Said, Place]]:
    """What is assigned to `self.attribute` in the methods of a class."""
    for method in _methods(definition).values():
        place = Place(of.module, of)
        inside = Place(of.module, of, (_variables(method, place),))
        for target, value in _assignments(method, of.module):
            if _dotted(target) == f"self.{attribute}":
                yield value, inside


def _variables(function: Function | ast.Lambda, place: Place) -> Variables:
    """What a function's parameters and the names it assigns to may be."""
    found: Variables = {}
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for parameter in parameters:
        found[parameter.arg] = [Said(parameter.annotation, place.module)] if parameter.annotation else []
    is_method = isinstance(function, Function) and not place.variables and "staticmethod" not in _decorators(function)
    if is_method and place.around and parameters:
        found[parameters[0].arg] = [Said(ast.Name(place.around.name), place.around.module)]
    for target, value in _assignments(function, place.module):
        if isinstance(target, ast.Name):
            found.setdefault(target.id, []).append(value)
    return found


def _assignments(function: ast.AST, module: str) -> Iterator[tuple[ast.expr, ast.expr | Said]]:
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(target=target, annotation=annotation):
                yield target, Said(annotation, module)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _paired(target, value)
            case ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield target, value
            case ast.comprehension(target=target, iter=value):
                yield target, value
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                yield target, value


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value, where as many stand on both sides."""
    if isinstance(target, ast.Tuple):
        same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        values = value.elts if same and isinstance(value, ast.Tuple) else [value] * len(target.elts)
        for one, its in zip(target.elts, values, strict=True):
            yield from _paired(one, its)
    else:
        yield target, value
