"""What an order asks of nodes: read, stored, compared with what there is; and what is told where few nodes fit."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.jobs.test_orders import ANYTHING, MATMUL, SCENE, understood
from tests.core.jobs.test_quotes import NOW, priced
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.quotes import Order, parse_order
from tidemill.core.jobs.quotes.fit import Fit, Relaxation
from tidemill.core.jobs.quotes.known_names import KnownNames, unknown_names, with_whole_ids
from tidemill.core.jobs.quotes.order_fields import OF_NODES
from tidemill.core.jobs.quotes.quote import quote_from_json, quote_json
from tidemill.core.jobs.quotes.tasks import demanded, divide
from tidemill.core.placement.candidate import Candidate, CandidateDevice
from tidemill.core.placement.demand import HOUSE
from tidemill.core.placement.rule import PlacementObjection, objections
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import demand_for, for_house, read_demand, stored_form, work_footprint
from tidemill.core.settings.sections.work import ContainersSettings

CONTAINER: dict[str, Any] = {"kind": "container", "parameters": {"command": ["true"], "seconds": 60, "image": "python"}}
NODE_ID = "01a1e457-0baf-7960-a23e-15e98fca8080"
ASKS: dict[str, Any] = {
    "gpu_count": 2,
    "gpu_models": ["RTX 4090", "A100 80GB"],
    "gpu_memory": "24GB",
    "nvlink": True,
    "regions": ["eu", "us"],
    "labels": ["rack=7"],
    "reputation": 62.5,
    "hourly": 2.5,
    "policy": "trusted",
    "avoid": [NODE_ID],
}


def gpu_node(
    number: int, *, count: int = 1, gpu: str = "GeForce RTX 4090", gpu_mib: int = 24_564, **facts: Any
) -> Seller:
    devices = (CandidateDevice(gpu, gpu_mib, nvlink_group=facts.pop("group", 0)),) * count
    plain: dict[str, Any] = {"cpu_milli": 16_000, "memory_mib": 64_000, "disk_mib": 10**6, "price_uc": 100_000}
    plain["kinds"] = frozenset(KINDS)
    candidate = Candidate(UUID(int=number), UUID(int=1000 + number), devices, **plain | facts)
    return Seller(candidate, False, 1e13, 5e10)


def refused(body: dict[str, Any]) -> dict[str, str]:
    objection = parse_order(body)
    assert isinstance(objection, TaskObjection), objection
    return {error.field: error.sentence for error in objection.errors}


def fit_of(body: dict[str, Any], *nodes: Seller) -> Fit:
    return priced(body, *nodes)[0].fit


def test_everything_that_an_order_asks_of_nodes_reaches_the_demand_that_is_stored() -> None:
    order = understood({**CONTAINER, **ASKS})
    [part] = divide(order, ())  # type: ignore[misc]
    kept = demand_for(part.task, *work_footprint(order.kind, part.work), order.requirements)
    demand = kept.demand
    assert {"GeForce RTX 4090"} < demand.device_models
    assert (demand.devices, demand.nvlink, demand.regions) == (2, True, {"eu", "us"})
    assert 22_000 < demand.gpu_memory_mib < 24_564
    assert (demand.reputation_floor, demand.price_max_uc, demand.policy) == (625, 2_500_000, "trusted")
    assert (demand.labels, demand.excluded_nodes) == ({"rack=7"}, {UUID(NODE_ID)})
    assert read_demand(kept.id, json.loads(stored_form(kept))) == kept


@pytest.mark.parametrize("field", [field.name for field in OF_NODES if field.name not in ("memory", "gpu_count")])
def test_each_thing_that_is_asked_of_nodes_makes_another_demand(field: str) -> None:
    """A field that nothing reads would leave the demand as it is."""
    plain, asked = (
        understood({**CONTAINER, "gpu_count": 2}),
        understood({**CONTAINER, "gpu_count": 2, field: ASKS[field]}),
    )
    forms = [demanded(order, divide(order, ())[0], ContainersSettings()) for order in (plain, asked)]  # type: ignore[index]
    assert forms[0] != forms[1]


def test_the_house_checks_whatever_was_asked_of_nodes_besides_the_hardware() -> None:
    order = understood({**CONTAINER, **ASKS})
    demand = demanded(order, divide(order, ())[0], ContainersSettings())  # type: ignore[index]
    checking = for_house(demand)
    assert checking.labels == {HOUSE}
    assert (checking.regions, checking.excluded_nodes, checking.price_max_uc) == (frozenset(), frozenset(), None)
    assert (checking.devices, checking.device_models, checking.shape) == (2, demand.device_models, demand.shape)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"gpu_count": 0}, "gpu_count"),
        ({"gpu_count": True}, "gpu_count"),
        ({"gpu_count": 10**30}, "gpu_count"),
        ({"gpu_models": ["x"] * 1_000}, "gpu_models"),
        ({"gpu_models": "(a+)+$" * 1_000}, "gpu_models"),
        ({"gpu_models": []}, "gpu_models"),
        ({"gpu_memory": float("nan")}, "gpu_memory"),
        ({"gpu_memory": "..24GB"}, "gpu_memory"),
        ({"nvlink": "yes"}, "nvlink"),
        ({"nvlink": True}, "nvlink"),
        ({"regions": [7]}, "regions"),
        ({"labels": [f"rack={number}" for number in range(1_000)]}, "labels"),
        ({"labels": "no label"}, "labels"),
        ({"labels": HOUSE}, "labels"),
        ({"reputation": 101}, "reputation"),
        ({"reputation": float("inf")}, "reputation"),
        ({"reputation": 1.23}, "reputation"),
        ({"hourly": float("nan")}, "hourly"),
        ({"hourly": "1e999999999"}, "hourly"),
        ({"policy": "../../value"}, "policy"),
        ({"policy": ["value"]}, "policy"),
        ({"avoid": [NODE_ID] * 65}, "avoid"),
        ({"avoid": "fca8080"}, "avoid"),
        ({"gpu_count": 2, "parameters": {**CONTAINER["parameters"], "devices": 3}}, "gpu_count"),
    ],
)
def test_what_cannot_be_asked_of_nodes_is_refused_by_its_field(asked: dict[str, Any], field: str) -> None:
    assert list(refused({**CONTAINER, **asked})) == [field]


@pytest.mark.parametrize("field", ["gpu_count", "gpu_models", "gpu_memory"])
def test_work_for_processors_takes_no_gpu(field: str) -> None:
    sentence = refused({"kind": "render", "parameters": {"scene": SCENE, "width": 8, "height": 8}, field: ASKS[field]})
    assert "matmul and container" in sentence[field]


def test_whoever_asks_for_a_model_gets_a_gpu() -> None:
    assert understood({**MATMUL, "gpu_models": "RTX 4090"}).work.devices == 1
    assert understood(MATMUL).work.devices == 0


@given(st.dictionaries(st.sampled_from([field.name for field in OF_NODES]), ANYTHING, max_size=4))
def test_whatever_is_asked_of_nodes_is_an_order_or_named_errors(asked: dict[str, Any]) -> None:
    order = parse_order({**CONTAINER, **asked})
    if isinstance(order, TaskObjection):
        assert {error.field for error in order.errors} <= {*asked, "parameters.devices", ""}
    else:
        assert isinstance(order, Order)
        fit_of({**CONTAINER, **asked}, gpu_node(1))


@pytest.mark.parametrize(
    ("asked", "kept_away", "field", "before", "to", "sentence"),
    [
        (
            {"gpu_memory": "24GB"},
            {"gpu_mib": 16_384},
            "gpu_memory",
            "22888MiB",
            "16GiB",
            "With 16 GiB instead of 22.3 GiB",
        ),
        (
            {"gpu_models": "RTX 4090"},
            {"gpu": "L4"},
            "gpu_models",
            "GeForce RTX 4090",
            "GeForce RTX 4090, L4",
            "With L4",
        ),
        ({"regions": "eu"}, {"region": "us"}, "regions", "eu", "eu, us", "With the region us as well as eu, 11"),
        ({"labels": ["rack=7"]}, {}, "labels", "rack=7", "", "Without the label rack=7, 11 nodes"),
        ({"reputation": 40}, {"reputation": 350}, "reputation", "40", "35", "With a reputation of 35 instead of 40"),
        ({"hourly": 1}, {"price_uc": 3_000_000}, "hourly", "1", "3", "With 3 instead of 1 for a device-hour"),
        (
            {"memory": "64GB"},
            {"memory_mib": 32_768},
            "memory",
            "61035MiB",
            "25.5GiB",
            "With 25.5 GiB instead of 59.6 GiB",
        ),
        ({"gpu_count": 2}, {"count": 1}, "gpu_count", "2", "1", "With 1 instead of 2 GPUs"),
        ({"gpu_count": 2, "nvlink": True}, {"group": 0}, "nvlink", "true", "false", "Without NVLink"),
    ],
)
def test_the_one_limit_that_keeps_most_away_is_told_with_how_many_would_fit(
    asked: dict[str, Any], kept_away: dict[str, Any], field: str, before: str, to: str, sentence: str
) -> None:
    facts = {
        "region": "eu",
        "labels": frozenset({"rack=7"}),
        "reputation": 400,
        "count": 2,
        "group": 1,
        "memory_mib": 10**6,
    }
    lacking = {**facts, "labels": frozenset(), "region": "eu"} if field == "labels" else facts
    nodes = [gpu_node(1, **facts), *(gpu_node(number, **{**lacking, **kept_away}) for number in range(2, 12))]
    fit = fit_of({**CONTAINER, "gpu_count": 1, **asked}, *nodes)
    assert (fit.nodes, fit.of) == (1, 11)
    assert fit.relax is not None
    assert (fit.relax.field, fit.relax.before, fit.relax.nodes) == (field, before, 11)
    assert fit.relax.to == to
    assert fit.relax.sentence.startswith(sentence)
    assert fit.relax.sentence.endswith("11 nodes would fit.")


def test_nothing_is_to_be_relaxed_where_most_nodes_fit_or_nothing_would_help() -> None:
    most = [gpu_node(number) for number in range(1, 8)]
    small = gpu_node(9, gpu_mib=8_192)
    assert fit_of({**CONTAINER, "gpu_memory": "16GB"}, *most, small) == Fit(7, 8)
    assert fit_of({**CONTAINER, "gpu_memory": "16GB"}, gpu_node(1, gpu_mib=8_192, kinds=frozenset())) == Fit(
        0, 1, None, "It needs Docker or Podman, which none of them has (or its owner does not allow it)."
    )
    assert fit_of(CONTAINER) == Fit(0, 0)


def test_where_nothing_fits_it_is_told_what_most_nodes_lack() -> None:
    nodes = [gpu_node(number, count=0) for number in (1, 2)]
    found = fit_of({**MATMUL, "gpu_count": 1}, *nodes)
    assert (found.nodes, found.lack) == (0, "It needs a GPU, which none of them has.")


def test_more_gpus_than_work_can_use_are_refused_at_once_with_how_many_it_uses() -> None:
    for asked, field in (({"gpu_count": 2}, "gpu_count"), ({"nvlink": True}, "nvlink"), (ASKS, "gpu_count")):
        told = refused({**MATMUL, **asked})
        assert told == {field: "matmul uses at most 1 GPU a task."}


def test_the_house_alone_may_check_and_nothing_else_is_said_of_other_nodes() -> None:
    order = understood({**CONTAINER, "gpu_count": 1})
    [part] = divide(order, ())
    checking = for_house(demanded(order, part, ContainersSettings()))
    assert list(objections(gpu_node(1).candidate, checking, NOW)) == [PlacementObjection.HOUSE_ONLY]


def test_everything_that_is_wrong_is_told_with_its_name_and_what_may_have_been_meant() -> None:
    script = {"seconds": 5, "program": "pass", "argumnets": ["a"]}
    told = refused({"kind": "script", "parameters": script, "tasks": "4..", "memroy": 1, "max_budget": "x"})
    assert set(told) == {"parameters.argumnets", "tasks", "memroy", "max_budget"}
    assert told["parameters.argumnets"].endswith("'argumnets'; did you mean arguments?")
    numbered = {**script, "argumnets": ["{task}"]}
    assert set(refused({"kind": "script", "parameters": numbered, "tasks": "4.."})) == {"parameters.argumnets"}


def test_one_odd_node_does_not_set_how_far_a_limit_is_to_be_relaxed() -> None:
    nodes = [gpu_node(number, price_uc=2_000_000) for number in range(1, 10)]
    fit = fit_of({**CONTAINER, "hourly": 1}, *nodes, gpu_node(10, price_uc=10**12))
    assert fit.relax == Relaxation("hourly", "1", "2", 9, "With 2 instead of 1 for a device-hour, 9 nodes would fit.")


@given(
    st.lists(
        st.tuples(st.sampled_from([8_192, 16_384, 24_564]), st.sampled_from(["eu", "us", ""]), st.integers(0, 2)),
        max_size=12,
    )
)
def test_a_quote_prices_only_nodes_that_placement_accepts(facts: list[tuple[int, str, int]]) -> None:
    body = {**CONTAINER, "gpu_memory": "16GB", "regions": ["eu"]}
    nodes = [
        gpu_node(number, gpu_mib=mib, region=region, count=count)
        for number, (mib, region, count) in enumerate(facts, 1)
    ]
    made, [part] = priced(body, *nodes)
    demand = demanded(understood(body), part, ContainersSettings())
    fit = [one for one in nodes if not any(objections(one.candidate, demand, NOW))]
    assert (made.fit.nodes, made.fit.of) == (len(fit), len(nodes))
    assert made.nodes <= len(fit)
    assert quote_from_json(json.loads(json.dumps(quote_json(made)))).fit == made.fit
    if made.fit.relax:
        assert len(fit) < made.fit.relax.nodes <= len(nodes)


def test_names_that_nothing_has_are_refused_with_what_there_is() -> None:
    there_is = KnownNames.of([gpu_node(1, region="eu-west"), gpu_node(2, gpu="Odd GPU")], {"value", "green"})
    asked = {"gpu_models": ["RTX 4090", "RTX 9999", "Odd GPU"], "regions": "eu-wets", "policy": "fastest"}
    objection = unknown_names(understood({**CONTAINER, **asked}), there_is)
    assert isinstance(objection, TaskObjection)
    told = {error.field: error.sentence for error in objection.errors}
    assert set(told) == {"gpu_models", "regions", "policy"}
    assert "'RTX 9999'" in told["gpu_models"]
    assert "eu-west" in told["regions"]
    assert "green, value" in told["policy"]
    assert unknown_names(understood({**CONTAINER, "policy": "green", "gpu_models": "A100 80GB"}), there_is) is None


def test_a_model_of_the_catalogue_may_be_waited_for() -> None:
    order = understood({**CONTAINER, "gpu_models": "RTX 4090"})
    assert unknown_names(order, KnownNames(frozenset(), frozenset(), frozenset())) is None


def test_short_ids_of_nodes_to_avoid_are_written_out() -> None:
    node = gpu_node(UUID(NODE_ID).int)
    other = str(UUID(int=5))
    body = with_whole_ids({**CONTAINER, "avoid": ["8fca8080", other, "00000bad"]}, [node, gpu_node(7)])
    assert body["avoid"] == [other, "00000bad", NODE_ID]
    assert with_whole_ids({**CONTAINER, "avoid": "8fca8080"}, [node])["avoid"] == [NODE_ID]
    assert with_whole_ids(CONTAINER, [node]) == CONTAINER


def test_an_avoided_node_is_not_quoted() -> None:
    nodes = [gpu_node(UUID(NODE_ID).int), gpu_node(7)]
    assert fit_of({**CONTAINER, "avoid": NODE_ID}, *nodes).nodes == 1
    assert replace(fit_of(CONTAINER, *nodes), relax=None) == Fit(2, 2)
