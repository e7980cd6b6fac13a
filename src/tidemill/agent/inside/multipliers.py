"""What multiplies matrices of float32: the processors with numpy, or a GPU with CuPy or torch, whichever is there.

Each loads a right matrix to where it multiplies best, and returns products as numpy arrays. Neither library may use
its shortened float32, so that products of int8 stay exact.
"""

import importlib
from typing import Any, Protocol

import numpy as np

from tidemill.agent.inside.dialogue import MachineUnable

MISSING = (
    "This agent has neither CuPy nor torch, without which it cannot use a GPU: install the one that fits the driver."
)


class Multiplier(Protocol):
    def load(self, right: Any) -> Any:
        """A right matrix of float32, ready for many products."""

    def multiply(self, left: Any, right: Any) -> Any:
        """The product of a numpy matrix of float32 and a loaded one, as a numpy matrix."""


class ArrayModule:
    """numpy, and CuPy, which is written like it."""

    def __init__(self, xp: Any) -> None:
        self._xp = xp

    def load(self, right: Any) -> Any:
        return self._xp.ascontiguousarray(self._xp.asarray(right))

    def multiply(self, left: Any, right: Any) -> Any:
        product = self._xp.asarray(left) @ right
        return product if isinstance(product, np.ndarray) else product.get()


class Torch:
    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device = torch, device
        torch.backends.cuda.matmul.allow_tf32 = False

    def load(self, right: Any) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(right)).to(self._device)

    def multiply(self, left: Any, right: Any) -> Any:
        return (self._torch.from_numpy(left).to(self._device) @ right).cpu().numpy()


def multiplier(devices: int) -> Multiplier:
    """The processors, or the GPU that the run was given."""
    if not devices:
        return ArrayModule(np)
    try:
        return ArrayModule(importlib.import_module("cupy"))
    except ImportError:
        pass
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise MachineUnable(MISSING) from None
    if not torch.cuda.is_available():
        raise MachineUnable("torch finds no GPU in the sandbox: install the build of torch that fits the driver.")
    return Torch(torch, "cuda")
