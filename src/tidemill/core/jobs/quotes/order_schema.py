"""What an order may hold, as JSON schema: one schema a kind, and one for job files, which editors complete.

It is made of the declarations by which orders are read. What it allows is read; bounds that follow from several fields
together, and those of sizes and times written as text, only the reader knows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.guide import GUIDES, TRAINING_ABOUT
from tidemill.core.jobs.kinds.parameter_schema import object_schema
from tidemill.core.jobs.kinds.parameters import PARAMETERS
from tidemill.core.jobs.kinds.task_body import Priority
from tidemill.core.jobs.quotes import training
from tidemill.core.jobs.quotes.order import GPU_FIELDS, takes_gpus
from tidemill.core.jobs.quotes.order_fields import OF_ALL, OF_NODES, OF_TASKS, OrderField

Schema = dict[str, Any]


def order_schemas() -> Mapping[str, Schema]:
    """By kind, and for a training: the schema of its orders."""
    return {**{kind: kind_schema(kind) for kind in KINDS}, training.KIND: _training_schema()}


def job_file_schema() -> Schema:
    """What a job file may hold."""
    return {
        "title": "A job of Tidemill",
        "description": "`tidemill kinds` shows an example of each kind.",
        "oneOf": list(order_schemas().values()),
    }


def kind_schema(kind: str) -> Schema:
    """Orders of one kind."""
    nodes = [field for field in OF_NODES if takes_gpus(kind) or field.name not in GPU_FIELDS]
    parameters = {**object_schema(GUIDES[kind].shape), "description": "What the work is."}
    first = {"kind": {"const": kind, "description": GUIDES[kind].about}, PARAMETERS: parameters}
    return _schema(kind, GUIDES[kind].about, first, ["kind", PARAMETERS], [*OF_TASKS, *nodes, *OF_ALL])


def _training_schema() -> Schema:
    first = {"type": {"enum": sorted(training.TYPES), "description": "What kind of training."}}
    return _schema(training.KIND, TRAINING_ABOUT, first, ["type"], [*training.FIELDS, *OF_ALL])


def _schema(
    kind: str, about: str, first: Mapping[str, Schema], needed: Sequence[str], table: Sequence[OrderField]
) -> Schema:
    return {
        "title": f"{kind.capitalize()}Order",
        "description": about,
        "type": "object",
        "properties": {**first, **{field.name: _described(field) for field in table}},
        "required": [*needed, *(field.name for field in table if field.is_needed)],
        "additionalProperties": False,
    }


def _described(field: OrderField) -> Schema:
    schema = {**field.schema, "description": field.about}
    usual = field.usual.value if isinstance(field.usual, Priority) else field.usual
    return {**schema, "default": usual} if usual and isinstance(usual, str) else schema
