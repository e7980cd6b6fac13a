"""Whether a node of the pool suits a demand, quickly: true exactly if the rule has no objection to it.

What few demands ask for is checked only where it is asked for.
"""

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.index.quick_demand import QuickDemand


def suits(node: PoolNode, demand: Demand, now: Instant) -> bool:
    """Whether there is no objection."""
    quick = demand.quick
    if node.is_usual and quick.is_usual:
        return node.has_whole(demand) and suits_besides(node, quick)
    until = node.until
    return (
        node.can_take(demand)
        and suits_besides(node, quick)
        and (until is None or until >= now + demand.duration_us)
        and not (quick.is_choosy and _is_barred(node.candidate, demand))
    )


def suits_besides(node: PoolNode, quick: QuickDemand) -> bool:
    """Whether no usual objection applies to a node that has enough devices of the right models."""
    return (
        node.cpu_milli >= quick.cpu_milli
        and node.memory_mib >= quick.memory_mib
        and quick.kind in node.kinds
        and node.owner_number != quick.customer_number
        and node.price_uc <= quick.limit_uc
        and node.reputation >= quick.reputation_floor
        and node.disk_mib >= quick.disk_mib
        and node.device_memory_mib >= quick.device_memory_mib
    )


def _is_barred(candidate: Candidate, demand: Demand) -> bool:
    return (
        candidate.node_id in demand.excluded_nodes
        or candidate.owner_id in demand.excluded_owners
        or (demand.attested and not candidate.attested)
        or (bool(demand.regions) and candidate.region not in demand.regions)
        or (bool(demand.domains) and candidate.domain not in demand.domains)
        or not demand.labels <= candidate.labels
    )
