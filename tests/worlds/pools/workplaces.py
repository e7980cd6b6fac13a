"""A pool with one owner's node and one of the house, both real agents, and customers at their desks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, Machine, house_token, join_token, machines_in
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, People, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.accounts.roles import Role

PRICES = {"owner": 2, "house": 40}


@dataclass
class Workplace:
    """The pool, its two machines, and who works there."""

    running: Running
    people: People
    owner: Machine
    house: Machine

    def customer(self, place: Path, balance: int = 100) -> tuple[Customer, Desk]:
        """Somebody with so many credits, at a desk of their own."""
        place.mkdir(exist_ok=True)
        customer = Shop(self.running, self.people).customer(balance)
        desk = Desk(place / "home", self.running.port, place)
        desk.keep(customer.person, self.people.session(customer.person))
        return customer, desk

    def rule(self, machine: Machine, **rules: Any) -> None:
        """What an owner wants of a machine."""
        path = f"/api/v1/nodes/{machine.node_id}/rules"
        answer = self.running.put(path, headers=self.running.operator, json=rules)
        assert answer.status_code == 200, answer.text

    def until_selling(self, nodes: int) -> None:
        path = "/api/v1/marketplace/cluster/status"
        until(lambda: self.running.get(path, headers=self.running.operator).json()["nodes"] == nodes, "nodes", 60)

    def throw(self, verb: str, switch: str = "placement", reason: str = "moving racks") -> None:
        path = f"/api/v1/admin/switches/{switch}/{verb}"
        answer = self.running.post(path, headers=self.running.operator, json={"reason": reason})
        assert answer.status_code == 200, answer.text


@contextmanager
def workplace() -> Iterator[Workplace]:
    """The owner's node is the cheaper one, so it is asked first."""
    with (
        reachable_directory() as home,
        pool_in(home, **MANY, **LIGHT) as pool,
        machines_in(home, 2, PATH="/nowhere") as [owner, house],
    ):
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            owner.join(running.url, join_token(running, people, people.person(Role.PROVIDER)))
            house.join(running.url, house_token(running, people))
            made = Workplace(running, people, owner, house)
            for machine, price in zip((owner, house), PRICES.values(), strict=True):
                made.rule(machine, price=price)
                machine.start()
            made.until_selling(2)
            yield made
        assert '"bug"' not in running.said()
