"""Which check belongs to what a kind of task says about its results. Each takes its own claim and evidence."""

from collections.abc import Callable, Mapping
from typing import Any

from tidemill.core.checks import exact, images, products, replay, similarity
from tidemill.core.checks.verdict import Verdict
from tidemill.core.kinds.kind import Check

CHECKS: Mapping[Check, Callable[[Any, Any], Verdict]] = {
    Check.RECOMPUTE: exact.check,
    Check.HASH: exact.check,
    Check.FREIVALDS: products.check,
    Check.SIMILARITY: similarity.check,
    Check.PIXELS: images.check,
    Check.REPLAY: replay.check,
}
