"""The JSON schema of orders and the parser that judges them say the same; and every kind has an example that holds."""

import json
from typing import Any

import jsonschema_rs
import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from tests.core.jobs.test_orders import ANYTHING, MATMUL
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.guide import GUIDES, TRAINING_EXAMPLE
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.quotes import Order, parse_order, training
from tidemill.core.jobs.quotes.order_fields import OF_ALL, OF_NODES, OF_TASKS
from tidemill.core.jobs.quotes.order_schema import job_file_schema, order_schemas

EXAMPLES: dict[str, dict[str, Any]] = {
    **{kind: yaml.safe_load(guide.example) for kind, guide in GUIDES.items()},
    training.KIND: yaml.safe_load(TRAINING_EXAMPLE),
}
VALIDATOR = jsonschema_rs.validator_for(job_file_schema())
FIELDS = [field.name for field in (*OF_ALL, *OF_NODES, *OF_TASKS)]
ONLY_READ = frozenset(FIELDS) - {"priority", "nvlink", "inputs", "expected", "gpu_models", "regions"}
"""Fields with bounds that only the reader knows: of sizes and times as texts, and of several fields together."""


def test_every_kind_has_a_guide_and_an_example_that_is_read_and_fits_the_schema() -> None:
    assert GUIDES.keys() == KINDS.keys()
    for kind, example in EXAMPLES.items():
        order = parse_order(example)
        assert isinstance(order, Order), order
        assert order.kind == kind
        VALIDATOR.validate(example)


@pytest.mark.parametrize("kind", sorted(order_schemas()))
def test_every_field_is_described(kind: str) -> None:
    schema = order_schemas()[kind]
    described = {**schema["properties"], **schema["properties"].get("parameters", {}).get("properties", {})}
    for name, of in described.items():
        assert of.get("description", "").endswith("."), name


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "magic"},
        {"kind": "matmul"},
        {**MATMUL, "strange": 1},
        {**MATMUL, "parameters": {**MATMUL["parameters"], "m": 0}},
        {**MATMUL, "parameters": {**MATMUL["parameters"], "strange": 0}},
        {**MATMUL, "parameters": {"m": 1}},
        {**MATMUL, "parameters": []},
        {**MATMUL, "priority": "now"},
        {**MATMUL, "max_budget": -1},
        {**MATMUL, "max_budget": "1e9"},
        {**MATMUL, "deadline": "soon"},
        {**MATMUL, "tasks": "..x"},
        {**MATMUL, "memory": "lots"},
        {**MATMUL, "gpu_count": 0},
        {**MATMUL, "gpu_models": []},
        {**MATMUL, "labels": ["none"]},
        {**MATMUL, "nvlink": 1},
        {**MATMUL, "policy": "a b"},
        {**MATMUL, "expected": "00"},
        {**MATMUL, "inputs": {".hidden": "x"}},
        {"kind": "embed", "parameters": {"texts": ["a"]}, "gpu_count": 1},
        {"type": "ml_training"},
        {"type": "magic", "model_params": "7B", "dataset_size": "1GB"},
    ],
)
def test_what_the_parser_refuses_the_schema_refuses(body: dict[str, Any]) -> None:
    assert isinstance(parse_order(body), TaskObjection)
    assert not VALIDATOR.is_valid(body)


@given(st.sampled_from(sorted(EXAMPLES)), st.sampled_from(FIELDS), ANYTHING)
def test_schema_and_parser_agree_on_every_field(kind: str, field: str, value: Any) -> None:
    body = {**EXAMPLES[kind], field: value}
    try:
        json.dumps(body, allow_nan=False).encode()
        is_json = abs(value) < 2**53 if isinstance(value, int | float) else value is not None
    except (ValueError, UnicodeEncodeError):
        is_json = False
    if not is_json:
        assert isinstance(parse_order(body), Order | TaskObjection)
        return
    read = parse_order(body)
    if isinstance(read, Order):
        assert VALIDATOR.is_valid(body)
    elif VALIDATOR.is_valid(body):
        assert {error.field for error in read.errors} <= ONLY_READ | {"", "parameters.devices"}


@given(st.sampled_from(sorted(GUIDES)), st.data())
def test_schema_and_parser_agree_on_every_parameter(kind: str, data: st.DataObject) -> None:
    names = sorted(order_schemas()[kind]["properties"]["parameters"]["properties"])
    name, value = (
        data.draw(st.sampled_from(names)),
        data.draw(st.booleans() | st.integers(-5, 2**40) | st.text(max_size=9)),
    )
    body = {**EXAMPLES[kind], "parameters": {**EXAMPLES[kind]["parameters"], name: value}}
    read = parse_order(body)
    if isinstance(read, Order):
        assert VALIDATOR.is_valid(body)
    elif not VALIDATOR.is_valid(body):
        assert read.errors


def test_all_that_is_wrong_is_told_and_not_more_than_helps() -> None:
    body = {"kind": "embed", "parameters": {"texts": [7] * 500}, **{f"strange{number}": 1 for number in range(500)}}
    refused = parse_order(body)
    assert isinstance(refused, TaskObjection)
    assert len(refused.errors) == 20
    assert len(refused.sentence) < 2_000
