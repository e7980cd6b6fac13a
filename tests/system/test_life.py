"""The life of a pool: up, down, killed, adopted, doubled."""

import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.worlds.places import processes_in
from tests.worlds.pools.pool import free_port, pool_in, until


def postmaster(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "postgres" / "data" / "postmaster.pid").read_text().split()[0]))


def test_a_pool_comes_up_says_where_and_leaves_nothing_behind(place: Path) -> None:
    with pool_in(place, loads=True) as pool:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            up = pool.up()
            up.until_ready()
            assert sum(psutil.Process(up.process.pid).cpu_times()[:2]) < 10, (
                "on an idle machine that is how long it took"
            )
            assert up.url in up.said()
            assert up.end(number) == 0, up.said()
            assert "Traceback" not in up.said()
            assert processes_in(place) == []


def test_a_pool_that_was_killed_is_adopted_with_everything_in_it(place: Path) -> None:
    with pool_in(place, TIDEMILL_LOOPS_PROCESS_LOST_S="2", TIDEMILL_LOOPS_PROCESS_HEARTBEAT_S="0.3") as pool:
        first = pool.up()
        first.until_ready()
        pool.run("admin", "stop", "placement", "--reason", "kept")
        server = postmaster(place)
        first.end(signal.SIGKILL)
        second = pool.up()
        second.until_ready()
        assert postmaster(place) == server
        assert "kept" in pool.run("admin", "switches").stdout
        assert "pool.switch_thrown" in second.kinds()
        until(lambda: second.kinds().count("process.lost") == 1, "the killed process is given up")
        assert second.end() == 0
        assert processes_in(place) == []


def test_a_killed_database_comes_back_and_so_does_the_pool(place: Path) -> None:
    with pool_in(place) as pool:
        up = pool.up()
        up.until_ready()
        pool.run("admin", "stop", "all", "--reason", "before the crash")
        before = up.events()
        for _ in range(3):
            postmaster(place).kill()
            until(lambda: up.get("/readyz").status_code == 503, "the loss is noticed")
            up.until_ready()
        assert up.events()[: len(before)] == before
        assert up.get("/healthz").status_code == 200
        assert up.end() == 0
        assert "Traceback" not in up.said()


def test_three_control_processes_share_the_work_and_repeat_none_of_it(place: Path) -> None:
    settings = {
        "TIDEMILL_LOOPS_PROCESS_LOST_S": "2",
        "TIDEMILL_LOOPS_PROCESS_HEARTBEAT_S": "0.2",
        "TIDEMILL_DATABASE_BACKUP_EVERY_S": "24h",
    }
    with pool_in(place, **settings) as pool:
        up = pool.up()
        up.until_ready()
        others = [pool.control() for _ in range(2)]
        for other in others:
            other.until_ready()
        running = [one for one in pool.json("status")["checks"].values() if one != "ok"]
        assert running == []
        others[0].end(signal.SIGKILL)
        until(lambda: "process.lost" in others[1].kinds(), "somebody gives the killed one up")
        time.sleep(1)
        counted = Counter(up.kinds())
        assert counted["process.lost"] == 1
        assert counted["pool.backup_made"] == 1
        assert counted["pool.created"] == 1
        assert counted["process.started"] == 3
        assert others[1].events() == up.events()
        states = up.get("/api/v1/admin/processes", headers=up.operator).json()["items"]
        assert sorted(state["state"] for state in states) == ["lost", "running", "running"]
        assert len({state["settings"] for state in states}) == 1
        others[1].end()
        assert "process.stopped" in up.kinds()


def test_processes_that_disagree_about_the_pools_settings_say_so(place: Path) -> None:
    with pool_in(place) as pool:
        pool.up().until_ready()
        other = pool.control(TIDEMILL_LINK_HEARTBEAT_S="60")
        other.until_ready()
        assert "settings differ" in other.said()


def test_sigterm_drains_streams_and_requests_and_a_second_one_leaves(place: Path) -> None:
    with pool_in(place, loads=True, TIDEMILL_HTTP_DRAIN_S="15") as pool:
        up = pool.up()
        up.set_up()
        ended = threading.Event()
        with httpx2.Client(timeout=None) as client, client.stream("GET", up.url + "/api/v1/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            watcher = threading.Thread(target=lambda: (list(lines), ended.set()))
            watcher.start()
            began = time.monotonic()
            assert up.end() == 0
            assert ended.wait(30), "the stream was not ended"
            assert time.monotonic() - began < 14, "it was ended, not waited for"
            watcher.join()

        slow = pool.up()
        slow.until_ready()
        over = threading.Event()
        with httpx2.Client(timeout=None) as client:
            # A request whose body never comes: draining waits for it, the second signal does not.
            stuck = threading.Thread(target=_post_in_part, args=(client, slow.url, slow.operator, over))
            stuck.start()
            time.sleep(0.5)
            began = time.monotonic()
            slow.send(signal.SIGTERM)
            time.sleep(1)
            assert slow.process.poll() is None, "a request in hand is waited for"
            assert slow.end() == 0
            assert time.monotonic() - began < 14, "it was not waited for any longer"
            over.set()
            stuck.join()
        assert processes_in(place) == []


def test_balancers_get_time_to_turn_away_before_the_port_closes(place: Path) -> None:
    with pool_in(place, TIDEMILL_HTTP_DRAIN_DELAY_S="4") as pool:
        up = pool.up()
        up.until_ready()
        up.send(signal.SIGTERM)
        until(lambda: up.get("/readyz").status_code == 503, "it says that it is leaving", 4)
        assert up.get("/healthz").status_code == 200, "new connections are still taken"
        assert up.process.wait(60) == 0


def _post_in_part(client: httpx2.Client, url: str, headers: dict[str, str], over: threading.Event) -> None:
    def body():  # type: ignore[no-untyped-def]
        yield b'{"reason": '
        over.wait(60)

    with suppress(httpx2.HTTPError):
        client.post(f"{url}/api/v1/admin/switches/all/stop", content=body(), headers=headers)


@pytest.mark.parametrize("after_s", [0.3, 0.6, 0.9, 1.2])
def test_a_start_that_is_stopped_half_way_leaves_nothing_running(place: Path, after_s: float) -> None:
    with pool_in(place, loads=True) as pool:
        up = pool.up()
        time.sleep(after_s)
        assert up.end() in (0, 130, -signal.SIGTERM), up.said()
        assert processes_in(place) == []
        again = pool.up()
        again.until_ready()


def test_a_taken_port_and_a_taken_home_are_told_in_a_sentence(place: Path) -> None:
    with pool_in(place) as pool:
        up = pool.up()
        up.until_ready()
        twice = pool.run("up", TIDEMILL_PORT=str(free_port()))
        assert twice.returncode == 4
        assert str(up.process.pid) in twice.stderr
        taken = pool.run("control", TIDEMILL_PORT=str(up.port))
        assert taken.returncode == 5
        assert "TIDEMILL_PORT" in taken.stderr
        assert "Traceback" not in twice.stderr + taken.stderr
        assert up.get("/readyz").status_code == 200


def test_down_stops_a_pool_and_an_orphan_and_says_when_there_is_nothing(place: Path) -> None:
    with pool_in(place, loads=True) as pool:
        up = pool.up()
        up.until_ready()
        done = pool.run("down")
        assert (done.returncode, up.process.wait(5)) == (0, 0), done.stderr
        assert pool.run("down").returncode == 4
        orphaned = pool.up()
        orphaned.until_ready()
        orphaned.end(signal.SIGKILL)
        assert pool.run("down").returncode == 0
        assert processes_in(place) == []
