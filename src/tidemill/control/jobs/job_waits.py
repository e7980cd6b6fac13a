"""What a job waits for, looked up: a stopped pool, a node, a check. Core says it in a sentence."""

from tidemill.control.context import Control
from tidemill.core.jobs import waits
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.waits import no_house_sentence
from tidemill.core.operations.switches import Switch, stopped_sentence, stopping_switch
from tidemill.core.placement.explanations import why_waiting
from tidemill.store.jobs import job_views
from tidemill.store.jobs.job_views import Job
from tidemill.store.operations import switches
from tidemill.store.placement import explanations
from tidemill.store.query import Connection


async def stopped_placement(connection: Connection) -> str | None:
    """Since when placement is stopped, and why; None while it is not."""
    states = (await switches.states(connection)).values()
    switch = stopping_switch(Switch.PLACEMENT, states)
    return None if switch is None else stopped_sentence(switch)


async def waits_for(control: Control, job: Job, stopped: str | None) -> str | None:
    """What a job waits for; None while its tasks are at work, before it is confirmed, and once it is over."""
    if job.state not in (JobState.QUEUED, JobState.RUNNING):
        return None
    async with control.route_database.connection() as connection:
        searched = await explanations.waiting(connection, job.id, 1)
        checks = await job_views.checks(connection, job.id)
    return waits.waits_for(
        waiting=job.waiting,
        stopped=stopped,
        searched=why_waiting(searched[0]) if searched else None,
        checks=checks,
        no_house=await _no_house(control, job) if checks.wait_for_house else None,
    )


async def _no_house(control: Control, job: Job) -> str | None:
    """What is said where no house node that is online could run the job's tasks."""
    asked = job.quote or {}
    needs = Needs(asked.get("memory_mib", 0), 0, 0, asked.get("devices", 0), asked.get("gpu_memory_mib", 0))
    supply = await control.supply.look(control, control.route_database)
    if any(seller.house and seller.can_run(job.kind, needs) for seller in supply.sellers):
        return None
    return no_house_sentence(control.settings.audit.house_wait_s)
