"""Whether a node of the pool suits a demand, quickly: true exactly if the rule has no objection to it.

What few demands ask for is checked only where it is asked for.
"""

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode


def suits(node: PoolNode, demand: Demand, now: Instant) -> bool:
    """Whether there is no objection."""
    if node.is_usual and demand.is_usual:
        return node.has_whole(demand) and suits_besides(node, demand)
    until = node.until
    return (
        node.can_take(demand)
        and suits_besides(node, demand)
        and (until is None or until >= now + demand.duration_us)
        and not (demand.is_choosy and _is_barred(node, demand))
    )


def suits_besides(node: PoolNode, demand: Demand) -> bool:
    """Whether no usual objection applies to a node that has enough devices of the right models."""
    return (
        node.cpu_milli >= demand.cpu_milli
        and node.memory_mib >= demand.memory_mib
        and demand.kind in node.kinds
        and node.owner_number != demand.customer_number
        and (
            demand.is_modest
            or (
                node.price_uc <= demand.limit_uc
                and node.reputation >= demand.reputation_floor
                and node.disk_mib >= demand.disk_mib
                and node.device_memory_mib >= demand.device_memory_mib
            )
        )
    )


def _is_barred(node: PoolNode, demand: Demand) -> bool:
    return (
        node.node_id in demand.excluded_nodes
        or node.owner_id in demand.excluded_owners
        or (demand.attested and not node.attested)
        or (bool(demand.regions) and node.region not in demand.regions)
        or (bool(demand.domains) and node.domain not in demand.domains)
        or not demand.labels <= node.labels
    )
