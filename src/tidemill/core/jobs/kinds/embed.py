"""Embeddings of texts by MiniLM: 384 numbers of float32 for each, of length one.

Texts are given in the parameters, or as the input `texts`, one JSON text a line; then `count` says how many, so that
the result's shape is known before the work begins. Of a text the model reads at most 256 tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import About, Most, Prose, Whole
from tidemill.core.jobs.kinds.kind import (
    CheckMethod,
    ExpectedInput,
    FileForm,
    NumericClass,
    OutputFile,
    TaskKind,
    TaskObjection,
    Tolerance,
)
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import malformed, read_parameters
from tidemill.core.jobs.sandboxes import MIB

COUNT_MAX = 1_000_000
INLINE_MAX = 512
TEXT_MAX_BYTES = 16 * 1024
DIMENSIONS = 384
TOKENS_MAX = 256
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""The only model supported: all-MiniLM-L6-v2."""

TOLERANCE = Tolerance(passes=1 - 1e-5, unclear=1 - 1e-4)
"""By numeric error alone: the model and its weights are given, and every device computes in float32.

Measured on 146 texts of 2 to 256 tokens, by how much of 1 the worst row's similarity falls short: other threads,
kernels, batches and orders of sums, and float64 against float32, at most 1.4e-7; factors rounded to TF32, 8.1e-7;
weights rounded to float16, 1.5e-6. So whoever computes in float32 passes with a margin of 70, and by TF32 of 12.
Factors rounded to bfloat16 come to 5.2e-5: honest perhaps, but not float32, so nobody is blamed and nobody paid."""

LAYERS, WIDTH, INNER = 6, 384, 1536
TOKENS_TYPICAL = 64
PROGRAM_MIB = 400


@dataclass(frozen=True)
class Embed:
    """Either the texts, or how many the input has."""

    texts: Annotated[
        tuple[Annotated[str, Prose(TEXT_MAX_BYTES)], ...],
        Most(INLINE_MAX),
        About("The texts, or none where they are the input texts, one JSON text a line."),
    ] = ()
    count: Annotated[Annotated[int, Whole(1, COUNT_MAX)] | None, About("How many texts the input texts has.")] = None

    @property
    def rows(self) -> int:
        return self.count or len(self.texts)


def read(parameters: Mapping[str, object]) -> Embed | TaskObjection:
    work = read_parameters(Embed, parameters)
    if isinstance(work, Embed) and bool(work.texts) == (work.count is not None):
        return malformed("The task must have either texts, or the count of those in its input.", "texts")
    return work


def needs(work: Embed) -> Needs:
    tokens = float(sum(_tokens_about(text) for text in work.texts) or work.rows * TOKENS_TYPICAL)
    per_token = LAYERS * 2.0 * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER + 2 * WIDTH * TOKENS_TYPICAL)
    size_mib = -(-_size_bytes(work) // MIB)
    return Needs(memory_mib=PROGRAM_MIB, disk_mib=size_mib + 1, operations=tokens * per_token)


def inputs(work: Embed) -> tuple[ExpectedInput, ...]:
    return () if work.count is None else (ExpectedInput("texts", work.count * (6 * TEXT_MAX_BYTES + 64)),)


def outputs(work: Embed) -> tuple[OutputFile, ...]:
    size_bytes = _size_bytes(work)
    return (OutputFile("embeddings.npy", FileForm.MATRIX, size_bytes, exact_bytes=size_bytes),)


def _size_bytes(work: Embed) -> int:
    return 128 + work.rows * DIMENSIONS * 4


def _tokens_about(text: str) -> int:
    """A token is about four letters; the model adds two tokens, and reads no more than its maximum."""
    return min(TOKENS_MAX, 2 + len(text) // 4 + 1)


KIND = TaskKind(
    name="embed",
    read=read,
    needs=needs,
    inputs=inputs,
    outputs=outputs,
    numeric_class=lambda _: NumericClass.DEVICE,
    check=lambda _: CheckMethod.SIMILARITY,
    ours=True,
    tolerance=TOLERANCE,
)
