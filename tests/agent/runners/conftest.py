"""A sandbox of the test's own, which must have left nothing behind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import Cell, opened_cell


@pytest.fixture
async def cell(place: Path) -> AsyncIterator[Cell]:
    async with opened_cell(place) as opened:
        yield opened
