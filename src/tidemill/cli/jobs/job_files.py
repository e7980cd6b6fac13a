"""Job files: a job in YAML or JSON, with ranges as people write them. Input files are uploaded.

A job file is read as plain values, without tags and aliases: so a small file cannot become a large job, and nothing in
it is executed.
"""

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from tidemill.cli.artefacts.artefacts import UploadPurpose, upload_file
from tidemill.cli.terminal.output import CommandRefused

FILE_MAX_BYTES = 1024 * 1024
_PLAIN = (str, int, float, bool, type(None))
_DEPTH_MAX = 32


class JobLoader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """YAML limited to what JSON has: aliases are refused, and times stay texts."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias stands in it")
        return super().compose_node(parent, index)


JobLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_job(file: Path) -> dict[str, Any]:
    """The job in a file."""
    if not file.is_file():
        raise CommandRefused(f"{file} is no file: give one that can be read.")
    with file.open("rb") as opened:
        content = opened.read(FILE_MAX_BYTES + 1)
    if len(content) > FILE_MAX_BYTES:
        raise CommandRefused(f"{file} has more than {FILE_MAX_BYTES:,} bytes: keep texts and programs as inputs.")
    try:
        job = yaml.load(content, JobLoader)  # noqa: S506  # a safe loader, made safer
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CommandRefused(f"{file} cannot be read as YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(job, dict) or not _is_plain(job, 0):
        raise CommandRefused(f"{file} holds no job: write names and values, such as `kind: matmul`.")
    return job


def with_inputs(job: dict[str, Any], beside: Path) -> dict[str, Any]:
    """The job with every input file uploaded. Paths are relative to the job file."""
    inputs = job.get("inputs")
    if not isinstance(inputs, dict):
        return job
    uploaded = {name: _artefact(value, beside) for name, value in inputs.items()}
    return {**job, "inputs": uploaded}


def _artefact(value: Any, beside: Path) -> Any:
    if not isinstance(value, str) or not (file := beside / value).is_file():
        return value
    return upload_file(file, file.name, UploadPurpose.INPUT)["id"]


def _is_plain(value: Any, depth: int) -> bool:
    if depth > _DEPTH_MAX:
        return False
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(member, depth + 1) for name, member in value.items())
    if isinstance(value, list):
        return all(_is_plain(item, depth + 1) for item in value)
    return isinstance(value, _PLAIN)
