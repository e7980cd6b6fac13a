"""Matrix products: C = A·B with A of M×K and B of K×N, entries int8 or float32.

The matrices are drawn from a seed, or come as inputs `a` and `b` in NumPy's format. Products of int8 are exact, as
int32, on every machine; those of float32 are a device's own and are checked with a bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from tidemill.core.bounded_json import About, Whole
from tidemill.core.jobs.kinds.kind import (
    CheckMethod,
    ExpectedInput,
    FileForm,
    NumericClass,
    OutputFile,
    TaskKind,
    TaskObjection,
)
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import read_parameters, too_large
from tidemill.core.jobs.sandboxes import MIB

SIDE_MAX = 65_536
ALL_MAX_BYTES = 32 * 1024 * MIB
SEED_MAX = 2**53 - 1
HEADERS_BYTES = 4096
PROGRAM_MIB = 224
"""Memory for the interpreter, its libraries and the slabs being multiplied."""

Side = Annotated[int, Whole(1, SIDE_MAX)]


class Element(StrEnum):
    INT8 = "int8"
    FLOAT32 = "float32"


@dataclass(frozen=True)
class Matmul:
    """`seed` is None where the matrices come as inputs. With `devices` a GPU multiplies."""

    m: Annotated[Side, About("Rows of the left matrix.")]
    n: Annotated[Side, About("Columns of the right matrix.")]
    k: Annotated[Side, About("Columns of the left matrix, and rows of the right one.")]
    element: Annotated[Element, About("What the matrices hold.")]
    seed: Annotated[
        Annotated[int, Whole(0, SEED_MAX)] | None,
        About("From which the matrices are drawn; without one they are the inputs a and b."),
    ] = None
    devices: Annotated[int, Whole(0, 1), About("1 multiplies on a GPU.")] = 0


def read(parameters: Mapping[str, object]) -> Matmul | TaskObjection:
    work = read_parameters(Matmul, parameters)
    if isinstance(work, Matmul) and (whole_bytes := sum(_sizes_bytes(work))) > ALL_MAX_BYTES:
        return too_large(f"The three matrices take {whole_bytes:,} bytes, and may take {ALL_MAX_BYTES:,}.")
    return work


def needs(work: Matmul) -> Needs:
    """The right matrix is kept as float32; the left one and the product pass through in slabs."""
    held_mib = -(-4 * work.k * work.n // MIB)
    return Needs(
        memory_mib=PROGRAM_MIB + held_mib,
        disk_mib=-(-_sizes_bytes(work)[2] // MIB) + 1,
        operations=2.0 * work.m * work.n * work.k,
        devices=work.devices,
        gpu_memory_mib=PROGRAM_MIB + held_mib + 512 if work.devices else 0,
    )


def inputs(work: Matmul) -> tuple[ExpectedInput, ...]:
    a_bytes, b_bytes, _ = _sizes_bytes(work)
    if work.seed is not None:
        return ()
    return ExpectedInput("a", a_bytes + HEADERS_BYTES), ExpectedInput("b", b_bytes + HEADERS_BYTES)


def outputs(work: Matmul) -> tuple[OutputFile, ...]:
    size_bytes = 128 + _sizes_bytes(work)[2]
    return (OutputFile("c.npy", FileForm.MATRIX, size_bytes, exact_bytes=size_bytes),)


def _sizes_bytes(work: Matmul) -> tuple[int, int, int]:
    item_bytes = 1 if work.element is Element.INT8 else 4
    return work.m * work.k * item_bytes, work.k * work.n * item_bytes, work.m * work.n * 4


KIND = TaskKind(
    name="matmul",
    read=read,
    needs=needs,
    inputs=inputs,
    outputs=outputs,
    numeric_class=lambda work: NumericClass.EXACT if work.element is Element.INT8 else NumericClass.DEVICE,
    check=lambda _: CheckMethod.FREIVALDS,
    ours=True,
)
