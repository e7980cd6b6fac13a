"""A node that lies, beside the pool's own, both real agents: it is not paid, and the customer gets what is right."""

from pathlib import PurePosixPath
from uuid import UUID

import pytest

from tests.control.jobs.test_jobs import Customer, Shop, uc
from tests.worlds.agents.cheating_agent import cheating_machines_in
from tests.worlds.agents.cheats import WrongResult
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, house_token, join_token, until_linked
from tests.worlds.pools.people import MANY, People, people_of
from tests.worlds.pools.pool import pool_in, until
from tidemill.core.accounts.roles import Role
from tidemill.core.jobs.result_archives import read_archive

SCRIPT = {
    "kind": "script",
    "parameters": {
        "program": "from pathlib import Path; Path('out/answer').write_text('right' * 10_000)",
        "seconds": 5,
    },
}


def nodes(customer: Customer) -> int:
    path = "/api/v1/marketplace/cluster/status"
    found: int = customer.shop.running.get(path, headers=customer.headers).json()["nodes"]
    return found


@pytest.mark.needs("bubblewrap")
def test_a_node_that_alters_results_is_not_paid_and_the_customer_gets_the_right_one() -> None:
    with reachable_directory() as home, pool_in(home, **MANY, **LIGHT) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people, cheating_machines_in(home, "liar", "house") as [liar, house]:
            ann = Shop(running, people).customer(10)
            liar.cheat(WrongResult())
            liar.join(running.url, join_token(running, people, people.person(Role.PROVIDER)))
            liar.start()
            until_linked(liar)
            until(lambda: nodes(ann) == 1, "the liar may get work", 60)
            job = ann.order(SCRIPT)
            assert ann.post(f"/{job['id']}/confirm").json()["code"] == "uncheckable", "there is no house node at all"
            house.join(running.url, house_token(running, people))
            house.start()
            until(lambda: nodes(ann) == 2, "the house node may get work", 60)
            job = ann.order(SCRIPT)
            assert ann.post(f"/{job['id']}/confirm").status_code == 200
            until(lambda: nodes(ann) == 2, house.said, 60)
            until(lambda: "waits for" not in told(ann, job["id"]), house.said, 60)
            until(lambda: ann.get(f"/{job['id']}").json()["state"] != "running", lambda: told(ann, job["id"]), 60)
            done = ann.over(job["id"])
            assert done["state"] == "completed", told(ann, job["id"])
            [wrong, right] = ann.get(f"/{job['id']}/resources").json()["items"]
            assert (wrong["node_id"], wrong["verdict"], uc(wrong["paid"])) == (liar.node_id, "fail", 0)
            assert (right["node_id"], right["verdict"]) == (house.node_id, "pass")
            [result] = ann.get(f"/{job['id']}/result").json()["items"]
            content = running.get(f"/api/v1/artefacts/{result['artefact_id']}/content", headers=ann.headers).content
            assert read_archive(content) == {PurePosixPath("answer"): b"right" * 10_000}
            assert people.run(kept(people)) == [ann.person.id, ann.person.id], "nothing is left of the audit"
            assert 0 < uc(done["spent"]) == 10_000_000 - ann.available_uc
        assert '"bug"' not in running.said()


async def kept(people: People) -> list[UUID]:
    """Whose the artefacts are that there are."""
    async with people.database.connection() as connection:
        return [row["account_id"] for row in await connection.fetch("SELECT account_id FROM artefact")]


def told(customer: Customer, job_id: str) -> str:
    """What is said of the job's attempts."""
    return " ".join(one["reason"] for one in customer.get(f"/{job_id}/resources").json()["items"])
