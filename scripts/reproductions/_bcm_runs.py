"""What `bcm` measures: a committee against the exact process, and models of a large table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from _committees import NOISE, Loss

ROWS, CELLS, DTC = "rows", "cells", "DTC"  # the last has no members
LANDMARKS, ASKED = "landmarks", "rows asked for"


@dataclass(frozen=True)
class Run:
    """One committee, or DTC on the same basis: members of `size` rows, n query points, `share` times p_eff."""

    name: str
    query: str
    size: int
    partition: str
    share: float
    n: int
    rmse: float
    nlpd: float
    coverage: float
    rmse_loss: Loss
    nlpd_loss: Loss

    @property
    def lost(self) -> bool:
        """Beyond noise, of one or the other."""
        return self.rmse_loss.beyond_noise or self.nlpd_loss.beyond_noise


@dataclass(frozen=True)
class Compared:
    """A set: the exact process, and all committees.

    The errors are standard errors of its own scores over the test, that of RMSE as a share of it.
    """

    name: str
    rows: int
    columns: int
    tests: int
    signal: float
    noise: float
    degrees: float
    rmse: float
    nlpd: float
    coverage: float
    rmse_error: float
    nlpd_error: float
    runs: Sequence[Run]

    def hides(self, run: Run) -> bool:
        """Whether losses are less than this test tells of the exact process's own scores."""
        found = (run.rmse_loss.mean, self.rmse_error), (run.nlpd_loss.mean, self.nlpd_error)
        return all(mean <= NOISE * error for mean, error in found)


@dataclass(frozen=True)
class Large:
    """One model of a large table; losses are against DTC, seconds those of its sweep and solution."""

    name: str
    model: str
    rows: int
    n: int
    degrees: float
    seconds: float
    picking: float
    rmse: float
    nlpd: float
    coverage: float
    rmse_loss: Loss
    nlpd_loss: Loss


def paired(runs: Sequence[Run], field: str, first: object, second: object) -> list[tuple[Run, Run]]:
    """Runs that differ in this field only, where both are there."""
    fields = [name for name in ("name", "query", "size", "partition", "share") if name != field]

    def known(value: object) -> dict[tuple[object, ...], Run]:
        return {tuple(getattr(r, name) for name in fields): r for r in runs if getattr(r, field) == value}

    left, right = known(first), known(second)
    return [(left[key], right[key]) for key in left if key in right]
