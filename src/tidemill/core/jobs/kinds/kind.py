"""A kind of task: everything about it that the pool and a node must both know. Pure.

A kind reads a customer's parameters into its own work, whose every field is bounded. The work determines the inputs
and outputs, what the task needs, how exact its result is and how it is checked. The same parameters give the same
answers on the pool and on every node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.refusals import Refusal

W = TypeVar("W")


class NumericClass(StrEnum):
    """Which other machines must compute the same bytes."""

    EXACT = "exact"  # all of them
    DEVICE = "device"  # those with the same device, driver and libraries
    NONE = "none"  # none: the result may differ each time


class CheckMethod(StrEnum):
    """How a result is checked."""

    RECOMPUTE = "recompute"
    FREIVALDS = "freivalds"
    HASH = "hash"
    SIMILARITY = "similarity"
    PIXELS = "pixels"
    REPLAY = "replay"


@dataclass(frozen=True)
class Tolerance:
    """How similar two results of one task must be, from 0 to 1: more than `passes` passes, more than `unclear` is
    reviewed, and the rest is wrong."""

    passes: float
    unclear: float

    def __post_init__(self) -> None:
        assert 0 <= self.unclear <= self.passes < 1, "equal results pass, and whatever passes is not unclear"


class FileForm(StrEnum):
    """The form of a file in a result."""

    MATRIX = "matrix"  # NumPy's format
    PICTURE = "picture"  # PNG as we write it
    FILES = "files"  # whatever the task wrote


@dataclass(frozen=True)
class ExpectedInput:
    """An input that a task must have: its name and its largest size."""

    name: str
    most_bytes: int


@dataclass(frozen=True)
class OutputFile:
    """A file below `out`. `exact_bytes` is its size where the kind knows it; `FILES` stands for any number of files."""

    name: str
    form: FileForm
    most_bytes: int
    exact_bytes: int | None = None


class KindRefusal(Refusal):
    KIND_UNKNOWN = "There is no such kind of task: `tidemill kinds` lists those there are."
    PARAMETERS_MALFORMED = "The task cannot be read: correct what is named, then send it again."
    INPUTS_WRONG = "The inputs are not those that the task needs: give each one, by its name."
    WORK_TOO_LARGE = "The task is larger than one machine takes: divide it into smaller ones."
    RESULT_WRONG = "The result is not what a task of this kind makes: run it again, or on another machine."


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field of what a customer wrote, by its path, such as `parameters.seconds`."""

    field: str
    sentence: str


@dataclass(frozen=True)
class TaskObjection:
    """Why a task or an order is refused: the refusal, and what exactly is wrong, field by field where that is known."""

    refusal: KindRefusal
    figures: str
    errors: tuple[FieldError, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.figures} {self.refusal.sentence}"


@dataclass(frozen=True)
class TaskKind(Generic[W]):
    """One kind of task. `ours` says that we wrote the code, so a wrong result is the node's fault and stake is at risk.

    `own_inputs` says that the customer may add inputs; `in_image` says that it runs in an image only. `tolerance` is
    given where results are compared by similarity.
    """

    name: str
    read: Callable[[Mapping[str, object]], W | TaskObjection]
    needs: Callable[[W], Needs]
    inputs: Callable[[W], tuple[ExpectedInput, ...]]
    outputs: Callable[[W], tuple[OutputFile, ...]]
    numeric_class: Callable[[W], NumericClass]
    check: Callable[[W], CheckMethod]
    ours: bool
    own_inputs: bool = False
    in_image: bool = False
    tolerance: Tolerance | None = None
