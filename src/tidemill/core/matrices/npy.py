"""Files of NumPy's format with one matrix of int8, int32 or float32: written plainly, read strictly.

A reader that trusts the header would unpickle a stranger's objects or map memory that is not there. This one parses the
header by its grammar, accepts three types and two dimensions, and compares them with the file's length. It evaluates
nothing. Files that we write have one header of 128 bytes, as NumPy writes it.
"""

import re
from dataclasses import dataclass

MAGIC = b"\x93NUMPY"
HEADER_BYTES = 128
HEADER_MAX_BYTES = 4096
ELEMENTS = {"|i1": "int8", "<i4": "int32", "<f4": "float32"}
CODES = {element: code for code, element in ELEMENTS.items()}
ITEM_BYTES = {"int8": 1, "int32": 4, "float32": 4}
_PREFIX = {1: 10, 2: 12, 3: 12}
_SHAPE = r"\( ?(\d{1,10}), ?(\d{1,10}),? ?\)"
_HEADER = re.compile(
    rf"\{{'descr': ?'([|<][if][14])', ?'fortran_order': ?False, ?'shape': ?{_SHAPE},? ?\}} *\n", re.ASCII
)


@dataclass(frozen=True)
class MatrixLayout:
    """A matrix in a file: row after row, little end first, beginning at a byte."""

    element: str
    rows: int
    columns: int
    begins_at: int = HEADER_BYTES

    @property
    def file_bytes(self) -> int:
        return self.begins_at + self.rows * self.columns * ITEM_BYTES[self.element]


@dataclass(frozen=True)
class UnreadableFile:
    """Why a file is not what it should be."""

    sentence: str


def header_of(layout: MatrixLayout) -> bytes:
    """The header before the entries."""
    shape = f"({layout.rows}, {layout.columns})"
    words = f"{{'descr': '{CODES[layout.element]}', 'fortran_order': False, 'shape': {shape}, }}"
    return MAGIC + bytes([1, 0]) + (HEADER_BYTES - 10).to_bytes(2, "little") + f"{words:<117}\n".encode()


def read_layout(beginning: bytes, file_bytes: int) -> MatrixLayout | UnreadableFile:
    """The layout of a file, by its beginning (`HEADER_MAX_BYTES`, or all of it) and its length."""
    prefix = _PREFIX.get(beginning[6] if len(beginning) > 8 else 0)
    if beginning[:6] != MAGIC or prefix is None or beginning[7] != 0:
        return UnreadableFile("The file is not of NumPy's format: save the matrix with numpy.save.")
    ends_at = prefix + int.from_bytes(beginning[8:prefix], "little")
    if ends_at > min(len(beginning), HEADER_MAX_BYTES):
        return UnreadableFile("The file's header is longer than it may be: save the matrix with numpy.save.")
    header = _HEADER.fullmatch(beginning[prefix:ends_at].decode("latin-1"))
    if header is None or header[1] not in ELEMENTS:
        return UnreadableFile("The file must hold a matrix of int8, int32 or float32, row after row, little end first.")
    layout = MatrixLayout(ELEMENTS[header[1]], int(header[2]), int(header[3]), ends_at)
    if layout.file_bytes != file_bytes:
        return UnreadableFile(f"The file has {file_bytes:,} bytes; a matrix of its shape takes {layout.file_bytes:,}.")
    return layout
