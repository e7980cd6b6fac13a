"""Visitors of a pool's pages: browsers without a past, people with accounts, and what visitors do most."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.worlds.pools.people import PASSWORD, OpenSession, People, Person
from tests.worlds.pools.pool import until
from tidemill.core.notices.mail import Letter, LetterKind

EXPECTED_NOISE = "Failed to load resource"
"""What Chromium writes for every answer of "no"; a test sees the "no" on the page."""

Found = TypeVar("Found")


class Aside:
    """People are made on a thread of their own: the browser's driver has the loop of this one."""

    def __init__(self, thread: ThreadPoolExecutor, people: People) -> None:
        self._thread = thread
        self._people = people

    def __call__(self, work: Callable[[People], Found]) -> Found:
        return self._thread.submit(work, self._people).result()

    def letter(self, address: str, kind: LetterKind) -> Letter:
        """The newest letter of a kind, when it has been written."""
        until(lambda: any(one.kind is kind for one in self(lambda people: people.letters(address))), f"{kind} is there")
        return self(lambda people: people.letter(address, kind))


class Visitors:
    """Browsers without a past. What their consoles complain about is kept."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self.complaints: list[str] = []

    def new(self, *, width: int = 1280, locale: str = "en-GB", user_agent: str | None = None) -> Page:
        context = self._browser.new_context(
            base_url=self._url,
            viewport={"width": width, "height": 800},
            locale=locale,
            user_agent=user_agent,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(10_000)
        return self.watched(context.new_page())

    def watched(self, page: Page) -> Page:
        page.on("console", lambda said: self._note(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def inside(self, session: OpenSession, **options: Any) -> Page:
        """A browser of somebody who has logged in."""
        page = self.new(**options)
        give_cookies(page.context, self._url, session)
        page.goto("/account")
        return page

    def _note(self, said: str) -> None:
        if not said.startswith(EXPECTED_NOISE):
            self.complaints.append(said)


def fill(page: Page, place: str, **values: str) -> None:
    for name, value in values.items():
        page.locator(f"{place} [name={name}]").fill(value)


def press(page: Page, name: str, place: str = "body") -> None:
    page.locator(place).get_by_role("button", name=name, exact=True).click()


def log_in(page: Page, address: str, password: str = PASSWORD) -> None:
    page.goto("/login")
    fill(page, "#login", address=address, password=password)
    press(page, "Log in")


def give_cookies(context: BrowserContext, url: str, session: OpenSession) -> None:
    given = {"url": url, "httpOnly": True, "sameSite": "Strict"}
    cookies = {"tidemill_access": session.access_token, "tidemill_refresh": session.refresh_token}
    context.add_cookies([{"name": name, "value": value, **given} for name, value in cookies.items()])  # type: ignore[list-item]


def wait_for_account(page: Page, address: str) -> None:
    page.wait_for_url("**/account")
    expect(page.locator("#address")).to_have_text(address)
    expect(page.locator("#address")).to_be_visible()


def in_a_session(aside: Aside, visitors: Visitors, person: Person, **options: Any) -> Page:
    page = visitors.inside(aside(lambda people: people.session(person)), **options)
    wait_for_account(page, person.address)
    return page
