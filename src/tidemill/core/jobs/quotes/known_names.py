"""What an order names must exist: models of GPUs, regions, policies, nodes to avoid. Each refusal names what there is.

It is compared when a job is ordered, with what is for sale then; an order that was accepted stays as it is when nodes
leave. Short ids are written out then, so that what is stored means the same for ever.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tidemill.core.jobs.kinds.kind import FieldError, TaskObjection
from tidemill.core.jobs.kinds.parameters import objection_of
from tidemill.core.jobs.quotes.order import Order
from tidemill.core.jobs.quotes.order_fields import AVOIDED_MAX
from tidemill.core.nodes.machine.gpu_names import CATALOGUE
from tidemill.core.placement.supply import Seller

NAMED_MAX = 12
_SHOWN_MAX = 40
_SHORT = re.compile(r"[0-9a-f]{8}", re.ASCII)
_CATALOGUE = frozenset(gpu.name for gpu in CATALOGUE)


@dataclass(frozen=True)
class KnownNames:
    """What there is now."""

    gpu_models: frozenset[str]
    regions: frozenset[str]
    policies: frozenset[str]

    @classmethod
    def of(cls, sellers: Sequence[Seller], policies: Collection[str]) -> "KnownNames":
        models = {device.device_model for seller in sellers for device in seller.candidate.devices}
        regions = {seller.candidate.region for seller in sellers} - {""}
        return cls(frozenset(models), frozenset(regions), frozenset(policies))


def unknown_names(order: Order, there_is: KnownNames) -> TaskObjection | None:
    """What an order names that does not exist. A model that the catalogue knows may be waited for."""
    errors = list(_unknown(order, there_is))
    return objection_of(errors) if errors else None


def with_whole_ids(body: Mapping[str, object], sellers: Sequence[Seller]) -> Mapping[str, object]:
    """The order with each short id among the nodes to avoid written out. What is no short id stays as it is."""
    avoided = body.get("avoid")
    texts = [avoided] if isinstance(avoided, str) else avoided
    if not isinstance(texts, list) or len(texts) > AVOIDED_MAX:
        return body
    short = {text for text in texts if isinstance(text, str) and _SHORT.fullmatch(text)}
    if not short:
        return body
    named = {node_id for seller in sellers if (node_id := str(seller.node_id))[-8:] in short}
    found = {node_id[-8:] for node_id in named}
    return {**body, "avoid": [*(text for text in texts if text not in found), *sorted(named)]}


def _unknown(order: Order, there_is: KnownNames) -> Iterator[FieldError]:
    asked = order.requirements
    yield from _among(
        "gpu_models", "model of a GPU", asked.device_models, there_is.gpu_models, there_is.gpu_models | _CATALOGUE
    )
    yield from _among("regions", "region with nodes", asked.regions, there_is.regions, there_is.regions)
    policies = frozenset({asked.policy} - {""})
    yield from _among("policy", "policy", policies, there_is.policies, there_is.policies)


def _those(there_is: frozenset[str]) -> str:
    return f"there are {', '.join(sorted(there_is)[:NAMED_MAX])}" if there_is else "there is none now"


def _among(
    field: str, noun: str, asked: frozenset[str], there_is: frozenset[str], known: frozenset[str]
) -> Iterator[FieldError]:
    for name in sorted(asked - known):
        near = get_close_matches(name[:_SHOWN_MAX], sorted(known), 3, cutoff=0.5)
        told = f"perhaps {', '.join(sorted(near))}" if near and len(known) > NAMED_MAX else _those(there_is)
        yield FieldError(field, f"There is no {noun} called {name[:_SHOWN_MAX]!r}: {told}.")
