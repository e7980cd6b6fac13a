"""Files of the safetensors format, read strictly: where each tensor lies, if the header is consistent.

The tensors of a file cover it from the header's end to its last byte, each once, without overlap. Such a file holds
only numbers, and only types that we know are accepted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tidemill.core.matrices.npy import UnreadableFile

LENGTH_BYTES = 8
HEADER_MAX_BYTES = 2**20
TENSORS_MAX = 10_000
DIMENSIONS_MAX = 8
SIDE_MAX = 2**40
ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_LIE = "The tensor number {} of the file does not lie where it says."


@dataclass(frozen=True)
class Tensor:
    """A tensor's type, by the format's own name, its sides, and its bytes in the file."""

    element: str
    shape: tuple[int, ...]
    begins_at: int
    ends_at: int


def header_bytes(beginning: bytes) -> int | UnreadableFile:
    """How many bytes the length and the header take, by the file's first eight."""
    length = int.from_bytes(beginning[:LENGTH_BYTES], "little")
    if len(beginning) < LENGTH_BYTES or not 2 <= length <= HEADER_MAX_BYTES:
        return UnreadableFile("The file is not of the safetensors format, or its header is longer than a megabyte.")
    return LENGTH_BYTES + length


def read_tensors(beginning: bytes, file_bytes: int) -> Mapping[str, Tensor] | UnreadableFile:
    """Every tensor by its name, from the length and the header as they stand in the file."""
    begins_at = header_bytes(beginning)
    if isinstance(begins_at, UnreadableFile):
        return begins_at
    try:
        header = json.loads(beginning[LENGTH_BYTES:begins_at].decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or len(beginning) < begins_at or len(header) > TENSORS_MAX:
        return UnreadableFile("The header of the safetensors file cannot be read.")
    header.pop("__metadata__", None)
    tensors: dict[str, Tensor] = {}
    for number, (name, description) in enumerate(header.items()):
        tensor = _tensor(description, begins_at)
        if tensor is None:
            return UnreadableFile(_LIE.format(number))
        tensors[name] = tensor
    return _covering(tensors, begins_at, file_bytes)


def _tensor(description: Any, begins_at: int) -> Tensor | None:
    if not isinstance(description, dict) or description.keys() != {"dtype", "shape", "data_offsets"}:
        return None
    element, shape, offsets = description["dtype"], description["shape"], description["data_offsets"]
    if not isinstance(element, str) or element not in ITEM_BYTES or not _numbers(shape) or not _numbers(offsets):
        return None
    if len(shape) > DIMENSIONS_MAX or len(offsets) != 2 or offsets[1] - offsets[0] != prod(shape) * ITEM_BYTES[element]:
        return None
    return Tensor(element, tuple(shape), begins_at + offsets[0], begins_at + offsets[1])


def _covering(tensors: dict[str, Tensor], begins_at: int, file_bytes: int) -> Mapping[str, Tensor] | UnreadableFile:
    at = begins_at
    for number, tensor in enumerate(sorted(tensors.values(), key=lambda entry: (entry.begins_at, entry.ends_at))):
        if tensor.begins_at != at:
            return UnreadableFile(_LIE.format(number))
        at = tensor.ends_at
    return (
        tensors if at == file_bytes else UnreadableFile("The safetensors file is longer or shorter than its tensors.")
    )


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number <= SIDE_MAX for number in value)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice")
    return names
