"""An area of the control plane, as a process runs it: its routes and its loops.

Each area registers itself in its own `area.py`; `areas.py` lists them all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastapi import APIRouter

from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop


@dataclass(frozen=True, kw_only=True)
class Area:
    """Routers are searched in their order. `loops` makes the area's loops for one process."""

    routers: tuple[APIRouter, ...] = ()
    loops: Callable[[Control], Sequence[Loop]] = lambda _: ()
