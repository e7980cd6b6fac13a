"""The model all-MiniLM-L6-v2 in numpy: six layers of attention over 384 numbers a token, the mean of the last.

Texts are computed together only if they have equally many tokens, so nothing is padded and nothing is masked.
"""

import os
from typing import Any

import numpy as np

from tidemill.agent.inside.dialogue import MachineUnable
from tidemill.core.matrices.npy import UnreadableFile
from tidemill.core.matrices.safetensors import HEADER_MAX_BYTES, LENGTH_BYTES, read_tensors

LAYERS, HEADS, WIDTH = 6, 12, 384
EPSILON = np.float32(1e-12)
_OVER = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_UNDER = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03),
    -1.42647390514189e-02,
)
"""A fraction of two polynomials that approximates the error function as closely as float32 can."""


class MiniLm:
    """The weights, mapped from their file."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            tensors = read_tensors(file.read(LENGTH_BYTES + HEADER_MAX_BYTES), size_bytes)
        if isinstance(tensors, UnreadableFile):
            raise MachineUnable(f"The model on this machine is damaged. {tensors.sentence}")
        file_bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._weights = {
            name: file_bytes[tensor.begins_at : tensor.ends_at].view("<f4").reshape(tensor.shape)
            for name, tensor in tensors.items()
            if tensor.element == "F32"
        }

    def embeddings(self, numbers: Any) -> Any:
        """A row of length one for each text; `numbers` has a row of tokens for each."""
        parts = (self._embedding("word")[numbers], self._embedding("position")[: numbers.shape[1]])
        states = self._normal("embeddings.LayerNorm", parts[0] + self._embedding("token_type")[0] + parts[1])
        for layer in range(LAYERS):
            states = self._layer(f"encoder.layer.{layer}", states)
        means = states.mean(axis=1)
        return means / np.maximum(np.sqrt((means * means).sum(axis=1, keepdims=True)), EPSILON)

    def _layer(self, name: str, states: Any) -> Any:
        attended = self._linear(f"{name}.attention.output.dense", self._attended(f"{name}.attention.self", states))
        states = self._normal(f"{name}.attention.output.LayerNorm", attended + states)
        inner = _gelu(self._linear(f"{name}.intermediate.dense", states))
        return self._normal(f"{name}.output.LayerNorm", self._linear(f"{name}.output.dense", inner) + states)

    def _attended(self, name: str, states: Any) -> Any:
        texts, tokens, _ = states.shape
        queries, keys, values = (
            self._linear(f"{name}.{part}", states).reshape(texts, tokens, HEADS, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = queries @ keys.transpose(0, 1, 3, 2) * np.float32((WIDTH / HEADS) ** -0.5)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ values).transpose(0, 2, 1, 3).reshape(texts, tokens, WIDTH)

    def _embedding(self, kind: str) -> Any:
        return self._weights[f"embeddings.{kind}_embeddings.weight"]

    def _linear(self, name: str, states: Any) -> Any:
        flat = states.reshape(-1, states.shape[-1]) @ self._weights[f"{name}.weight"].T
        return flat.reshape(*states.shape[:-1], -1) + self._weights[f"{name}.bias"]

    def _normal(self, name: str, states: Any) -> Any:
        centred = states - states.mean(axis=-1, keepdims=True)
        deviations = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        return centred / deviations * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(values: Any) -> Any:
    """Each value times the share of a normal distribution below it."""
    return values * np.float32(0.5) * (error_function(values * np.float32(2**-0.5)) + np.float32(1))


def error_function(values: Any) -> Any:
    bounded = np.clip(values, np.float32(-4), np.float32(4))
    squares = bounded * bounded
    return bounded * _polynomial(_OVER, squares) / _polynomial(_UNDER, squares)


def _polynomial(coefficients: tuple[float, ...], values: Any) -> Any:
    total = np.float32(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * values + np.float32(coefficient)
    return total
