"""Links through a network that fails, processes that are killed, and outages of our own: nothing is lost or blamed.

Beats are a second apart where that saves minutes; the long runs take the pool's own times.
"""

import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import trustme

from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, Machine, join_token, machines_in, until_linked
from tests.worlds.pools.networks import NODE_ADDRESS, POOL_ADDRESS, one_way_network
from tests.worlds.pools.people import MANY, People, people_of
from tests.worlds.pools.pool import Running, free_port, pool_in, until
from tidemill.core.accounts.roles import Role

QUICK = {"TIDEMILL_LINK_HEARTBEAT_S": "1s"}
LONG = pytest.param(120.0, {}, marks=[pytest.mark.soak, pytest.mark.timeout(1200)], id="two minutes")


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_directory() as found:
        yield found


def kinds_of(running: Running, machine: Machine) -> Counter[str]:
    about = f"node:{machine.node_id}"
    return Counter(event["kind"] for event in running.events() if event["subject"] == about)


@pytest.mark.needs("root")
@pytest.mark.needs("ip")
@pytest.mark.needs("iptables")
@pytest.mark.parametrize(("cut_s", "settings"), [pytest.param(0.0, QUICK, id="seconds"), LONG])
def test_a_node_that_nobody_can_call_joins_and_loses_nothing_when_its_network_is_cut_twice(
    place: Path, cut_s: float, settings: dict[str, str]
) -> None:
    certificate, authority = trustme.CA(), place / "authority.pem"
    authority_of_pool = certificate.issue_cert(POOL_ADDRESS, "127.0.0.1")
    chain, key = place / "chain.pem", place / "key.pem"
    authority_of_pool.cert_chain_pems[0].write_to_path(chain)
    authority_of_pool.private_key_pem.write_to_path(key)
    certificate.cert_pem.write_to_path(authority)
    with one_way_network(1) as network, pool_in(place, **MANY, **LIGHT, **settings) as pool:
        running = pool.up("--host", "0.0.0.0", "--tls-certificate", str(chain), "--tls-key", str(key))
        running.scheme, running.verify = "https", False
        running.set_up()
        with people_of(running) as people, machines_in(place, 1, network.inside) as (machine,):
            token = join_token(running, people, people.person(Role.PROVIDER))
            machine.join(f"https://{POOL_ADDRESS}:{running.port}", token, "--ca", str(authority))
            machine.start()
            until_linked(machine)
            with pytest.raises(TimeoutError):
                socket.create_connection((NODE_ADDRESS, running.port), timeout=1)
            for wish in ("pause", "resume"):
                network.cut()
                assert machine.run(wish).returncode == 0, "the owner's word counts without a network"
                until(lambda: machine.link != "linked", "silence ends the link", 120)
                time.sleep(cut_s)
                network.mend()
                until(lambda wish=wish: works(people, machine) == (wish == "resume"), machine.said, 90)
            until(lambda: machine.status()["reports_waiting"] == 0, machine.said)
            kinds = kinds_of(running, machine)
            assert kinds["node.rules_changed"] == 2, kinds
            assert kinds["node.reports_dropped"] == 0
            assert kinds["node.offline"] == 0, "it was away for less than it takes"
            beats = people.rows("SELECT count(*) AS beats, count(DISTINCT at) AS instants FROM telemetry")[0]
            assert beats["beats"] == beats["instants"] > 0


def works(people: People, machine: Machine) -> bool:
    """Whether the pool believes that the node may work, by its owner's rules."""
    (row,) = people.rows(f"SELECT rules->'work'->>'value' AS work FROM node WHERE id = '{machine.node_id}'")
    return row["work"] in (None, "run")


def test_agents_of_a_process_that_is_killed_are_on_another_within_half_a_minute(place: Path) -> None:
    ports = [free_port(), free_port()]
    urls = ",".join(f"http://127.0.0.1:{port}" for port in ports)
    with pool_in(place, **MANY, **LIGHT, TIDEMILL_LINK_URLS=urls) as pool:
        first = pool.up(port=ports[0])
        first.set_up()
        second = pool.control(port=ports[1])
        second.until_ready()
        with people_of(first) as people, machines_in(place, 3) as machines:
            token = join_token(first, people, people.person(Role.PROVIDER), uses=3)
            for machine in machines:
                machine.join(first.url, token)
                machine.start()
            for machine in machines:
                until_linked(machine)
            first.end(signal.SIGKILL)
            held = "SELECT DISTINCT pid FROM presence JOIN process ON process.id = process_id WHERE state = 'running'"
            until(lambda: [row["pid"] for row in people.rows(held)] == [second.process.pid], "all are held there", 30)
            until(lambda: all(machine.link == "linked" for machine in machines), "linked")
            everything = people.rows("SELECT count(*) AS nodes FROM presence WHERE process_id IS NOT NULL")
            assert everything[0]["nodes"] == 3
            time.sleep(2)
            assert all(kinds_of(second, machine)["node.offline"] == 0 for machine in machines)


@pytest.mark.parametrize(
    ("away_s", "settings"),
    [
        pytest.param(8.0, {**QUICK, "TIDEMILL_LINK_OFFLINE_AFTER_S": "6s"}, id="seconds"),
        pytest.param(600.0, {}, marks=[pytest.mark.soak, pytest.mark.timeout(1500)], id="ten minutes"),
    ],
)
def test_an_outage_of_the_pool_is_nobodys_fault_and_silence_while_it_listens_is(
    place: Path, away_s: float, settings: dict[str, str]
) -> None:
    port = free_port()
    with pool_in(place, **MANY, **LIGHT, **settings) as pool, machines_in(place, 2) as machines:
        running = pool.up(port=port)
        running.set_up()
        with people_of(running) as people:
            token = join_token(running, people, people.person(Role.PROVIDER), uses=2)
        for machine in machines:
            machine.join(running.url, token)
            machine.start()
        for machine in machines:
            until_linked(machine)
        before = [machine.generation for machine in machines]
        running.end(signal.SIGKILL)
        with asleep(machines) if settings else nullcontext():
            assert pool.run("down").returncode == 0, "the database goes too"
            time.sleep(away_s)
            running = pool.up(port=port)
            running.until_ready()
        for machine, generation in zip(machines, before, strict=True):
            until(lambda machine=machine, then=generation: machine.generation > then, machine.said, 90)
        silent, alive = machines
        silent.end(signal.SIGKILL)
        until(lambda: kinds_of(running, silent)["node.offline"] == 1, "silence is noticed", 400)
        assert all(kinds_of(running, alive)[kind] == 0 for kind in ("node.offline", "node.online"))
        assert kinds_of(running, silent)["node.online"] == 0, "it was offline only once, at the end"


@contextmanager
def asleep(machines: list[Machine]) -> Iterator[None]:
    """Agents wait for longer the longer a pool is away, up to a minute: these do not notice how long it was."""
    for machine in machines:
        machine.send(signal.SIGSTOP)
    try:
        yield
    finally:
        for machine in machines:
            machine.send(signal.SIGCONT)
