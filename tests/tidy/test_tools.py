"""The tools look at everything. `.ci/run` runs them before the tests."""

import tomllib

from tests.tidy.source import ROOT


def test_types_are_checked_strictly_and_everywhere() -> None:
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert mypy["strict"] is True
    assert mypy["packages"] == ["tidemill"]
    assert not {"exclude", "ignore_errors", "ignore_missing_imports"} & mypy.keys()
    loose = [one["module"] for one in mypy.get("overrides", []) if one.get("ignore_errors")]
    assert not loose, "no module of ours is left out"
