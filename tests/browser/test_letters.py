"""Every letter in a real browser: it fits a phone, follows a dark screen, and asks nobody for anything."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.test_welcome import QUIET
from tests.core.notices.test_mail_texts import EACH, MASTHEAD, sample
from tidemill.core.notices.mail import LetterKind, render
from tidemill.core.notices.mail.letters import PARAMETERS

pytestmark = pytest.mark.needs("chromium")

LONG = "/confirm#" + "x7Fq9" * 40


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(QUIET))
        yield launched
        launched.close()


@pytest.mark.parametrize("width", [360, 800])
def test_every_letter_fits_and_loads_nothing(browser: Browser, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 600})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for kind, language in EACH:
        changed = {"link": LONG} if "link" in PARAMETERS[kind] else {}
        page.set_content(render(sample(kind, language, **changed), MASTHEAD).html)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (kind, language)
        assert page.locator("h1").inner_text()
    assert asked == []
    page.close()


def test_a_letter_follows_a_dark_screen(browser: Browser) -> None:
    lightness = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.set_content(render(sample(LetterKind.CONFIRM_ADDRESS), MASTHEAD).html)
        colours = page.evaluate(
            "['.card', 'h1'].map((one) => getComputedStyle(document.querySelector(one)))"
            ".map((style, place) => (place ? style.color : style.backgroundColor))"
            ".map((colour) => Number(colour.match(/[0-9]+/)[0]))"
        )
        lightness[scheme] = colours[0] > colours[1]
        page.close()
    assert lightness == {"light": True, "dark": False}
