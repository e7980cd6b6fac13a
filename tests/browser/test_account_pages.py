"""The pages of accounts in a real browser: setting up, coming in, looking after one's account, and some attacks."""

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.test_welcome import QUIET
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, PASSWORD, link_of, people_of
from tests.worlds.pools.pool import Pool, pool_in
from tests.worlds.pools.visitors import Aside, Visitors, fill, in_a_session, log_in, press, wait_for_account
from tidemill.control.http.statuses import STATUS
from tidemill.core.accounts.kyc import Kyc
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.notices.mail import LetterKind
from tidemill.store.accounts.logins import LoginResult

pytestmark = pytest.mark.needs("chromium")

OPERATOR = "first@operators.example"
NEW_PASSWORD = "quite another 5 words"
UNNAMED = """[...document.querySelectorAll("input:not([hidden]), select, textarea, button, img")]
    .filter((one) => !(one.labels?.[0] ?? one).textContent.trim() && !one.ariaLabel && one.getAttribute("alt") === null)
    .map((one) => one.outerHTML)"""
"""What a screen reader could not name."""


@dataclass(frozen=True)
class SetUp:
    """What the first operator has after setting the pool up."""

    totp: pyotp.TOTP
    recovery_codes: list[str]
    shown_after: str


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home, **MANY) as started:
        started.up().until_ready()
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def visitors(pool: Pool, browser: Browser, set_up: SetUp) -> Iterator[Visitors]:
    visitors = Visitors(browser, pool.running[0].url)
    yield visitors
    for context in browser.contexts:
        context.close()
    assert visitors.complaints == []


@pytest.fixture(scope="module")
def aside(pool: Pool, set_up: SetUp) -> Iterator[Aside]:
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        people = thread.submit(stack.enter_context, people_of(pool.running[0])).result()
        yield Aside(thread, people)
        thread.submit(stack.close).result()


@pytest.fixture(scope="module")
def set_up(pool: Pool, browser: Browser) -> SetUp:
    """The whole way of a new pool, from the link that was printed to the operator's account."""
    visitors = Visitors(browser, pool.running[0].url)
    page = visitors.new()
    page.goto(f"/setup#{printed_token(pool)}")
    assert page.evaluate("location.href").endswith("/setup"), "the secret leaves the address bar"
    fill(page, "#first", address=OPERATOR, password=PASSWORD, again=PASSWORD)
    press(page, "Go on")
    expect(page.locator(".qr")).to_be_visible()
    totp = pyotp.TOTP(page.locator(".secret").inner_text().replace(" ", ""))
    fill(page, "#factor", code="000000")
    press(page, "Switch on")
    expect(page.locator("#factor form .said")).to_contain_text("This code is wrong")
    fill(page, "#factor", code=totp.now())
    press(page, "Switch on")
    expect(page.locator(".codes li")).to_have_count(10)
    codes = page.locator(".codes li").all_inner_texts()
    press(page, "Copy")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").split() == codes
    with page.expect_download() as download:
        press(page, "Download")
    assert codes[9] in Path(download.value.path()).read_text()
    press(page, "Done")
    expect(page.locator(".codes")).to_be_visible()  # not before the tick
    page.get_by_label("I have kept them").check()
    press(page, "Done")
    page.get_by_role("link", name="My account").click()
    wait_for_account(page, OPERATOR)
    shown = page.locator("main").inner_text()
    page.context.close()
    assert visitors.complaints == []
    return SetUp(totp, codes, shown)


def printed_token(pool: Pool) -> str:
    return pool.running[0].said().partition("/setup#")[2].partition('"')[0].split()[0]


def test_a_pool_is_set_up_and_its_operator_logs_in_with_a_code(set_up: SetUp, visitors: Visitors) -> None:
    assert OPERATOR in set_up.shown_after
    assert "Operators need a second factor" not in set_up.shown_after
    page = visitors.new()
    log_in(page, OPERATOR)
    expect(page.get_by_label("Code")).to_be_focused()
    fill(page, "#login", code="123")
    press(page, "Log in")
    expect(page.locator(".said")).to_contain_text("The address, the password or the code is wrong")
    fill(page, "#login", code=set_up.totp.at(int(time.time()) + 30))  # the code of this half minute was shown already
    press(page, "Log in")
    wait_for_account(page, OPERATOR)
    press(page, "Log out")
    page.wait_for_url("**/login")
    page.goto("/account")
    page.wait_for_url("**/login")


def test_a_recovery_code_lets_its_owner_in_once(set_up: SetUp, visitors: Visitors) -> None:
    for said in ("", "wrong"):
        page = visitors.new()
        log_in(page, OPERATOR)
        fill(page, "#login", code=set_up.recovery_codes[0])
        press(page, "Log in")
        if said:
            expect(page.locator(".said")).to_contain_text(said)
        else:
            wait_for_account(page, OPERATOR)


def test_a_used_or_missing_set_up_link_leads_nowhere(pool: Pool, visitors: Visitors) -> None:
    page = visitors.new()
    page.goto("/setup")
    expect(page.locator("#lost")).to_contain_text("tidemill up")
    expect(page.locator("#first")).to_be_hidden()
    page.goto(f"/login?{time.time()}")
    page.goto(f"/setup#{printed_token(pool)}")
    fill(page, "#first", address="second@operators.example", password=PASSWORD, again=PASSWORD)
    press(page, "Go on")
    expect(page.locator("#first .said")).to_contain_text("set up already")


def test_who_registers_confirms_by_a_press_on_the_letters_link(aside: Aside, visitors: Visitors) -> None:
    page, address = visitors.new(), "new@people.example"
    page.goto("/register")
    fill(page, "#register", address=address, password=PASSWORD, again=PASSWORD)
    page.get_by_label("Earn with my own GPUs").check()
    press(page, "Make the account")
    page.wait_for_url("**/confirm")
    expect(page.get_by_label("E-mail address")).to_have_value(address)
    link = aside.letter(address, LetterKind.CONFIRM_ADDRESS)
    page.goto(f"/confirm#{link_of(link)}")
    page.reload()
    assert page.evaluate("location.hash") == ""
    log_in(page, address)
    expect(page.locator(".said")).to_contain_text("wrong")  # opening a link confirms nothing
    page.goto(f"/confirm#{link_of(link)}")
    press(page, "Confirm")
    fill(page, "#confirm", password=PASSWORD)
    press(page, "Confirm")
    page.get_by_role("link", name="Log in").click()
    log_in(page, address)
    wait_for_account(page, address)
    expect(page.locator("#roles")).to_contain_text("Provider")
    page.goto(f"/login?{time.time()}")
    wait_for_account(page, address)  # whoever is inside does not stand at the door


def test_who_registers_in_chinese_gets_a_chinese_letter_with_a_code(pool: Pool, visitors: Visitors) -> None:
    page, address = visitors.new(locale="zh-CN"), "chinese@people.example"
    page.goto("/register")
    assert page.locator("html").get_attribute("lang") == "zh-Hans"
    fill(page, "#register", address=address, password=PASSWORD, again=PASSWORD)
    page.locator("#register button").click()
    page.wait_for_url("**/confirm")
    (letter,) = [letter for letter in pool.json("mail") if letter["recipient"] == address]
    assert letter["language"] == "zh"
    text: str = pool.json("mail", "show", letter["id"])["text"]
    fill(page, "#confirm", code=next(line.strip() for line in text.splitlines() if _is_code(line.strip())))
    page.locator("#confirm button").click()
    fill(page, "#confirm", password=PASSWORD)
    page.locator("#confirm button").click()
    expect(page.locator("#done")).to_be_visible()


def _is_code(line: str) -> bool:
    return 6 <= len(line) <= 16 and line.replace("-", "").isalnum() and any(c.isdigit() for c in line)


def test_a_forgotten_password_is_reset_by_the_letters_link(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    inside = in_a_session(aside, visitors, person)
    page = visitors.new()
    page.goto("/forgot")
    fill(page, "#forgot", address=person.address)
    press(page, "Send the letter")
    page.wait_for_url("**/reset")
    inside.goto(f"/reset#{link_of(aside.letter(person.address, LetterKind.RESET_PASSWORD))}")
    assert inside.evaluate("location.hash") == ""
    fill(inside, "#reset", password=NEW_PASSWORD, again=NEW_PASSWORD + "!")
    press(inside, "Set the password")
    expect(inside.locator(".said").first).to_contain_text("The two passwords differ")
    fill(inside, "#reset", again=NEW_PASSWORD)
    press(inside, "Set the password")
    inside.get_by_role("link", name="Log in").click()
    # Every session has ended, also this browser's; its old cookie must not stand in its own way.
    log_in(inside, person.address, NEW_PASSWORD)
    wait_for_account(inside, person.address)


def test_a_wrong_password_is_answered_with_the_pools_sentence_in_the_visitors_language(
    aside: Aside, visitors: Visitors
) -> None:
    person = aside(lambda people: people.person())
    page = visitors.new()
    page.goto("/login")
    page.keyboard.type(person.address)
    page.keyboard.press("Tab")
    page.keyboard.type("wrong password 1")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_have_text(
        "The address, the password or the code is wrong: try again, or reset your password."
    )
    expect(page.get_by_role("button", name="Log in")).to_be_enabled()
    page.locator("#language").select_option("ru")
    expect(page.get_by_role("heading")).to_have_text("Вход")
    expect(page.locator(".said")).to_contain_text("Адрес, пароль или код неверны")
    page.reload()
    expect(page.get_by_role("heading")).to_have_text("Вход")


def test_a_key_is_made_shown_once_rotated_and_revoked(pool: Pool, aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page, running = in_a_session(aside, visitors, person), pool.running[0]
    page.get_by_text("Make a key").first.click()
    fill(page, "#key-form", name="<b>farm", networks="127.0.0.0/8\n203.0.113.7", expires="2099-01-31", cap="12.5")
    expect(page.get_by_label("change the pool")).to_be_hidden()
    press(page, "Make a key", "#key-form")
    key = page.locator("#key-secret").inner_text()
    assert running.get("/api/v1/account", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    item = page.locator("#key-list li")
    expect(item).to_contain_text("<b>farm")
    expect(item).to_contain_text("203.0.113.7")
    expect(item).to_contain_text("spent 0 of 12.5 credits")
    press(page, "I have kept it")
    assert key not in page.content()
    press(page, "Rotate", "#key-list")
    press(page, "Rotate", "dialog")
    expect(page.locator("#key-secret")).not_to_have_text(key)
    expect(page.locator("#key-list li")).to_have_count(2)
    while (left := page.locator("#key-list li").count()) > 0:
        page.locator("#key-list").get_by_role("button", name="Revoke").first.click()
        press(page, "Revoke", "dialog")
        expect(page.locator("#key-list li")).to_have_count(left - 1)
    assert running.get("/api/v1/account", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_a_mistake_in_a_key_is_said_beside_its_form_and_loses_nothing(aside: Aside, visitors: Visitors) -> None:
    page = in_a_session(aside, visitors, aside(lambda people: people.person()))
    page.get_by_text("Make a key").first.click()
    fill(page, "#key-form", name="farm", networks="somewhere")
    press(page, "Make a key", "#key-form")
    expect(page.locator("#key-form .said")).to_contain_text("Allowed networks are")
    expect(page.locator("#key-form [name=name]")).to_have_value("farm")


def test_another_session_is_ended_and_its_browser_is_shown_the_door(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    other = in_a_session(aside, visitors, person)
    page = visitors.new()
    log_in(page, person.address)
    wait_for_account(page, person.address)
    expect(page.locator("#session-list li")).to_have_count(2)
    press(page, "End", "#session-list")
    expect(page.locator("#session-list li")).to_have_count(1)
    other.reload()
    other.wait_for_url("**/login")
    log_in(other, person.address)
    wait_for_account(other, person.address)


def test_a_session_goes_on_when_its_access_token_is_gone_in_all_tabs_at_once(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page = visitors.new()
    log_in(page, person.address)
    wait_for_account(page, person.address)
    assert page.evaluate("document.cookie") == "", "scripts see no token"
    tabs = [visitors.watched(page.context.new_page()) for _ in range(3)]
    page.context.clear_cookies(name="tidemill_access")
    for tab in tabs:
        tab.goto("/account", wait_until="commit")
    for tab in tabs:
        wait_for_account(tab, person.address)
    page.evaluate("localStorage.setItem('tidemill_until', Date.now() + 1000)")  # its end is near
    with page.expect_response("**/auth/refresh"):
        page.reload()
    wait_for_account(page, person.address)


def test_a_tab_never_shows_one_account_and_acts_for_another(aside: Aside, visitors: Visitors) -> None:
    one, other = (aside(lambda people: people.person()) for _ in range(2))
    page = visitors.new()
    log_in(page, one.address)
    wait_for_account(page, one.address)
    tab = visitors.watched(page.context.new_page())
    tab.goto("/account")
    wait_for_account(tab, one.address)
    press(page, "Log out")
    page.wait_for_url("**/login")
    tab.wait_for_url("**/login")
    tab.goto("about:blank")
    log_in(page, one.address)
    wait_for_account(page, one.address)
    tab.context.clear_cookies()
    tab.goto("/forgot")
    tab.evaluate("localStorage.clear()")
    log_in(tab, other.address)
    wait_for_account(tab, other.address)
    wait_for_account(page, other.address)


def test_going_back_shows_neither_the_account_nor_a_password(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page = visitors.new()
    log_in(page, person.address)
    wait_for_account(page, person.address)
    press(page, "Log out")
    page.wait_for_url("**/login")
    page.go_back()
    page.wait_for_url("**/login")
    expect(page.get_by_label("Password")).to_have_value("")


def test_what_needs_a_fresh_password_asks_for_it_and_goes_on(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page = visitors.inside(aside(lambda people: people.session(person, age_s=3600)))
    wait_for_account(page, person.address)
    fill(page, "#password-form", password=NEW_PASSWORD, again=NEW_PASSWORD)
    press(page, "Change the password")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Change the password")).to_be_enabled()
    expect(page.locator("#password-form .said")).to_have_text("")
    press(page, "Change the password")
    fill(page, "dialog", password="wrong password 1")
    press(page, "Go on", "dialog")
    expect(page.locator("dialog .said")).to_contain_text("wrong")
    fill(page, "dialog", password=PASSWORD)
    press(page, "Go on", "dialog")
    expect(page.locator("#password-form .said")).to_contain_text("Changed")
    press(page, "Log out")
    page.wait_for_url("**/login")
    log_in(page, person.address, NEW_PASSWORD)
    wait_for_account(page, person.address)


def test_a_second_factor_is_switched_on_renewed_and_off_again(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person(second_factor=True))
    page = in_a_session(aside, visitors, person)
    press(page, "New recovery codes")
    press(page, "New recovery codes", "dialog")
    code = page.locator(".codes li").first.inner_text()
    page.get_by_label("I have kept them").check()
    press(page, "Done")
    press(page, "Switch it off")
    fill(page, "dialog", code="123456")
    press(page, "Switch it off", "dialog")
    expect(page.locator("dialog .said")).to_contain_text("wrong")
    fill(page, "dialog", code=code)
    press(page, "Switch it off", "dialog")
    page.wait_for_url("**/login")
    log_in(page, person.address)
    wait_for_account(page, person.address)
    expect(page.locator("#factor-state")).to_contain_text("Off")
    press(page, "Switch it on")
    totp = pyotp.TOTP(page.locator(".secret").inner_text().replace(" ", ""))
    fill(page, "#factor", code=totp.now())
    press(page, "Switch on")
    page.get_by_label("I have kept them").check()
    press(page, "Done")
    expect(page.locator("#factor-state")).to_contain_text("On")


def test_roles_language_and_address_are_changed(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page, moved = in_a_session(aside, visitors, person), f"moved-{person.address}"
    page.get_by_label("Earn with my own GPUs").check()
    press(page, "Save", "#roles-form")
    expect(page.locator("#roles")).to_contain_text("Provider")
    press(page, "Ask to be verified")
    expect(page.locator("#kyc-state")).to_have_text("an operator looks at it")
    page.get_by_label("Language of letters").select_option("ru")
    press(page, "Save", "#language-form")
    expect(page.locator("#language-form .said")).to_have_text("Saved.")
    fill(page, "#address-form", address=moved)
    press(page, "Change the address")
    expect(page.locator("#address-form .said")).to_contain_text(moved)
    letter = aside.letter(moved, LetterKind.CONFIRM_NEW_ADDRESS)
    assert letter.language == "ru"
    page.goto(f"/confirm#{link_of(letter)}")
    press(page, "Confirm")
    expect(page.locator("#done")).to_be_visible()
    page.goto("/account")
    wait_for_account(page, moved)


def test_an_account_is_deleted_only_by_its_typed_address(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page = in_a_session(aside, visitors, person)
    press(page, "Delete my account")
    fill(page, "dialog", typed="somebody@else.example")
    press(page, "Delete my account", "dialog")
    expect(page.locator("dialog .said")).to_contain_text("not the address")
    fill(page, "dialog", typed=person.address)
    press(page, "Delete my account", "dialog")
    expect(page.get_by_role("heading", name="Your account is deleted.")).to_be_visible()
    page.goto("/")
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    log_in(page, person.address)
    expect(page.locator(".said")).to_contain_text("wrong")


def test_the_welcome_page_knows_who_is_inside(aside: Aside, visitors: Visitors) -> None:
    person = aside(lambda people: people.person())
    page = visitors.new()
    log_in(page, person.address)
    wait_for_account(page, person.address)
    page.goto("/")
    expect(page.locator("#inside")).to_contain_text(person.address)
    expect(page.locator("#door")).to_be_hidden()


def test_markup_in_the_address_bar_or_in_a_session_runs_nothing(aside: Aside, visitors: Visitors) -> None:
    page = visitors.new()
    for path in ("/confirm", "/reset", "/setup"):
        page.goto(f"{path}#<img src=x onerror=window.hit=1>%zz")
        expect(page.locator("h1:visible")).to_have_count(1)
        assert page.evaluate("location.hash") == ""
        assert page.evaluate("window.hit") is None
    person = aside(lambda people: people.person())
    inside = visitors.new(user_agent="<img src=x onerror=window.hit=1>")
    log_in(inside, person.address)
    wait_for_account(inside, person.address)
    for place in ("#session-list", "#login-list"):
        expect(inside.locator(place)).to_contain_text("<img src=x onerror=window.hit=1>")
    with pytest.raises(Exception, match="TrustedHTML"):
        inside.evaluate("document.querySelector('main').innerHTML = '<img src=x onerror=window.hit=1>'")
    assert inside.evaluate("window.hit") is None
    visitors.complaints[:] = [one for one in visitors.complaints if "TrustedHTML" not in one]


def test_no_page_may_be_framed_or_sends_a_form_elsewhere(pool: Pool) -> None:
    for path in ("/", "/setup", "/login", "/register", "/confirm", "/forgot", "/reset", "/account"):
        answer = pool.running[0].get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        for part in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"):
            assert part in policy
        assert "onclick" not in answer.text
        assert "<style" not in answer.text


def test_files_of_the_pages_are_kept_by_browsers_until_they_change(pool: Pool) -> None:
    first = pool.running[0].get("/pages/page.js")
    again = pool.running[0].get("/pages/page.js", headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    for name in ("shell.html", "..%2Froutes%2Fpages.py", "%2e%2e", "nothing.js", "page.js%00"):
        assert pool.running[0].get(f"/pages/{name}").status_code == 404


def test_every_text_is_there_in_every_language(visitors: Visitors) -> None:
    page = visitors.new()
    page.goto("/login")
    keys = page.evaluate(
        "import('/pages/texts.js').then(({ TEXTS }) => Object.values(TEXTS).map((texts) =>"
        " Object.entries(texts).map(([key, text]) => `${key} ${(text.match(/{[a-z]+}/g) ?? []).sort()}`).sort()))"
    )
    assert len(keys) == 3
    assert keys[0] == keys[1] == keys[2]
    named = {
        *(f"role_{role}" for role in Role),
        *(f"kyc_{state}" for state in Kyc),
        *(f"login_{result}" for result in LoginResult),
        *(f"scope_{scope.replace(':', '_')}" for scope in Scope),
    }
    assert named <= {key.split()[0] for key in keys[0]}
    refusals = page.evaluate(
        "import('/pages/texts.js').then(({ REFUSALS }) => Object.values(REFUSALS).map(Object.keys))"
    )
    assert refusals[0] == refusals[1]
    assert set(refusals[0]) - {"no_answer"} <= {refusal.code for refusal in STATUS}


def test_every_page_fits_every_window_in_every_language(aside: Aside, visitors: Visitors, tmp_path: Path) -> None:
    person = aside(lambda people: people.person(address=f"{'long' * 12}@people.example"))
    page = visitors.new()
    for path in ("/setup#x", "/setup", "/register", "/confirm", "/confirm#x", "/forgot", "/reset", "/login", "/"):
        page.goto("about:blank")
        page.goto(path)
        _look(page, tmp_path / (path[1:].replace("#", "-") or "welcome"))
    log_in(page, person.address, "wrong password 1")
    _look(page, tmp_path / "wrong")
    log_in(page, person.address)
    wait_for_account(page, person.address)
    page.locator("summary").click()
    page.locator("#factor-on").click()
    page.locator(".qr").wait_for()
    _look(page, tmp_path / "account")


def _look(page: Page, file: Path) -> None:
    page.locator(".written").wait_for()
    for language, width, scheme in (("zh", 360, "light"), ("ru", 360, "dark"), ("en", 1280, "light")):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        page.locator("#language").select_option(language)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{file.name} is too wide"
        assert page.evaluate("[...document.querySelectorAll('[data-text]')].every((one) => one.textContent)")
        assert page.evaluate(UNNAMED) == []
        page.screenshot(path=f"{file}-{language}-{width}-{scheme}.png", full_page=True)
