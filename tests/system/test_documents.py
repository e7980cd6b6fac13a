"""README and every how-to do what they say: each command as printed, in the order of the page, in a demonstration."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source import ROOT
from tests.worlds.documents.reader import reading
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT
from tests.worlds.pools.people import MANY
from tests.worlds.pools.pool import Running, pool_in, until

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.timeout(400)]
AT_A_TERMINAL = {"TIDEMILL_LOG_FORMAT": "console", "TIDEMILL_LOG_LEVEL": "warning"}
JOINED_S = 180.0
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


@pytest.fixture(scope="module")
def demonstration() -> Iterator[Running]:
    with reachable_directory() as home, pool_in(home, **LIGHT, **MANY, **AT_A_TERMINAL) as pool:
        running = pool.up("--demo")
        running.until_ready()
        until(lambda: "All 5 nodes may get work" in running.said(), running.said, JOINED_S)
        yield running


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, demonstration: Running, place: Path) -> None:
    with reading(demonstration, place) as reader:
        wrong = list(reader.follow(page))
    assert not wrong, "\n\n".join(wrong)
