"""Pages that are generated say what the code says."""

import difflib
import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType

import pytest

from tests.tidy.source import ROOT, expect_none

PAGES = ("settings.md", "cli.md", "events.md", "api.md", "states.md")
FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_its_generator_writes(reference: ModuleType, name: str) -> None:
    pages: Mapping[str, Callable[[], str]] = reference.PAGES
    written = (FOLDER / name).read_text("utf-8") if (FOLDER / name).is_file() else ""
    difference = list(difflib.unified_diff(written.splitlines(), pages[name]().splitlines(), lineterm="", n=0))
    if difference:
        pytest.fail(f"docs/reference/{name}: run `make reference`.\n" + "\n".join(difference[:20]), pytrace=False)


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_plain_markdown(reference: ModuleType, name: str) -> None:
    text: str = reference.PAGES[name]()
    assert "\x1b" not in text
    assert text.startswith("<!-- Generated")
    assert text.endswith("\n")


def test_every_generated_page_has_a_generator(reference: ModuleType) -> None:
    assert set(PAGES) == set(reference.PAGES), "name the page in this test, too"
    generated = {page.name for page in FOLDER.glob("*.md") if page.read_text("utf-8").startswith("<!-- Generated")}
    expect_none(generated - set(PAGES), "Nothing in scripts/reference.py writes these pages any more: remove them.")
