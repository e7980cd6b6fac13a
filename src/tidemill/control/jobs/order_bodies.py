"""How orders are documented: a model a kind, told apart by `kind`, each with the schema that core declares.

The models check nothing: `parse_order` judges every body, and tells all that is wrong at once.
"""

from typing import Annotated, Any, Literal, Union

from fastapi import Body
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter, create_model
from pydantic.json_schema import JsonSchemaValue

from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.quotes import training
from tidemill.core.jobs.quotes.order_schema import order_schemas


def _documented(name: str, schema: dict[str, Any]) -> type[BaseModel]:
    """A model whose documentation is the schema."""

    def say(written: dict[str, Any]) -> None:
        written.clear()
        written.update(schema)

    fields: dict[str, Any] = {"kind": (Literal[name], ...)} if name in KINDS else {}
    return create_model(schema["title"], __config__=ConfigDict(json_schema_extra=say), **fields)


_MODELS = {name: _documented(name, schema) for name, schema in order_schemas().items()}
_OF_A_KIND: Any = Union[tuple(_MODELS[kind] for kind in KINDS)]  # noqa: UP007  # the members are only known now
_ORDER: Any = Annotated[_OF_A_KIND, Field(discriminator="kind")] | _MODELS[training.KIND]


class _AnyOrder:
    """The documentation of a body that is any order."""

    def __get_pydantic_json_schema__(self, _: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(_ORDER).core_schema)


OrderBody = Annotated[
    dict[str, Any],
    _AnyOrder(),
    Body(
        description="A kind of task and its parameters, or a training in a few words.",
        openapi_examples={
            "matmul": {
                "value": {
                    "kind": "matmul",
                    "parameters": {"m": 2048, "n": 2048, "k": 2048, "element": "int8", "seed": 7},
                    "priority": "normal",
                    "max_budget": 1,
                }
            },
            "training": {
                "value": {
                    "type": "ml_training",
                    "framework": "pytorch",
                    "dataset_size": "500GB",
                    "model_params": "70B",
                    "priority": "high",
                    "max_budget": 1000,
                }
            },
        },
    ),
]
