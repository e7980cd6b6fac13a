"""How long a pool takes until it is ready: on an empty home, on one that has been used, and after a kill -9.

Prints one line of JSON:
{"first_s": …, "second_s": …, "after_kill_s": …, "stop_s": …, "rss_mib": …, "database_pss_mib": …}
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.worlds.places import processes_in, reachable_directory
from tests.worlds.pools.pool import Pool, Running, pool_in


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.parse_args()
    with reachable_directory() as home, pool_in(home) as pool:
        first, first_s = ready(pool)
        stop_s = ended(first)
        second, second_s = ready(pool)
        time.sleep(2)
        rss_mib = psutil.Process(second.process.pid).memory_info().rss / 2**20
        database_pss_mib = sum(one.memory_full_info().pss for one in processes_in(home)) / 2**20
        second.end(signal.SIGKILL)
        _, after_kill_s = ready(pool)
    figures = {
        "first_s": first_s,
        "second_s": second_s,
        "after_kill_s": after_kill_s,
        "stop_s": stop_s,
        "rss_mib": rss_mib,
        "database_pss_mib": database_pss_mib,
    }
    sys.stdout.write(json.dumps({name: round(value, 2) for name, value in figures.items()}) + "\n")


def ready(pool: Pool) -> tuple[Running, float]:
    began = time.monotonic()
    up = pool.up()
    up.until_ready()
    return up, time.monotonic() - began


def ended(up: Running) -> float:
    began = time.monotonic()
    assert up.end() == 0
    return time.monotonic() - began


if __name__ == "__main__":
    main()
