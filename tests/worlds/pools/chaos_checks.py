"""What must hold when everything has settled, asked of the database itself and through the API."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.worlds.pools.chaos_customer import ChaosCustomer
from tests.worlds.pools.people import People
from tidemill.core.money import micro_credits
from tidemill.store import checks
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import connect
from tidemill.store.ledger import books

EXPLAINED = (
    "The database cannot be reached",
    "The pool is not running",
    "The pool is still starting",
    "PostgreSQL did not start",
    "  ",  # what the server itself said of that
)

WRONG = {
    "tasks that have not ended": "SELECT id FROM task WHERE ended IS NULL",
    "jobs that are confirmed and not over": "SELECT id FROM job WHERE confirmed_at IS NOT NULL AND ended_at IS NULL",
    "attempts that are open": "SELECT attempt_id FROM lease",
    "tasks that wait": "SELECT task_id FROM task_queue",
    "holds of which something is left": "SELECT id FROM hold WHERE captured_uc + released_uc <> amount_uc",
    "jobs whose hold is not what was paid and what went back": (
        "SELECT j.id FROM job AS j JOIN hold AS h ON h.id = j.hold_id "
        "WHERE h.captured_uc <> j.spent_uc OR h.captured_uc <> "
        "(SELECT coalesce(sum(amount_uc), 0) FROM transfer WHERE hold_id = h.id) "
        "OR h.released_uc <> (SELECT coalesce(sum(amount_uc), 0) FROM hold_release WHERE hold_id = h.id)"
    ),
    "jobs whose rewards are not what their attempts were paid": (
        "SELECT j.id FROM job AS j WHERE "
        "(SELECT coalesce(sum(amount_uc), 0) FROM transfer WHERE hold_id = j.hold_id AND kind = 'reward') <> "
        "(SELECT coalesce(sum(paid_uc), 0) FROM attempt WHERE job_id = j.id)"
    ),
    "holds of no job": "SELECT h.id FROM hold AS h WHERE NOT EXISTS (SELECT FROM job AS j WHERE j.hold_id = h.id)",
    "tasks that were paid twice": (
        "SELECT task_id FROM attempt WHERE paid_uc > 0 GROUP BY task_id HAVING count(*) > 1"
    ),
    "tasks that were paid and are not completed, or the other way round": (
        "SELECT t.id FROM task AS t LEFT JOIN attempt AS a ON a.task_id = t.id AND a.paid_uc > 0 "
        "WHERE (t.ended = 'completed') <> (a.id IS NOT NULL) OR t.ended = 'completed' AND t.attempt_id <> a.id"
    ),
    "attempts that were paid and have no verdict": (
        "SELECT id FROM attempt WHERE paid_uc > 0 AND (verdict IS DISTINCT FROM 'pass' OR transfer_id IS NULL)"
    ),
    "attempts of no known state": (
        "SELECT id FROM attempt WHERE state NOT IN ('judged', 'declined', 'lost', 'expired', 'cancelled')"
    ),
    "attempts that were cancelled and may still upload": (
        "SELECT a.id FROM attempt AS a JOIN artefact_grant AS g ON g.attempt_id = a.id WHERE a.state = 'cancelled'"
    ),
    "explanations of another node than the one that was chosen": (
        "SELECT a.id FROM attempt AS a JOIN explanation AS e "
        "ON e.job_id = a.job_id AND e.at = a.offered_at AND a.task_id = e.task_ids[1] "
        "WHERE a.node_id <> ALL (SELECT f.node_ids[1] FROM explanation AS f "
        "WHERE f.job_id = a.job_id AND f.at = a.offered_at AND a.task_id = ANY (f.task_ids))"
    ),
    "explanations of what never happened": (
        "SELECT e.id FROM explanation AS e WHERE NOT EXISTS (SELECT FROM attempt AS a "
        "WHERE a.job_id = e.job_id AND a.offered_at = e.at AND a.task_id = ANY (e.task_ids))"
    ),
}
"""What there must be none of."""


def wrongs(people: People) -> dict[str, list[str]]:
    """Whatever there is of it."""
    found = {what: people.rows(sql) for what, sql in WRONG.items()}
    return {what: [str(row[0]) for row in rows[:5]] for what, rows in found.items() if rows}


async def unsound(urls: DatabaseUrls) -> list[str]:
    """Which checks of the database and of the books fail."""
    connection = await connect(urls.owner)
    try:
        every = [*await checks.checks(urls), *await books.check_books(connection)]
    finally:
        await connection.close()
    return [f"{one.name}: {one.detail}" for one in every if not one.ok]


def told_wrongly(customer: ChaosCustomer) -> list[str]:
    """Jobs that the API shows otherwise than as over, with all of their money where it belongs."""
    return [job_id for job_id in customer.jobs if not _is_told_well(customer, job_id)]


def spent_uc(customer: ChaosCustomer) -> int:
    return sum(_uc(customer.ask("GET", f"/{job_id}").json()["spent"]) for job_id in customer.jobs)


def faulty_lines(said: str) -> Iterator[str]:
    """What a process said that no fault of ours explains. One that could not start says why in a plain sentence."""
    for line in said.splitlines():
        told = _parsed(line)
        if told is None:
            if not line.startswith(EXPLAINED):
                yield line
        elif told.get("level") in ("error", "critical") or "bug" in told:
            yield line


def _is_told_well(customer: ChaosCustomer, job_id: str) -> bool:
    job = customer.ask("GET", f"/{job_id}").json()
    used: Sequence[dict[str, Any]] = customer.ask("GET", f"/{job_id}/resources?limit=500").json()["items"]
    results: Sequence[dict[str, Any]] = customer.ask("GET", f"/{job_id}/result?limit=500").json()["items"]
    why = customer.ask("GET", f"/{job_id}/explanation?limit=1").json()
    paid = [one for one in used if _uc(one["paid"]) > 0]
    done = [one for one in results if one["verdict"] == "pass"]
    counted = job["progress"]["completed"]
    return (
        job["ended_at"] is not None
        and _uc(job["held"]) == 0
        and _uc(job["spent"]) <= _uc(job["quote"]["high"])
        and len(paid) == len(done) == counted
        and (why["sentence"], why["waiting"]) == (None, [])
    )


def _uc(amount: str) -> int:
    found = micro_credits(amount)
    assert isinstance(found, int)
    return found


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
