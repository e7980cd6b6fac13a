"""Training, as the marketplace quotes it: a framework, the size of the samples, the parameters of the model.

No runner trains yet, so a training can be quoted and not confirmed. The figures are the usual rules of thumb, each with
its range: weights, gradients and the optimiser take sixteen bytes a parameter; a step takes six operations for each
parameter and token; a token is three to six bytes; devices reach a quarter to a half of what their data sheet says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.parameters import malformed
from tidemill.core.jobs.quotes.quantities import BYTES, COUNT, amount

TYPES = frozenset({"ml_training", "training", "fine_tuning", "distributed_training"})
KIND = "training"

BYTES_PER_PARAMETER = 16
OPERATIONS_PER_TOKEN = 6
TOKEN_BYTES = (6, 3)
UTILISATION = (0.5, 0.25)
DEVICE_MODEL, DEVICE_MIB, DEVICE_OPERATIONS_PER_S = "A100 80GB", 81_920, 312e12
"""The device that the estimate counts in, whichever will train in the end."""

PARAMETERS_MAX, SAMPLES_MAX_BYTES = 10**13, 10**15
_NAME_MAX = 100


@dataclass(frozen=True)
class Training:
    """What is to be trained, and on how much."""

    framework: str
    parameters: int
    samples_bytes: int


@dataclass(frozen=True)
class Estimate:
    """Devices, the memory they need together, and the hours that they are busy, from the least to the most."""

    devices: int
    memory_mib: int
    hours: tuple[float, float]
    reasoning: tuple[str, ...]


def read_training(body: Mapping[str, object]) -> Training | TaskObjection:
    """The training that a body describes, every field within its bounds."""
    framework = body.get("framework", "")
    if not isinstance(framework, str) or len(framework) > _NAME_MAX or not framework.isprintable():
        return malformed(f"framework must be a text of at most {_NAME_MAX} printable characters.")
    parameters, samples = amount(body.get("model_params"), COUNT), amount(body.get("dataset_size"), BYTES)
    if parameters is None or not 1 <= parameters <= PARAMETERS_MAX:
        return malformed(f"model_params must be a count such as 70B, up to {PARAMETERS_MAX:,}.")
    if samples is None or not 1 <= samples <= SAMPLES_MAX_BYTES:
        return malformed("dataset_size must be a size such as 500GB, up to 1000TB.")
    return Training(framework, int(parameters), int(samples))


def estimate(training: Training) -> Estimate:
    """How many devices it takes, and for how long."""
    memory_mib = max(1, training.parameters * BYTES_PER_PARAMETER // 2**20)
    devices = max(1, ceil(memory_mib / DEVICE_MIB))
    least, most = (
        OPERATIONS_PER_TOKEN * training.parameters * (training.samples_bytes / token_bytes)
        / (DEVICE_OPERATIONS_PER_S * share * devices * 3600)
        for token_bytes, share in zip(TOKEN_BYTES, UTILISATION, strict=True)
    )  # fmt: skip
    return Estimate(devices, memory_mib, (least, most), _reasoning(training, devices, memory_mib))


def _reasoning(training: Training, devices: int, memory_mib: int) -> tuple[str, ...]:
    fewest, most = (training.samples_bytes // size for size in TOKEN_BYTES)
    return (
        f"{training.parameters:,} parameters take about {memory_mib:,} MiB with gradients and optimiser, "
        f"{BYTES_PER_PARAMETER} bytes each.",
        f"That is {devices} device{'s' if devices > 1 else ''} such as {DEVICE_MODEL}, with {DEVICE_MIB:,} MiB each.",
        f"{training.samples_bytes:,} bytes of samples are {fewest:,} to {most:,} tokens, each read once.",
        f"A token takes {OPERATIONS_PER_TOKEN} operations for each parameter, and devices reach a quarter to a half of "
        "what their data sheet says.",
    )
