"""What every experiment needs: stored data sets, factors of rows in memory, options, pictures and pages."""

from __future__ import annotations

import argparse
import sys
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from streamkernel import factorize

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "tests"))

import data_sets  # noqa: E402  (beside the tests)

__all__ = [
    "RESULTS",
    "WIDTH",
    "Split",
    "arrays_of",
    "data_sets",
    "factor_of",
    "finish",
    "markdown",
    "parser_of",
    "split_of",
    "wrapped",
    "write_page",
]

Float = NDArray[np.float64]

# Inches of a picture: 720 pixels. A phone shows half as many, and letters of 9 points in 9 of its pixels.
WIDTH, _DOTS = 4.8, 150


@dataclass(frozen=True)
class Split:
    """Rows to fit and to test, and their targets."""

    X: Float
    y: Float
    X_test: Float
    y_test: Float

    @property
    def lengthscale(self) -> float:
        """2 sigma^2 = d / 2 (Smola & Schoelkopf 2000) is exp(-|x - x'|^2 / (2 l^2)) with l = sqrt(d) / 2."""
        return float(np.sqrt(self.X.shape[1])) / 2.0


def arrays_of(name: str) -> tuple[Float, Float] | None:
    """Rows and targets of a stored set, with abalone's sex as three indicators; None where the set is not there."""
    stored = data_sets.load(name)
    if stored is None:
        return None
    X, y = stored.X.astype(np.float64), stored.y.astype(np.float64)
    return (np.column_stack([stored.extras["sex_onehot"], X[:, 1:]]) if name == "abalone" else X), y


def split_of(name: str, train: int, seed: int = 0) -> Split | None:
    """A random split with `train` rows to fit; columns and targets have mean 0 and deviation 1 over these."""
    arrays = arrays_of(name)
    if arrays is None:
        return None
    X, y = arrays
    order = np.random.default_rng(seed).permutation(len(X))
    fit, test = order[:train], order[train:]
    X, y = (X - X[fit].mean(axis=0)) / X[fit].std(axis=0), (y - y[fit].mean()) / y[fit].std()
    return Split(X[fit], y[fit], X[test], y[test])


def parser_of(description: str | None, experiment: str) -> argparse.ArgumentParser:
    """A parser with the option for the folder of the results."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS / experiment)
    return parser


def factor_of(X: Any, y: Any = None, *, n: int, lengthscale: float, **settings: Any) -> Any:
    """The basis of a factor of at most n functions of rows that are scaled already; fewer where the rank is."""
    with warnings.catch_warnings():
        # The rank may be exhausted before n.
        warnings.simplefilter("ignore")
        return factorize(X, y=y, n_components=n, lengthscale=lengthscale, scale="none", **settings)


def finish(figure: Figure, path: Path, **layout: Any) -> None:
    """Grid and frame of every axis, and the file."""
    for axis in figure.axes:
        axis.grid(alpha=0.2)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(**layout)
    figure.savefig(path, dpi=_DOTS)


def markdown(head: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; all columns but the first hold numbers."""
    rows = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return rows + ["| " + " | ".join(row) + " |" for row in cells]


def wrapped(text: str) -> list[str]:
    """The lines of a paragraph of a page."""
    return textwrap.wrap(text, 112)


def write_page(folder: Path, lines: Sequence[str]) -> None:
    """README.md of the folder, printed too."""
    (folder / "README.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print("\n".join(lines))
