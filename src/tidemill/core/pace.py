"""How long to wait: between ticks, and after failures. Randomness spreads copies apart; the caller brings the draw."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits double from `first_s` up to `most_s`."""

    first_s: float
    most_s: float

    def after(self, failures: int, draw: float) -> float:
        """The wait after so many failures in a row; `draw` in [0, 1) takes up to half of it away."""
        assert failures > 0
        whole_s: float = min(self.most_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return whole_s * (1 - draw / 2)


def between_ticks(every_s: float, *, more: bool, draw: float) -> float:
    """Nothing while there is more to do; else the loop's own period, give or take a tenth."""
    return 0.0 if more else every_s * (0.9 + draw / 5)
