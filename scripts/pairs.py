"""Compare two checkouts by a benchmark: alternating runs, and the ratio of every number they print, after over before.

A ratio is told as its median over the pairs, with an interval that covers the true median at 95 %: machines are noisy,
so a number has become worse only if the whole interval lies beyond the bound. Six pairs are the fewest that give one.
Each checkout needs its own `.venv`.

    .venv/bin/python scripts/pairs.py ../before . bench/tasks.py --without-ray
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

CONFIDENCE = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the checkout to compare with")
    parser.add_argument("after", type=Path, help="the checkout in question")
    parser.add_argument("benchmark", help="its path inside a checkout; what follows are its options")
    parser.add_argument("--pairs", type=int, default=7, help="how many pairs of runs")
    asked, options = parser.parse_known_args()
    pairs = []
    for number in range(asked.pairs):
        sides = (asked.before, asked.after) if number % 2 == 0 else (asked.after, asked.before)
        results = {side: run(side, asked.benchmark, options) for side in sides}
        pairs.append((results[asked.before], results[asked.after]))
        sys.stderr.write(json.dumps(pairs[-1]) + "\n")
    for name, summary in summarise(pairs):
        sys.stdout.write(f"{name:40} {summary}\n")


def run(checkout: Path, benchmark: str, options: list[str]) -> dict[str, float]:
    command = [checkout.absolute() / ".venv/bin/python", benchmark, "--json", *options]
    said = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"{benchmark} failed in {checkout}:\n{said.stderr}")
    return dict(numbers(json.loads(said.stdout.splitlines()[-1])))


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number in it, by the path to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def summarise(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> Iterator[tuple[str, str]]:
    for name in pairs[0][0]:
        found = [(before[name], after[name]) for before, after in pairs if before.get(name) and name in after]
        if not found:
            continue
        ratios = sorted(after / before for before, after in found)
        low, high = interval(ratios)
        medians = f"{median(b for b, _ in found):.6g} -> {median(a for _, a in found):.6g}"
        yield name, f"{median(ratios):.3f} ({low:.3f}..{high:.3f})   {medians}"


def interval(ordered: list[float]) -> tuple[float, float]:
    """Bounds of the true median, by the signs alone: nothing is assumed about how the ratios scatter."""
    count, outside, cut = len(ordered), 0.0, 0
    while cut < count // 2:
        outside += 2 * comb(count, cut) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        cut += 1
    return ordered[max(cut - 1, 0)], ordered[-max(cut, 1)]


if __name__ == "__main__":
    main()
