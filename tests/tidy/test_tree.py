"""The tree answers "where?": small folders, one word in every layer, no slivers, and one name for one class."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tests.tidy.source import Module, example, expect_none, modules

FOLDER_MAX = 15
SLIVER_LINES = 40
LAYERS = {"core", "store", "control", "cli"}

AREAS = {
    "accounts",
    "artefacts",
    "domains",
    "events",
    "jobs",
    "ledger",
    "models",
    "nodes",
    "notices",
    "operations",
    "placement",
    "rentals",
    "settlement",
    "trust",
}
"""One word for each area, the same in every layer."""

BESIDE_AREAS = {
    "core": {"matrices": "arithmetic that tasks, proofs and challenges share", "settings": "every setting, by section"},
    "store": {"embedded": "the server itself", "migrations": "the schema", "queries": "those of no area"},
    "control": {"http": "around every route", "loops": "the frame of loops", "pages": "the small pages for people"},
    "cli": {
        "agent": "commands on an owner's machine",
        "client": "how a pool is reached",
        "sim": "the simulator",
        "terminal": "what a terminal shows",
    },
}
"""Folders of a layer that are no area, and what is in them."""

TRANSLATIONS: dict[str, str] = {}
"""Public class names that two layers share because one translates the other's, and why. None is needed today."""

FAMILIES = {
    "core/settings/sections": "one section a module",
    "core/notices/mail": "one part of a letter a module",
    "core/placement/policies": "one policy a module, found by entry point",
    "agent/runners": "one kind a module",
    "agent/inside": "programs that run by themselves",
    "agent/sandboxes": "each loaded where it is needed, some in processes of their own",
    "artefacts": "each a part of one storage",
    "host": "each a thing of the operating system",
    "wire": "each a part of the protocol",
}
"""Folders whose small modules are alike, so that each has its own file."""

REGISTERED = ("area.py", "loop.py", "loops.py", "events.py", "__init__.py")
"""What registers itself, and so has a file of its own however small."""

STAND_ALONE = {
    "cli/operations/config.py": "a command, loaded when it is used",
    "control/app.py": "the application without the process around it",
    "control/placement/supply_cache.py": "a cache that may be dropped, apart from what uses it",
    "sim/days/chance.py": "draws that must never depend on anything else of a run",
    "store/embedded/attachment.py": "for processes that do not own the server",
}
"""Small modules with one importer that stay, and why."""


def crowded(paths: Iterable[str]) -> Iterator[str]:
    """Folders with more modules than one can look over; the file that makes a folder a package is none."""
    counted = Counter(path.rpartition("/")[0] for path in paths if not path.endswith("__init__.py"))
    return (f"{folder}: {count} modules" for folder, count in counted.items() if count > FOLDER_MAX)


def strange_folders(paths: Iterable[str]) -> Iterator[str]:
    """Folders of a layer that are neither an area nor said to be something else."""
    for path in paths:
        layer, _, rest = path.partition("/")
        folder = rest.partition("/")[0]
        if layer in LAYERS and "/" in rest and folder not in AREAS | BESIDE_AREAS[layer].keys():
            yield f"{layer}/{folder}"


def homonyms(found: Iterable[Module]) -> Iterator[str]:
    """Public classes that share a name."""
    places = defaultdict(list)
    for module in found:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.at(node))
    for name, where in places.items():
        if len(where) > 1 and name not in TRANSLATIONS:
            yield f"{name}: {', '.join(where)}"


def slivers(found: Iterable[Module]) -> Iterator[str]:
    """Small modules that one other module uses, and that could stand in it."""
    found = list(found)
    names = {module.name: module for module in found}
    importers = defaultdict(set)
    for module in found:
        for _, name in module.imports:
            used = name if name in names else name.rpartition(".")[0]
            importers[used].add(module.name)
    for module in found:
        short = len(module.text.splitlines()) < SLIVER_LINES
        folder = module.place.rpartition("/")[0]
        alone = len(importers[module.name]) == 1 and importers[module.name] != {module.name}
        kept = folder in FAMILIES or module.place.endswith(REGISTERED) or module.place in STAND_ALONE
        if short and alone and not kept:
            (importer,) = importers[module.name]
            if names[importer].package == module.package:
                yield f"{module.path}: only {importer} uses it"


def test_no_folder_is_crowded() -> None:
    expect_none(crowded(module.place for module in modules()), "Divide the folder by what its modules are about.")


def test_every_folder_of_a_layer_is_an_area() -> None:
    expect_none(
        strange_folders(module.place for module in modules()),
        "Use the area's word, or say in BESIDE_AREAS what the folder is.",
    )


def test_a_public_class_name_exists_once() -> None:
    expect_none(homonyms(modules()), "Call each by what it holds; a translation of a value says so in TRANSLATIONS.")


def test_no_module_is_a_sliver() -> None:
    expect_none(slivers(modules()), "Put it into the module that uses it, or say in STAND_ALONE why it stays.")


def test_a_crowded_folder_is_noticed() -> None:
    files = [f"core/jobs/module_{number}.py" for number in range(FOLDER_MAX)]
    assert not list(crowded([*files, "core/jobs/__init__.py"]))
    assert list(crowded([*files, "core/jobs/one_more.py"])) == [f"core/jobs: {FOLDER_MAX + 1} modules"]


def test_a_folder_that_is_no_area_is_noticed() -> None:
    assert list(strange_folders(["core/dispatch/placer.py", "core/jobs/job.py", "core/clock.py"])) == ["core/dispatch"]


def test_a_name_that_two_classes_share_is_noticed() -> None:
    first, second = example("core/a.py", "class Offer: ..."), example("wire/b.py", "class Offer: ...\nclass _Own: ...")
    assert list(homonyms([first, second])) == ["Offer: src/tidemill/core/a.py:1, src/tidemill/wire/b.py:1"]
    assert not list(homonyms([first, example("wire/b.py", "class _Offer: ...")]))


def test_a_sliver_is_noticed() -> None:
    small = example("control/jobs/small.py", "def one(): ...")
    user = example("control/jobs/user.py", "from tidemill.control.jobs.small import one")
    assert list(slivers([small, user])) == [
        "src/tidemill/control/jobs/small.py: only tidemill.control.jobs.user uses it"
    ]
    assert not list(slivers([small, user, example("control/jobs/other.py", "from tidemill.control.jobs import small")]))
