"""What the pool's pages show of work: nodes and prices to everybody, jobs and machines to whose they are."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.test_welcome import QUIET
from tests.control.jobs.test_jobs import MATMUL
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import join_token
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tests.worlds.pools.visitors import log_in, wait_for_account
from tests.worlds.pools.wire_agents import Door
from tests.worlds.pools.work_pools import activate, hands
from tidemill.core.accounts.roles import Role

pytestmark = pytest.mark.needs("chromium")

WIDTHS = (360, 1000)


@dataclass
class Market:
    """A pool with two machines of one owner and a customer with jobs."""

    running: Running
    people: People
    owner: Person
    customer: Person
    job_ids: list[str]


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    with reachable_directory() as home, pool_in(home, **MANY) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            owner, customer = people.person(Role.PROVIDER), people.person(Role.CUSTOMER)
            people.deposit(customer, 10_000_000)
            _, secret, known_by = join_token(running, people, owner, 2).split(".")
            with hands(home, Door([running.port], known_by, secret), range(2)):
                people.run(activate(home, 2))
                status = "/api/v1/marketplace/cluster/status"
                until(lambda: running.get(status).json()["nodes"] == 2, "two nodes are for sale")
                yield Market(running, people, owner, customer, _jobs(running, people, customer))


def _jobs(running: Running, people: People, customer: Person) -> list[str]:
    """One that is only quoted, and one that is confirmed."""
    headers, job_ids = people.session(customer).bearer, []
    for name in ("only asked", "for real"):
        made = running.post("/api/v1/marketplace/jobs", headers=headers, json={**MATMUL, "name": name})
        assert made.status_code == 201, made.text
        job_ids.append(made.json()["id"])
    assert running.post(f"/api/v1/marketplace/jobs/{job_ids[1]}/confirm", headers=headers).status_code == 200
    return job_ids


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def page(market: Market, browser: Browser) -> Iterator[Page]:
    errors: list[str] = []
    context = browser.new_context(base_url=market.running.url, locale="en-GB")
    opened = context.new_page()
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


def test_everybody_sees_nodes_prices_and_the_queue_and_events_in_words(
    page: Page, market: Market, tmp_path: Path
) -> None:
    page.goto("/")
    expect(page.locator("#supply")).to_contain_text("Nodes: 2, busy: ")
    expect(page.locator("#prices li")).to_have_count(1)
    expect(page.locator("#prices")).to_contain_text("Processor, no GPU")
    expect(page.locator("#prices")).to_contain_text("credits an hour")
    expect(page.locator("#queue")).to_contain_text("Tasks waiting:")
    expect(page.locator("#events")).to_contain_text("The pool began")
    _fits(page, tmp_path, "welcome")
    for language in ("ru", "zh"):
        page.select_option("#language", language)
        expect(page.locator("main")).not_to_contain_text("undefined")
        expect(page.locator("main")).not_to_contain_text("{")


def test_a_customer_sees_their_jobs_and_what_they_cost(page: Page, market: Market, tmp_path: Path) -> None:
    _log_in(page, market.customer)
    expect(page.locator("#job-list li")).to_have_count(2)
    newest, first = page.locator("#job-list li").nth(0), page.locator("#job-list li").nth(1)
    expect(newest).to_contain_text(f"for real {market.job_ids[1][-8:]}")
    expect(newest).to_contain_text("are held")
    expect(first).to_contain_text("Not confirmed; nothing is held")
    expect(page.locator("#nodes")).to_be_hidden()
    newest.locator("summary").click()
    expect(newest).to_contain_text(market.job_ids[1])
    expect(newest).to_contain_text(f"tidemill jobs show {market.job_ids[1][-8:]}")
    _fits(page, tmp_path, "customer")


def test_an_owner_sees_their_machines_and_nobody_elses_jobs(page: Page, market: Market, tmp_path: Path) -> None:
    _log_in(page, market.owner)
    expect(page.locator("#node-list li")).to_have_count(2)
    expect(page.locator("#node-list li").first).to_contain_text("a simulated processor")
    expect(page.locator("#node-list li").first).to_contain_text("active")
    expect(page.locator("#jobs")).to_be_hidden()
    page.locator("#node-list summary").first.click()
    expect(page.locator("#node-list li").first).to_contain_text("tidemill nodes show")
    _fits(page, tmp_path, "owner")


def _log_in(page: Page, person: Person) -> None:
    log_in(page, person.address)
    wait_for_account(page, person.address)


def _fits(page: Page, place: Path, name: str) -> None:
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} fits {width} px"
        page.screenshot(path=place / f"{name}-{width}.png", full_page=True)
