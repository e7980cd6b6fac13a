"""The tools agree: lint, form, types."""

import subprocess
import sys
import tomllib

import pytest

from tests.tidy.source import ROOT


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        ("ruff check --output-format=concise .", "Run `make format`, and put right by hand what it leaves."),
        ("ruff format --check .", "Run `make format`."),
        ("mypy --strict", "The whole package is typed: `make lint` shows the same."),
    ],
    ids=["lint", "form", "types"],
)
def test_the_tool_finds_nothing(command: str, advice: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        pytest.fail(f"{advice}\n{found.stdout[-6000:]}{found.stderr[-2000:]}", pytrace=False)


def test_types_are_checked_strictly_and_everywhere() -> None:
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert mypy["strict"] is True
    assert mypy["packages"] == ["tidemill"]
    assert not {"exclude", "ignore_errors", "ignore_missing_imports"} & mypy.keys()
    loose = [one["module"] for one in mypy.get("overrides", []) if one.get("ignore_errors")]
    assert not loose, "no module of ours is left out"
