"""`tidemill run` against a real pool with a real agent: ordered, placed, proved, paid and fetched in one line."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.places import reachable_directory
from tests.system.agents import LIGHT, join_token, machines_in, until_linked
from tests.system.desk import Desk
from tests.system.people import MANY, people_of
from tests.system.pool import pool_in, until
from tests.system.test_jobs import Customer, Shop
from tidemill.core.accounts.roles import Role


@pytest.fixture(scope="module")
def ann() -> Iterator[Customer]:
    """A customer of a pool with one node that may get work."""
    with reachable_directory() as home, pool_in(home, **MANY, **LIGHT) as pool, machines_in(home, 1) as machines:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            (machine,) = machines
            machine.join(running.url, join_token(running, people, people.person(Role.PROVIDER)))
            machine.start()
            until_linked(machine)
            customer = Shop(running, people).customer(10)
            until(lambda: _nodes(customer) == 1, "the node may get work", 60)
            yield customer
        assert '"bug"' not in running.said()


def _nodes(customer: Customer) -> int:
    path = "/api/v1/marketplace/cluster/status"
    found: int = customer.shop.running.get(path, headers=customer.headers).json()["nodes"]
    return found


@pytest.mark.needs("bubblewrap")
def test_one_line_multiplies_matrices_and_tells_result_verdict_and_price(ann: Customer, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home", ann.shop.running.port, tmp_path)
    desk.keep(ann.person, ann.shop.people.session(ann.person))
    before_uc = ann.available_uc
    sizes = ("--m", "64", "--n", "64", "--k", "64", "--tasks", "2")
    done = desk.json("run", "matmul", *sizes, "--output", str(tmp_path / "out"))
    assert done["job"]["state"] == "completed"
    assert [one["verdict"] for one in done["results"]] == ["pass", "pass"]
    assert 0 < float(done["job"]["spent"]) <= float(done["job"]["quote"]["high"])
    assert before_uc - ann.available_uc == round(float(done["job"]["spent"]) * 1_000_000)
    products = [file for file in sorted((tmp_path / "out").rglob("*")) if file.is_file()]
    assert len(products) == 2, products
    assert np.load(tmp_path / "out" / "task-0" / "c.npy").shape == (64, 64)
    used = ann.get(f"/{done['job']['id']}/resources").json()["items"]
    assert all(float(one["paid"]) > 0 for one in used)
