"""What a link server counts, for metrics. Nothing decides by it."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counters:
    """Since the process began, all links together. `refused` is by code, and codes are our own, so they are few."""

    welcomed: int = 0
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)
