"""Settings tell the truth: each is read by the running pool, and not only by checks of settings or by the simulator."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.tidy.reading import Named, Reads, Source
from tests.tidy.source import ROOT, Module, example, expect_none, modules
from tidemill.cli.command_table import COMMANDS
from tidemill.core.settings import Definition, Settings, catalogue
from tidemill.core.settings.tree import sections

SETTINGS = "tidemill.core.settings"
SIMULATOR = "tidemill.sim"

FELT_OTHERWISE = {
    "mail.smtp_plain_allowed": "it lets a process start that the check of it would keep from starting",
    "artefacts.s3_plain_allowed": "it lets a process start that the check of it would keep from starting",
}
"""Settings that `core/settings` itself acts on, and how. A check alone is no reason to be here."""


@dataclass(frozen=True)
class Field:
    """One setting as the code reads it: a field of a section's class."""

    setting: str
    section: Named
    attribute: str


def unread(program: Sequence[Module], roots: Sequence[str], fields: Sequence[Field]) -> Iterator[str]:
    """The settings that nothing reads of what the roots lead to."""
    source = Source(program)
    reads = Reads(source, {field.attribute for field in fields})
    running = (part for part in source.running(roots, SIMULATOR) if not f"{part[0]}.".startswith(f"{SETTINGS}."))
    found = {read for part in running for read in reads.of(part)}
    return (field.setting for field in fields if (field.section, field.attribute) not in found)


@pytest.fixture(scope="module")
def unread_here() -> set[str]:
    classes: Mapping[str, type] = {"": Settings} | dict(sections())
    return set(unread(modules(), list(_entry_points()), [_field(one, classes[one.section]) for one in catalogue()]))


def test_every_setting_is_read_by_the_running_pool(unread_here: set[str]) -> None:
    expect_none(
        unread_here - FELT_OTHERWISE.keys(),
        "A setting that nothing reads changes nothing: let the code that needs it bring it along.",
    )


def test_what_is_felt_otherwise_is_not_read_as_well(unread_here: set[str]) -> None:
    expect_none(FELT_OTHERWISE.keys() - unread_here, "These are read, or gone: take them off the table here.")


SECTIONS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class DoorSettings:
    open_s: float = 1.0
    size_mib: int = 1

@dataclass(frozen=True)
class LampSettings:
    open_s: float = 2.0

@dataclass(frozen=True)
class Settings:
    door: DoorSettings
    lamp: LampSettings
"""
DOOR, LAMP, SIZE = (
    Field(name, Named(f"{SETTINGS}.tree", of), attribute)
    for name, of, attribute in (
        ("door.open_s", "DoorSettings", "open_s"),
        ("lamp.open_s", "LampSettings", "open_s"),
        ("door.size_mib", "DoorSettings", "size_mib"),
    )
)
IMPORTS = f"from {SETTINGS}.tree import DoorSettings, LampSettings, Settings\n"

READ = {
    "a parameter": "def main(door: DoorSettings) -> float:\n    return door.open_s",
    "the whole tree": "def main(settings: Settings) -> float:\n    return settings.door.open_s",
    "a variable": "def main(settings: Settings) -> float:\n    door = settings.door\n    return door.open_s",
    "one of two": "def main(one: int, door: 'DoorSettings | None') -> float:\n    return door.open_s if door else one",
    "a nested function": "def main(door: DoorSettings) -> object:\n    return lambda: door.open_s",
    "a function that is called": "def main(door: DoorSettings) -> float:\n    return later(door)\n\n"
    "def later(door: DoorSettings) -> float:\n    return door.open_s",
    "what a function answers": "def main() -> float:\n    return load().door.open_s\n\ndef load() -> Settings: ...",
    "an attribute": "class Hall:\n    def __init__(self, settings: Settings) -> None:\n"
    "        self._door = settings.door\n    def wait(self) -> float:\n        return self._door.open_s\n\n"
    "def main() -> None:\n    Hall",
    "an inherited attribute": "class House:\n    settings: Settings\n\nclass Hall(House):\n"
    "    def wait(self) -> float:\n        return self.settings.door.open_s\n\ndef main() -> None:\n    Hall",
    "a route": "def main() -> None: ...\n\n@app.get('/')\ndef show(settings: Settings) -> float:\n"
    "    return settings.door.open_s",
}
NOT_READ = {
    "by nobody": "def main(door: DoorSettings) -> None: ...",
    "of another section": "def main(lamp: LampSettings) -> float:\n    return lamp.open_s",
    "of something unknown": "def main(door) -> float:\n    return door.open_s",
    "only written": "def main(door: DoorSettings) -> None:\n    door.open_s = 1.0",
    "by what is never called": "def main() -> None: ...\n\n"
    "def later(door: DoorSettings) -> float:\n    return door.open_s",
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_a_setting_that_is_read_is_found(text: str) -> None:
    assert list(_made_up({"control/hall.py": text})) == ["lamp.open_s", "door.size_mib"]


@pytest.mark.parametrize("text", NOT_READ.values(), ids=NOT_READ)
def test_a_setting_that_nobody_reads_is_noticed(text: str) -> None:
    assert "door.open_s" in set(_made_up({"control/hall.py": text}))


def test_what_only_the_simulator_or_a_check_of_settings_reads_is_noticed() -> None:
    reading = "def wait(door: DoorSettings) -> float:\n    return door.open_s\n"
    by_simulator = {
        "control/hall.py": "from tidemill.cli import sim\n\ndef main() -> None:\n    sim.run",
        "cli/sim/sim.py": (
            f"from tidemill.sim import world\nfrom tidemill.core import doors\n{reading}\nrun = doors.wait"
        ),
        "core/doors.py": reading,
        "sim/world.py": f"{reading}\nwait",
    }
    by_check = {
        "control/hall.py": f"from {SETTINGS} import checks\n\ndef main() -> None:\n    checks.wait",
        "core/settings/checks.py": reading,
    }
    assert "door.open_s" in set(_made_up(by_simulator))
    assert "door.open_s" in set(_made_up(by_check))


def test_a_function_of_core_counts_once_the_pool_calls_it_too() -> None:
    called = {
        "control/hall.py": "from tidemill.core.doors import wait\n\ndef main() -> None:\n    wait",
        "core/doors.py": "def wait(door: DoorSettings) -> float:\n    return door.open_s\n",
    }
    assert "door.open_s" not in set(_made_up(called))


def _made_up(texts: Mapping[str, str]) -> Iterator[str]:
    """What nobody reads in a small program, whose `main` is in control/hall.py."""
    written = [example(place, IMPORTS + text) for place, text in texts.items()]
    packages = {f"{name}/__init__.py": "" for name in ("control", "cli", "core", "core/settings", "sim")}
    program = [*written, example("core/settings/tree.py", SECTIONS), *(example(*one) for one in packages.items())]
    return unread(program, ["tidemill.control.hall.main"], [DOOR, LAMP, SIZE])


def _field(definition: Definition, section: type) -> Field:
    return Field(definition.name, Named(section.__module__, section.__name__), definition.attribute)


def _entry_points() -> Iterator[str]:
    """Where the program begins: its command, each command below it, and what is found by the names of entry points."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for group in (project["scripts"], *project["entry-points"].values()):
        yield from (place.replace(":", ".") for place in group.values())
    yield from (command.target.replace(":", ".") for command in COMMANDS.values())
