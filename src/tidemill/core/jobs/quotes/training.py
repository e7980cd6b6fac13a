"""Training, as the marketplace quotes it: a framework, the size of the samples, the parameters of the model.

No runner trains yet, so a training can be quoted and not confirmed. The figures are the usual rules of thumb, each with
its range: weights, gradients and the optimiser take sixteen bytes a parameter; a step takes six operations for each
parameter and token; a token is three to six bytes; devices reach a quarter to a half of what their data sheet says.
"""

from dataclasses import dataclass
from math import ceil

from tidemill.core.jobs.quotes.order_fields import NUMBER, SIZE, Misread, OrderField, either
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
_BYTES = ("B", "KB", "MB", "GB", "TB")


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


def _framework(raw: object) -> str | Misread:
    fits = isinstance(raw, str) and len(raw) <= _NAME_MAX and raw.isprintable()
    return str(raw) if fits else Misread(f"framework must be a text of at most {_NAME_MAX} printable characters.")


def _model_params(raw: object) -> int | Misread:
    parameters = amount(raw, COUNT)
    if parameters is None or not 1 <= parameters <= PARAMETERS_MAX:
        return Misread(f"model_params must be a count such as 70B, up to {PARAMETERS_MAX:,}.")
    return int(parameters)


def _dataset_size(raw: object) -> int | Misread:
    samples = amount(raw, BYTES)
    if samples is None or not 1 <= samples <= SAMPLES_MAX_BYTES:
        return Misread("dataset_size must be a size such as 500GB, up to 1000TB.")
    return int(samples)


FIELDS = (
    OrderField("framework", _framework, {"type": "string", "maxLength": _NAME_MAX}, "What it is written in.", ""),
    OrderField(
        "model_params",
        _model_params,
        either({"type": "number", "minimum": 1, "maximum": PARAMETERS_MAX}, f"{NUMBER} {{0,3}}[KkMmBbTt]?"),
        "How many parameters the model has, such as 70B.",
        is_needed=True,
    ),
    OrderField(
        "dataset_size",
        _dataset_size,
        either({"type": "number", "minimum": 1, "maximum": SAMPLES_MAX_BYTES}, SIZE),
        "How much it is trained on, such as 500GB.",
        is_needed=True,
    ),
)
"""The fields of an order for a training, besides its type and those of every order."""


def within(training: Training, share: float) -> str:
    """What is left of a training that may only take a share of the work: fewer parameters or fewer samples, since the
    work grows with both alike."""
    parameters, samples = (
        _rounded_down(amount * share, 1000, letters)
        for amount, letters in ((training.parameters, ("", "K", "M", "B", "T")), (training.samples_bytes, _BYTES))
    )
    return f"{parameters} parameters on all samples, or all parameters on {samples} of samples"


def _rounded_down(value: float, step: int, units: tuple[str, ...]) -> str:
    """With two digits, never more than the value."""
    power = 0
    while value >= step and power < len(units) - 1:
        value, power = value / step, power + 1
    digits = 10 if value < 10 else 1
    return f"{int(value * digits) / digits:g}{units[power]}"


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
