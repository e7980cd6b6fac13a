"""The wheel holds the whole package and nothing else."""

import configparser
import importlib
import subprocess
import sys
from zipfile import ZipFile

import pytest

from tests.tidy.source import PACKAGE, ROOT
from tidemill import __version__

PROGRAM = ("tidemill", "tidemill.cli.__main__:main")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What is in the wheel, by name."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = folder.glob("*.whl")
    with ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: dict[str, bytes]) -> None:
    expected = {
        str(file.relative_to(PACKAGE.parent))
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    packed = {name for name in wheel if not name.startswith(_metadata())}
    assert packed == expected


def test_the_wheel_holds_what_the_program_reads_at_run_time(wheel: dict[str, bytes]) -> None:
    assert {"tidemill/py.typed", "tidemill/control/pages/welcome.html"} <= wheel.keys()
    assert {str(file.relative_to(PACKAGE.parent)) for file in PACKAGE.rglob("*.sql")} <= wheel.keys()


def test_the_wheel_carries_the_licence_and_no_tests(wheel: dict[str, bytes]) -> None:
    assert wheel[_metadata() + "licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert not [name for name in wheel if "test" in name.lower()]


def test_the_wheel_installs_the_command(wheel: dict[str, bytes]) -> None:
    points = configparser.ConfigParser()
    points.read_string(wheel[_metadata() + "entry_points.txt"].decode())
    assert list(points["console_scripts"].items()) == [PROGRAM]
    module, _, function = PROGRAM[1].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def _metadata() -> str:
    return f"tidemill-{__version__}.dist-info/"
