"""Nodes as the market shows them, made from how placement sees them: what is quoted is what is placed."""

from tidemill.core.dispatch.selling import Seller
from tidemill.core.market import ForSale


def for_sale(seller: Seller) -> ForSale:
    """A node that may get work, as quotes see it."""
    candidate = seller.candidate
    return ForSale(
        node_id=candidate.node_id,
        owner_id=candidate.owner_id,
        price_uc=candidate.price_uc,
        cpu_operations_per_s=seller.cpu_ops_per_s,
        gpu_operations_per_s=seller.device_ops_per_s,
        devices=len(candidate.devices),
        gpu_memory_mib=min((device.memory_mib for device in candidate.devices), default=0),
        memory_mib=candidate.memory_mib,
        cores=candidate.cpu_milli // 1_000,
        kinds=candidate.kinds,
        model=candidate.model,
        region=candidate.region,
        house=seller.house,
    )
