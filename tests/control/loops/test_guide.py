"""The page on adding a loop is true: what it prints, put where it says, passes the tests that it prints."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-a-loop.md"
FILE = re.compile(r"^`((?:src|tests)/\S+)`(?:,[^\n]*)?\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETTING_BEFORE = 'meaning="A node with less free disk alerts.")\n'
LOOP_BEFORE, LOOPS = (
    "        NodeHealthLoop(control),\n",
    "        SpeedLoop(control),\n        ForgetSpeedDuty(control),\n",
)
IMPORT_BEFORE = "from tidemill.control.nodes.node_registry import LinkRefusalLoop\n"
IMPORT = "from tidemill.control.nodes.speed_loop import ForgetSpeedDuty, SpeedLoop\n"
RULES = (
    "tests/control/loops/test_wake_ups.py::test_every_loop_names_kinds_that_something_records",
    "tests/store/test_queries.py",
)
"""Tests of ours that look at every loop and every query, also at those of the page."""


def test_a_loop_as_the_page_prints_it_works(place: Path) -> None:
    project = place / "project"
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", project)
    page = PAGE.read_text("utf-8")
    files = dict(FILE.findall(page))
    assert len(files) == 10
    for name, text in files.items():
        assert not (project / name).exists(), f"{name} exists: the page needs another name"
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, "utf-8")
    _extend(project / "src" / "tidemill", [block for block in BLOCK.findall(page) if block not in files.values()])
    tests = [name for name in files if name.startswith("tests/")]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests, *RULES],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project / 'src'}:{project}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert ran.stdout.startswith("." * 10)


def _extend(package: Path, blocks: list[str]) -> None:
    """Add what the page adds to files that exist: the events, the grant, the setting, the lines of the area."""
    events, grant, setting, area, _ = blocks
    assert LOOP_BEFORE + LOOPS in area
    _append(package / "core/nodes/events.py", f"\n\n{events}")
    _append(package / "store/migrations/grants.sql", grant)
    _insert(package / "core/settings/sections/work.py", SETTING_BEFORE, setting)
    _insert(package / "control/nodes/area.py", LOOP_BEFORE, LOOPS)
    _insert(package / "control/nodes/area.py", IMPORT_BEFORE, IMPORT)


def _append(file: Path, text: str) -> None:
    file.write_text(file.read_text("utf-8") + text, "utf-8")


def _insert(file: Path, before: str, text: str) -> None:
    """Add text behind what is before it."""
    old = file.read_text("utf-8")
    assert old.count(before) == 1, f"{file.name} has changed: {before}"
    file.write_text(old.replace(before, before + text), "utf-8")
