"""Candidates and requests to try: by hand, and drawn by hypothesis from so little that they meet."""

from collections.abc import Mapping
from uuid import UUID

from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, CandidateDevice, MedianPrices
from tidemill.core.placement.demand import Demand, NeededArtefact
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.policies.fast import FastPolicy
from tidemill.core.placement.policies.packed import PackedPolicy
from tidemill.core.placement.policies.trusted import TrustedPolicy
from tidemill.core.placement.policies.value import ValuePolicy

NOW = Instant(1_000_000)
POLICIES: dict[str, Policy] = {
    "value": ValuePolicy(),
    "trusted": TrustedPolicy(1e8),
    "fast": FastPolicy(),
    "packed": PackedPolicy(),
}


def uuid(number: int) -> UUID:
    return UUID(int=number)


def node(number: int, **facts: object) -> Candidate:
    plain: dict[str, object] = {
        "node_id": uuid(number),
        "owner_id": uuid(1000 + number),
        "devices": (CandidateDevice("A100", 81920),),
        "cpu_milli": 16_000,
        "memory_mib": 65_536,
        "disk_mib": 100_000,
        "price_uc": 1_000_000,
        "kinds": frozenset({"matmul"}),
    }
    return Candidate(**(plain | facts))  # type: ignore[arg-type]


def ask(**wishes: object) -> Demand:
    return Demand(**({"kind": "matmul"} | wishes))  # type: ignore[arg-type]


def pool_of(
    *nodes: Candidate, newcomers_share: float = 0.05, policies: Mapping[str, Policy] = POLICIES
) -> CandidatePool:
    pool = CandidatePool(policies, MedianPrices.of(nodes), newcomers_share)
    for one in nodes:
        pool.put(one)
    return pool


MODELS = st.sampled_from(["A100", "T4", "L4"])
DIGESTS = st.sampled_from(["one", "two", "three"])
NAMES = st.sampled_from(["here", "there"])
DEVICES = st.builds(
    CandidateDevice,
    MODELS,
    st.sampled_from([16_384, 81_920]),
    st.sampled_from([0, 300, 500, 1000, 1000, 1000]),
    st.integers(0, 2),
)
ALIKE = st.builds(lambda one, count: (one,) * count, DEVICES, st.integers(0, 4))


@st.composite
def candidates(draw: st.DrawFn, number: int) -> Candidate:
    return node(
        number,
        owner_id=uuid(draw(st.integers(1, 3))),
        devices=draw(ALIKE | st.lists(DEVICES, max_size=4).map(tuple)),
        cpu_milli=draw(st.sampled_from([0, 4_000, 16_000])),
        memory_mib=draw(st.sampled_from([0, 4_096, 65_536])),
        disk_mib=draw(st.sampled_from([0, 2**40])),
        price_uc=draw(st.sampled_from([0, 1, 500_000, 1_000_000])),
        reputation=draw(st.sampled_from([0, 300, 301, 1000])),
        success=draw(st.sampled_from([0.0, 0.9, 1.0])),
        stake_uc=draw(st.sampled_from([0, 10**8])),
        latency_ms=draw(st.sampled_from([0, 40, 60_000])),
        region=draw(NAMES),
        domain=draw(NAMES),
        labels=draw(st.frozensets(NAMES)),
        kinds=draw(st.sampled_from([frozenset({"matmul"}), frozenset({"matmul", "embed"}), frozenset[str]()])),
        cached=draw(st.frozensets(DIGESTS)),
        attested=draw(st.booleans()),
        newcomer=draw(st.booleans()),
        available_until=draw(st.sampled_from([None, Instant(NOW + 10)])),
    )


@st.composite
def requests(draw: st.DrawFn) -> Demand:
    """Mostly modest, so that something is placed; each wish is there sometimes."""
    wishes: dict[str, object] = {"devices": draw(st.sampled_from([0, 1, 1, 1, 2, 3]))}
    if wishes["devices"] == 1:
        wishes["milli"] = draw(st.sampled_from([1000, 1000, 300, 500]))
    rare = {
        "device_models": st.frozensets(MODELS),
        "gpu_memory_mib": st.sampled_from([16_384, 40_000]),
        "nvlink": st.booleans(),
        "cpu_milli": st.sampled_from([1_000, 4_000]),
        "memory_mib": st.sampled_from([1_000, 4_096]),
        "disk_mib": st.just(1_000),
        "price_max_uc": st.sampled_from([0, 500_000]),
        "reputation_floor": st.sampled_from([300, 301]),
        "attested": st.just(True),
        "regions": st.frozensets(NAMES),
        "domains": st.frozensets(NAMES),
        "labels": st.frozensets(NAMES),
        "excluded_nodes": st.frozensets(st.integers(1, 6).map(uuid), max_size=2),
        "excluded_owners": st.frozensets(st.integers(1, 3).map(uuid), max_size=1),
        "customer_id": st.integers(1, 3).map(uuid),
        "duration_us": st.sampled_from([10, 11]),
        "inputs": st.lists(
            st.builds(NeededArtefact, DIGESTS, st.integers(0, 5)), max_size=2, unique_by=lambda one: one.digest
        ),
    }
    for name in draw(st.lists(st.sampled_from(sorted(rare)), max_size=3, unique=True)):
        value = draw(rare[name])
        wishes[name] = tuple(value) if isinstance(value, list) else value
    return ask(kind=draw(st.sampled_from(["matmul", "matmul", "embed"])), **wishes)
