"""The package of another commit against that of this checkout: digests and times of every kind, in turns."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("before", "after")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare", description=__doc__)
    parser.add_argument("commit", help="what to compare with: a commit, branch or tag")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="only these; default all")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, in turns [default: 3]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        before = Path(place, "before")
        _git("worktree", "add", "--quiet", "--detach", str(before), options.commit)
        try:
            runs = _runs({"before": before, "after": ROOT}, options.kinds, options.repeats)
        finally:
            _git("worktree", "remove", "--force", str(before))
    return _report(runs)


def _git(*arguments: str) -> None:
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def _runs(roots: dict[str, Path], kinds: list[str], repeats: int) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Results by kind and side. Who goes first alternates: a machine that warms up or slows down favours neither."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: {side: [] for side in SIDES})
    for side in SIDES:
        _fitted(roots[side], ["nystroem"])  # compiles what the new checkout has not compiled yet
    for repeat in range(repeats):
        for side in SIDES if repeat % 2 == 0 else SIDES[::-1]:
            for line in _fitted(roots[side], kinds):
                runs[line["kind"]][side].append(line)
    return runs


def _fitted(root: Path, kinds: list[str]) -> list[dict[str, Any]]:
    """One process fits all kinds, with the package at `root`; the script is this checkout's for both."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/_fit_kinds.py"), *kinds],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    strangers = {line["package"] for line in lines} - {str(root / "streamkernel")}
    assert not strangers, f"fitted by {strangers}, not by {root}"
    return lines


def _report(runs: dict[str, dict[str, list[dict[str, Any]]]]) -> int:
    different = 0
    print(f"{'kind':24} {'digest':10} {'fit before':>11} {'after':>9} {'ratio':>6} {'predict':>8}")
    ratios = []
    for kind, sides in runs.items():
        digests = {line["digest"] for lines in sides.values() for line in lines}
        values = {line["values"] for lines in sides.values() for line in lines}
        same = "same" if len(digests) == 1 else "same values" if len(values) == 1 else "DIFFERENT"
        different += len(digests) > 1
        fit = {side: statistics.median(line["fit"] for line in lines) for side, lines in sides.items()}
        predict = {side: statistics.median(line["predict"] for line in lines) for side, lines in sides.items()}
        ratios.append(fit["after"] / fit["before"])
        print(
            f"{kind:24} {same:10} {fit['before']:9.3f} s {fit['after']:7.3f} s {ratios[-1]:6.2f} "
            f"{predict['after'] / predict['before']:8.2f}"
        )
    print(f"fit after/before: median {statistics.median(ratios):.3f}, largest {max(ratios):.3f}")
    if different:
        print(f"{different} of {len(runs)} digests differ", file=sys.stderr)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
