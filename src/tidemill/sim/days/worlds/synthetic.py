"""A made-up pool: so many nodes by a mix of GPUs and prices, from single cards at home to racks.

Models and their speeds come from the catalogue. A few providers have many nodes and most have one; they are named by
size, so that `provider-1` is the largest. Prices scatter around the usual price of a model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.nodes.machine.gpu_types import GpuType
from tidemill.core.placement.candidate import NVLINK_NONE_PCT, Candidate, CandidateDevice
from tidemill.core.placement.supply import MachineSize, Seller, reference_ops_per_s, unit_prices_uc
from tidemill.sim.days.worlds.world import Member, World, checked_world

EFFICIENCY = 0.3
"""The share of the data sheet's rate that a challenge measures."""

OWNERS_SHARE = 0.2
"""Providers, as a share of the nodes."""

SIZES_EXPONENT = 0.8
"""How much larger the first provider is than the second, and so on."""

NVLINKED_PCT = 140


@dataclass(frozen=True)
class GpuShare:
    """A model with its memory, its share of the nodes, its hourly price, and how many devices its nodes have."""

    name: str
    memory_mib: int
    share: float
    hourly_uc: int
    counts: tuple[int, ...] = (1, 1, 1, 2)


MIX: tuple[GpuShare, ...] = (
    GpuShare("GeForce RTX 3060", 12_288, 0.20, 90_000, (1, 1, 1, 1, 2)),
    GpuShare("GeForce RTX 3080", 10_240, 0.12, 140_000),
    GpuShare("GeForce RTX 4070", 12_288, 0.10, 160_000),
    GpuShare("GeForce RTX 3090", 24_576, 0.18, 220_000),
    GpuShare("GeForce RTX 4090", 24_576, 0.16, 400_000),
    GpuShare("Tesla T4", 16_384, 0.06, 150_000, (1, 2, 4)),
    GpuShare("L4", 24_576, 0.04, 450_000, (1, 2, 4, 8)),
    GpuShare("RTX A6000", 49_152, 0.05, 500_000, (1, 2, 4)),
    GpuShare("L40S", 49_152, 0.03, 900_000, (2, 4, 8)),
    GpuShare("A100-SXM4-80GB", 81_920, 0.04, 1_300_000, (4, 8)),
    GpuShare("H100 80GB HBM3", 81_920, 0.02, 2_400_000, (8,)),
)


def synthetic(nodes: int, seed: int, mix: Sequence[GpuShare] = MIX) -> World:
    """The same seed makes the same world."""
    dice = np.random.default_rng((seed, 1))
    shares = np.array([model.share for model in mix])
    models = dice.choice(len(mix), nodes, p=shares / shares.sum()).tolist()
    owners = _owners(nodes, dice)
    picks, spreads = dice.random(nodes).tolist(), np.exp(dice.normal(0.0, 0.25, nodes)).tolist()
    reputations = (300 + 650 * dice.beta(4, 2, max(owners) + 1)).astype(int).tolist()
    gpus = [recognised(model.name, model.memory_mib) for model in mix]
    members = []
    for number in range(nodes):
        model, gpu, owner = mix[models[number]], gpus[models[number]], owners[number]
        assert gpu is not None, "the mix is of the catalogue"
        count = model.counts[int(picks[number] * len(model.counts))]
        price_uc = max(1, int(model.hourly_uc * spreads[number]))
        members.append(_member(number, owner, gpu, count, price_uc, reputations[owner]))
    return checked_world(members)


def _owners(nodes: int, dice: np.random.Generator) -> list[int]:
    """The owner of each node; the largest is the first."""
    count = max(1, int(nodes * OWNERS_SHARE))
    weights = np.arange(1, count + 1) ** -SIZES_EXPONENT
    drawn = dice.choice(count, nodes, p=weights / weights.sum())
    by_size = np.argsort(-np.bincount(drawn, minlength=count), kind="stable")
    names = np.empty(count, np.int64)
    names[by_size] = np.arange(count)
    owners: list[int] = names[drawn].tolist()
    return owners


def _member(number: int, owner: int, gpu: GpuType, count: int, price_uc: int, reputation: int) -> Member:
    is_linked = gpu.nvlink is not None and count > 1
    reference, size = reference_ops_per_s(gpu), MachineSize(count, 8 * count, 32_768 * count)
    work_price_uc, core_price_uc = unit_prices_uc(price_uc, size, reference)
    candidate = Candidate(
        node_id=UUID(int=number + 1),
        owner_id=UUID(int=(1 << 64) + owner),
        devices=(CandidateDevice(gpu.name, gpu.memory_mib, nvlink_group=int(is_linked)),) * count,
        cpu_milli=1_000 * size.cores,
        memory_mib=size.memory_mib,
        disk_mib=512_000,
        price_uc=price_uc,
        work_price_uc=work_price_uc,
        core_price_uc=core_price_uc,
        reputation=reputation,
        success=reputation / 1000,
        nvlink_pct=NVLINKED_PCT if is_linked else NVLINK_NONE_PCT,
        kinds=frozenset(KINDS),
    )
    speed = gpu.fp16_tflops * 1e12 * EFFICIENCY
    seller = Seller(candidate, False, speed, OPERATIONS_PER_CORE_S, reference)
    return Member(seller, f"provider-{owner + 1}")
