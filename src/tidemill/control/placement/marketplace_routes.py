"""The marketplace for customers: the supply, its prices, and the length of the queue."""

from collections.abc import Sequence
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tidemill.control.context import Control, ControlPart
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.views import API
from tidemill.control.jobs import job_waits
from tidemill.control.placement.explanation_views import QueueObjectionView, queue_objections
from tidemill.core.clock import as_datetime
from tidemill.core.money import credits_of
from tidemill.core.placement.supply import Supply, prices_uc
from tidemill.store.jobs import job_views
from tidemill.store.placement import explanations, supply

router = APIRouter(prefix=f"{API}/marketplace", tags=["jobs"], route_class=GuardedRoute)


class ClusterView(BaseModel):
    nodes: int = Field(description="Nodes that may get work now.")
    busy: int = Field(description="Those of them that have something to do.")
    owners: int
    devices: int = Field(description="GPUs.")
    cores: int
    memory_mib: int
    gpu_memory_mib: int
    models: dict[str, int] = Field(description="Nodes by the model of their devices; `cpu` has none.")
    kinds: dict[str, int] = Field(description="Nodes by the kinds of tasks that they carry out.")


class PriceView(BaseModel):
    model: str
    nodes: int
    low: str
    median: str
    high: str


class PricingView(BaseModel):
    currency: str
    commission: str = Field(description="What comes on top of a provider's price.")
    default_hourly: str = Field(description="A device-hour on a node whose owner has set no price.")
    items: list[PriceView] = Field(description="What a device-hour costs now, by model, before the commission.")


class QueueView(BaseModel):
    waiting: dict[str, int] = Field(description="Tasks that wait for a node, by priority.")
    placed: int = Field(description="Tasks that a node has, or that are being checked.")
    jobs: int = Field(description="Jobs with tasks that wait.")
    oldest_at: datetime | None = Field(description="Since when the oldest of them waits.")
    stopped: str | None = Field(description="Since when placement is stopped, and why; null while it is not.")
    waits_for: list[QueueObjectionView] = Field(description="Why nobody was found for them, all customers together.")


@router.get("/cluster/status")
async def cluster_status(control: ControlPart) -> ClusterView:
    """What there is in the pool now, all owners together."""
    on_sale = await _supply(control)
    async with control.route_database.connection() as connection:
        busy = await supply.busy(connection)
    return _cluster(on_sale, len(busy & {seller.node_id for seller in on_sale.sellers}))


@router.get("/pricing")
async def pricing(control: ControlPart) -> PricingView:
    """What a device-hour costs now, by model."""
    on_sale, money = await _supply(control), control.settings.money
    items = [_price(model, prices) for model, prices in prices_uc(on_sale.sellers).items()]
    commission, usual = f"{money.commission_ppm / 10_000:g}%", credits_of(on_sale.default_uc)
    return PricingView(currency=money.currency, commission=commission, default_hourly=usual, items=items)


@router.get("/queue")
async def queue(control: ControlPart) -> QueueView:
    """How many tasks wait for nodes, and since when."""
    async with control.route_database.connection() as connection:
        state = await job_views.queue_state(connection)
        objections = queue_objections(await explanations.queue(connection))
        stopped = await job_waits.stopped_placement(connection)
    oldest_at = None if state.oldest_at is None else as_datetime(state.oldest_at)
    return QueueView(
        waiting=state.waiting,
        placed=state.placed,
        jobs=state.jobs,
        oldest_at=oldest_at,
        stopped=stopped,
        waits_for=objections,
    )


def _price(model: str, asked_uc: Sequence[int]) -> PriceView:
    low, median, high = (credits_of(price_uc) for price_uc in (asked_uc[0], asked_uc[len(asked_uc) // 2], asked_uc[-1]))
    return PriceView(model=model, nodes=len(asked_uc), low=low, median=median, high=high)


async def _supply(control: Control) -> Supply:
    return await control.supply.look(control, control.route_database)


def _cluster(on_sale: Supply, busy: int) -> ClusterView:
    sellers = on_sale.sellers
    nodes, sizes = [seller.candidate for seller in sellers], [seller.size for seller in sellers]
    kinds = sorted({kind for node in nodes for kind in node.kinds})
    return ClusterView(
        nodes=len(nodes),
        busy=busy,
        owners=len({node.owner_id for node in nodes}),
        devices=sum(size.devices for size in sizes),
        cores=sum(size.cores for size in sizes),
        memory_mib=sum(size.memory_mib for size in sizes),
        gpu_memory_mib=sum(seller.gpu_memory_mib * seller.size.devices for seller in sellers),
        models={model: len(prices) for model, prices in prices_uc(sellers).items()},
        kinds={kind: sum(kind in node.kinds for node in nodes) for kind in kinds},
    )
