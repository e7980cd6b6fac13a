"""The options by which an order chooses nodes, for `tidemill run` and `tidemill jobs submit`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

_Gpus = Annotated[int | None, typer.Option("--gpus", min=1, help="How many GPUs each task has.")]
_GpuModels = Annotated[
    list[str] | None, typer.Option("--gpu-model", help="A GPU of this model, such as 'RTX 4090'; several: any of them.")
]
_GpuMemory = Annotated[str | None, typer.Option("--gpu-memory", help="The least memory of each GPU, such as 24GB.")]
_NvLink = Annotated[bool, typer.Option("--nvlink", help="Only GPUs that NVLink joins.")]
_Regions = Annotated[
    list[str] | None, typer.Option("--region", help="Only nodes in this region; several: any of them.")
]
_Labels = Annotated[
    list[str] | None, typer.Option("--label", help="Only nodes with this label, such as rack=7; several: all of them.")
]
_Reputation = Annotated[
    float | None, typer.Option("--reputation", min=0, max=100, help="The least reputation of an owner, from 0 to 100.")
]
_Hourly = Annotated[str | None, typer.Option("--hourly", help="The most that a device-hour may cost, in credits.")]
_Policy = Annotated[
    str | None, typer.Option("--policy", help="By which policy a node is chosen: value, trusted, fast, packed, …")
]
_Avoid = Annotated[list[str] | None, typer.Option("--avoid", help="A node that must not get it, by its id.")]


_OPTIONS = {
    "gpu_count": "--gpus",
    "gpu_models": "--gpu-model",
    "gpu_memory": "--gpu-memory",
    "nvlink": "--nvlink",
    "max_budget": "--max-budget",
}
"""The options of fields whose names are no words of a sentence."""

_AT_FIRST = {
    "regions": "--region",
    "labels": "--label",
    "reputation": "--reputation",
    "hourly": "--hourly",
    "policy": "--policy",
    "avoid": "--avoid",
    "tasks": "--tasks",
}
"""Those of other fields, which sentences about them begin with."""

_NAMED = re.compile(rf"\b({'|'.join(_OPTIONS)})\b|^({'|'.join(_AT_FIRST)})(?= (?:must|cannot)\b)")


def told_with_options(errors: Sequence[Mapping[str, str]]) -> str:
    """What is wrong with an order that options made, with the names of the options."""
    named = {**_OPTIONS, **_AT_FIRST}
    return " ".join(_NAMED.sub(lambda found: named[found[0]], error["sentence"]) for error in errors)


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """What an order asks of nodes."""

    gpus: _Gpus = None
    gpu_models: _GpuModels = None
    gpu_memory: _GpuMemory = None
    nvlink: _NvLink = False
    regions: _Regions = None
    labels: _Labels = None
    reputation: _Reputation = None
    hourly: _Hourly = None
    policy: _Policy = None
    avoid: _Avoid = None

    def node_fields(self) -> dict[str, Any]:
        """The fields of an order that these options fill: those that were given."""
        fields: dict[str, Any] = {
            "gpu_count": self.gpus,
            "gpu_models": self.gpu_models,
            "gpu_memory": self.gpu_memory,
            "nvlink": self.nvlink,
            "regions": self.regions,
            "labels": self.labels,
            "reputation": self.reputation,
            "hourly": self.hourly,
            "policy": self.policy,
            "avoid": self.avoid,
        }
        return {name: value for name, value in fields.items() if value not in (None, False, [])}
