"""The page on adding a runner is true: what it prints, put where it says, works in the real sandbox."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

pytestmark = pytest.mark.needs("bubblewrap", "python3")
PAGE = ROOT / "docs" / "how-to" / "add-a-runner.md"
BLOCK = re.compile(r"^`((?:src|tests)/\S+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORT = "from tidemill.agent.runners.letters import LettersRunner"
REGISTERED = {
    "src/tidemill/core/jobs/kinds/__init__.py": (
        ("embed, matmul,", "embed, letters, matmul,"),
        ("(matmul.KIND,", "(letters.KIND, matmul.KIND,"),
    ),
    "src/tidemill/agent/runners/__init__.py": (
        ("import OUT, ResultFiles, Runner\n", f"import OUT, ResultFiles, Runner\n{IMPORT}\n"),
        ("(MatmulRunner(),", "(LettersRunner(), MatmulRunner(),"),
    ),
}  # fmt: skip
"""What the page says in words: import, and add to the table."""


def test_a_runner_as_the_page_prints_it_works(place: Path) -> None:
    project = place / "project"
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", project)
    blocks = dict(BLOCK.findall(PAGE.read_text("utf-8")))
    assert len(blocks) == 4
    for name, text in blocks.items():
        (project / name).write_text(text, "utf-8")
    for name, changes in REGISTERED.items():
        text = (project / name).read_text("utf-8")
        for before, after in changes:
            assert text.count(before) == 1, f"{name} has changed: {before}"
            text = text.replace(before, after)
        (project / name).write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, "tests/agent/runners/test_letters.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project / 'src'}:{project}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert ran.stdout.startswith("..")
