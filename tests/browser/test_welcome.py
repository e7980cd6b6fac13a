"""The page that a newcomer opens first, in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, pool_in

pytestmark = pytest.mark.needs("chromium")

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home) as started:
        started.up().set_up()
        yield started


@pytest.fixture
def page(pool: Pool) -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(QUIET))
        yield browser.new_page(base_url=pool.running[0].url, viewport={"width": 1000, "height": 760})
        browser.close()


def test_the_page_tells_how_the_pool_is_and_what_happens(pool: Pool, page: Page, tmp_path: Path) -> None:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("/")
    expect(page.locator("#state")).to_contain_text("Ready")
    expect(page.locator("#events")).to_contain_text("The pool began, with Tidemill")
    pool.run("admin", "stop", "payouts", "--reason", "<b>shown as it was typed</b>")
    expect(page.locator("#events li").first).to_contain_text("stopped payouts. Reason: <b>shown as it was typed</b>")
    expect(page.locator("#events")).not_to_contain_text("[object")
    page.set_viewport_size({"width": 380, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "it fits a phone"
    page.screenshot(path=tmp_path / "welcome.png")
    assert errors == []
