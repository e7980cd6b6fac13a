"""Files of strangers and files of ours: matrices, tensors, pictures, and what is drawn from a seed."""

import io
import json
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.matrices.npy import HEADER_MAX_BYTES, MatrixLayout, UnreadableFile, header_of, read_layout
from tidemill.core.matrices.safetensors import Tensor, read_tensors
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows, drawn_words
from tidemill.core.pictures import pixels_of, png_bytes, png_of

_WORD = 2**64


def model_mixed(word: int) -> int:
    """The generator in plain Python."""
    word ^= word >> 30
    word = word * 0xBF58476D1CE4E5B9 % _WORD
    word ^= word >> 27
    word = word * 0x94D049BB133111EB % _WORD
    return word ^ word >> 31


def model_word(seed: int, number: int, place: int) -> int:
    base = model_mixed((seed * 0xBF58476D1CE4E5B9 + (number + 1) * 0x9E3779B97F4A7C15) % _WORD)
    return model_mixed((place * 0x9E3779B97F4A7C15 + base) % _WORD)


@given(st.integers(0, 2**53 - 1), st.integers(0, 1), st.integers(0, 2**40), st.integers(1, 20))
@settings(deadline=None)
def test_drawn_words_are_those_of_plain_arithmetic(seed: int, number: int, first: int, count: int) -> None:
    words = drawn_words(seed, number, range(first, first + count))
    assert words.tolist() == [model_word(seed, number, place) for place in range(first, first + count)]


@given(st.integers(0, 2**53 - 1), st.sampled_from(["int8", "float32"]), st.integers(1, 33), st.integers(0, 50))
@settings(deadline=None)
def test_any_rows_of_a_drawn_matrix_are_the_same_rows(seed: int, element: str, columns: int, first: int) -> None:
    whole = drawn_rows(seed, RIGHT, element, columns, range(60))
    some = drawn_rows(seed, RIGHT, element, columns, range(first, first + 7))
    assert some.dtype == np.dtype(element)
    assert np.array_equal(some, whole[first : first + 7])


def test_entries_are_spread_evenly_and_the_factors_differ() -> None:
    entries = drawn_rows(5, LEFT, "int8", 1000, range(1000))
    counts = np.bincount(entries.astype(np.int64).ravel() + 128, minlength=256)
    assert counts.min() > 3600
    assert counts.max() < 4200
    floats = drawn_rows(5, LEFT, "float32", 1000, range(1000))
    assert -1 <= floats.min() < -0.9999
    assert 0.9999 < floats.max() < 1
    assert abs(float(floats.astype(np.float64).mean())) < 0.005
    assert not np.array_equal(entries, drawn_rows(5, RIGHT, "int8", 1000, range(1000)))
    assert not np.array_equal(entries, drawn_rows(6, LEFT, "int8", 1000, range(1000)))


def test_a_seed_means_the_same_for_ever() -> None:
    assert drawn_rows(1, LEFT, "int8", 5, range(2)).tolist() == [[78, 80, 46, 63, 94], [-102, 6, 10, -14, 3]]
    assert drawn_rows(1, LEFT, "float32", 2, range(1)).tolist() == [[-0.5063991546630859, -0.9216735363006592]]


@given(st.sampled_from(["int8", "int32", "float32"]), st.integers(1, 9), st.integers(1, 9))
def test_our_files_are_numpys_and_numpys_are_read(element: str, rows: int, columns: int) -> None:
    entries = np.arange(rows * columns).reshape(rows, columns).astype(element)
    buffer = io.BytesIO()
    np.save(buffer, entries)
    theirs = buffer.getvalue()
    layout = MatrixLayout(element, rows, columns)
    assert header_of(layout) + entries.tobytes() == theirs
    assert read_layout(theirs[:HEADER_MAX_BYTES], len(theirs)) == layout


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(version: tuple[int, int]) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.zeros((3, 4), dtype=np.float32), version=version)
    layout = read_layout(buffer.getvalue(), len(buffer.getvalue()))
    assert isinstance(layout, MatrixLayout)
    assert (layout.element, layout.rows, layout.columns) == ("float32", 3, 4)


def npy(header: str, version: int = 1) -> bytes:
    return (
        b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 if version == 1 else 4, "little") + header.encode()
    )


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16,
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }\n"),
        npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 2), }\n") + bytes(16),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n") + bytes(32),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 2), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 1), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2**1, 2), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 2), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'x': __import__('os'), }\n") + bytes(16),
        npy("__import__('os').abort()\n") + bytes(16),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (٢, 2), }\n") + bytes(16),
        npy("[" * 5000, version=2),
    ],
    ids=lambda file: repr(file[8:60]),
)
def test_a_header_that_is_no_such_matrix_is_unreadable(file: bytes) -> None:
    assert isinstance(read_layout(file[:HEADER_MAX_BYTES], len(file)), UnreadableFile)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_readers(noise: bytes) -> None:
    for file in (noise, b"\x93NUMPY\x01\x00" + noise, npy(repr(noise))):
        assert isinstance(read_layout(file[:HEADER_MAX_BYTES], len(file)), UnreadableFile)
    assert isinstance(read_tensors(noise, len(noise)), UnreadableFile)
    assert pixels_of(noise, 1, 1) is None


def safetensors(header: Any, rest: bytes = b"", length: int | None = None) -> bytes:
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(words) if length is None else length).to_bytes(8, "little") + words + rest


def f32(shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}


def test_tensors_are_found_where_they_lie() -> None:
    file = safetensors({"__metadata__": {"a": "b"}, "y": f32([2, 2], 4, 20), "x": f32([], 0, 4)}, bytes(20))
    start = len(file) - 20
    assert read_tensors(file, len(file)) == {
        "y": Tensor("F32", (2, 2), start + 4, start + 20),
        "x": Tensor("F32", (), start, start + 4),
    }


@pytest.mark.parametrize(
    "file",
    [
        b"",
        safetensors({}, length=2**63),
        safetensors({}, length=10**6),
        safetensors(b"{" * 9000),
        safetensors(b"null"),
        safetensors({"x": f32([1], 0, 4)}),  # nothing there
        safetensors({"x": f32([1], 0, 4)}, bytes(5)),  # something behind
        safetensors({"x": f32([1], 4, 8)}, bytes(8)),  # a hole in front
        safetensors({"x": f32([1], 0, 4), "y": f32([1], 0, 4)}, bytes(4)),  # one over another
        safetensors({"x": f32([2], 0, 8), "y": f32([1], 4, 8)}, bytes(8)),  # one within another
        safetensors({"x": f32([2], 0, 4)}, bytes(4)),  # too large for its place
        safetensors({"x": f32([-1], 0, -4)}, bytes(4)),
        safetensors({"x": f32([-1, -1], 0, 4)}, bytes(4)),
        safetensors({"x": f32([True], 0, 4)}, bytes(4)),
        safetensors({"x": f32([1.0], 0, 4)}, bytes(4)),
        safetensors({"x": f32([2**60, 0], 0, 0)}),
        safetensors({"x": f32([1] * 9, 0, 4)}, bytes(4)),
        safetensors({"x": f32([1], 0, 4) | {"dtype": "PY"}}, bytes(4)),
        safetensors({"x": f32([1], 0, 4) | {"dtype": ["F32"]}}, bytes(4)),
        safetensors({"x": f32([1], 0, 4) | {"more": 1}}, bytes(4)),
        safetensors({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}, bytes(4)),
        safetensors({"x": [1]}, bytes(4)),
        safetensors(b'{"x":%b,"x":%b}' % ((json.dumps(f32([1], 0, 4)).encode(),) * 2), bytes(4)),
        safetensors({str(number): f32([0], 0, 0) for number in range(10_001)}),
    ],
    ids=lambda file: repr(file[8:60]),
)  # fmt: skip
def test_a_header_that_lies_is_unreadable(file: bytes) -> None:
    assert isinstance(read_tensors(file, len(file)), UnreadableFile)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32))
@settings(deadline=None)
def test_a_picture_comes_out_as_it_went_in(width: int, height: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, 3 * width * height, dtype=np.uint8).tobytes()
    file = png_of(width, height, pixels)
    assert len(file) == png_bytes(width, height)
    assert pixels_of(file, width, height) == pixels
    assert pixels_of(file, height, width + 1) is None


@pytest.mark.parametrize(("width", "height"), [(1, 1), (200, 200), (21_845, 1), (21_844, 2), (21_845, 3)])
def test_a_picture_is_a_png_that_others_can_read(width: int, height: int) -> None:
    """Blocks that are not compressed end at 65,535 bytes; whole pictures end on either side of that."""
    pixels = bytes(range(256)) * (3 * width * height // 256 + 1)
    file = png_of(width, height, pixels[: 3 * width * height])
    assert len(file) == png_bytes(width, height)
    stored = file[file.index(b"IDAT") + 4 : file.index(b"IEND", len(file) - 12) - 8]
    rows = zlib.decompress(stored)
    assert len(rows) == height * (1 + 3 * width)
    assert rows[1 : 1 + 3 * width] == pixels[: 3 * width]
    for place in (10, 20, 45, len(file) // 2, len(file) - 20):
        changed = bytearray(file)
        changed[place] ^= 1
        assert pixels_of(bytes(changed), width, height) != pixels[: 3 * width * height]
