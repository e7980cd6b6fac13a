"""The place of a home: neutral, random, found again, and gone with the home."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tidemill.agent.home.home import Home
from tidemill.agent.home.home import prepare as prepare_home
from tidemill.agent.home.leave_wish import forget_everything
from tidemill.agent.home.place import ABANDONED_S, kept_place, prepare_place, remove_abandoned

NOBODY = 65534


@contextmanager
def as_nobody_if_root(owned: Path) -> Iterator[None]:
    """Nothing is closed to root, so root acts as somebody else, who owns the directory."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(owned, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def prepare(home: Home) -> None:
    prepare_home(home)
    prepare_place(home.path)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "house" / "agent")
    prepare(made)
    return made


def test_a_home_keeps_its_place_and_leaving_removes_it(home: Home) -> None:
    place = home.place
    prepare(home)
    assert home.place == place
    assert place.is_dir()
    assert {home.runs.parent, home.images.parent, home.cache.parent} == {place}
    assert place.parent == home.path.parent
    assert "agent" not in place.name
    with kept_place(home.path):
        home.cache.mkdir()
    forget_everything(home)
    assert not place.exists()
    assert home.place == home.path


def test_two_homes_have_two_places(home: Home) -> None:
    other = Home(home.path.with_name("other"))
    prepare(other)
    assert other.place != home.place


def test_a_home_whose_surroundings_are_closed_has_its_place_inside() -> None:
    with reachable_directory() as closed:
        home = Home(closed / "agent")
        with as_nobody_if_root(closed):
            prepare_home(home)
            closed.chmod(0o500)
            prepare_place(home.path)
            assert home.place.parent == home.path
            closed.chmod(0o700)


def test_a_place_goes_when_its_home_is_gone(home: Home) -> None:
    place, later_s = home.place, time.time() + ABANDONED_S + 60
    remove_abandoned(place.parent, later_s)
    assert place.exists()
    home.path.rename(home.path.with_name("moved"))
    remove_abandoned(place.parent, time.time())
    assert place.exists(), "its home may be about to be made"
    remove_abandoned(place.parent, later_s)
    assert not place.exists()
