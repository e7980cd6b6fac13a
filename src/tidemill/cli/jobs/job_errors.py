"""What a pool finds wrong in a job file, told with the lines of the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.jobs.job_files import JobLoader
from tidemill.cli.terminal.output import CommandRefused


def told_with_lines(file: Path, refused: PoolRefused) -> CommandRefused:
    """The refusal of a job that was read from this file, each error with its line, in the order of lines."""
    if not refused.errors:
        return refused
    lines = lines_of(file)
    found = sorted((_line(lines, error["field"]), index) for index, error in enumerate(refused.errors))
    told = [f"{file}:{line}: {refused.errors[index]['sentence']}" for line, index in found]
    return CommandRefused("\n".join([*told, "Correct what is named, then send it again."]))


def lines_of(file: Path) -> Mapping[str, int]:
    """The line of each field, by its path. The file has been read before, so it is no deeper than we allow."""
    lines: dict[str, int] = {}
    _walk(yaml.compose(file.read_bytes(), JobLoader), "", lines)
    return lines


def _walk(node: Any, path: str, lines: dict[str, int]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            lines.setdefault(below, key.start_mark.line + 1)
            _walk(value, below, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines.setdefault(f"{path}[{index}]", item.start_mark.line + 1)
            _walk(item, f"{path}[{index}]", lines)


def _line(lines: Mapping[str, int], field: str) -> int:
    """The line of a field; of one that is missing, that of what it belongs into."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field, 1)
