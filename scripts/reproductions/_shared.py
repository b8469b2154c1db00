"""What every experiment needs: stored data sets, factors of rows in memory, pictures and pages of one style."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from streamkernel import factorize

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
sys.path.insert(0, str(ROOT / "tests"))

import data_sets  # noqa: E402  (beside the tests)

__all__ = ["RESULTS", "ROOT", "data_sets", "factor_of", "finish", "write_page"]


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
    figure.savefig(path, dpi=120)


def write_page(folder: Path, lines: Sequence[str]) -> None:
    """README.md of the folder, printed too."""
    (folder / "README.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print("\n".join(lines))
