"""The solution of a large margin problem, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.type_aliases import Float


@dataclass(frozen=True)
class MarginIteration:
    """Objectives after one sweep: primal and dual at the present variables, and the gap of the best ones so far."""

    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class MarginSolution:
    """The solution of one problem.

    Attributes
    ----------
    coefficients : (n + 1,) b with the least primal objective; the last is the constant.
    primal, dual : the least primal and the largest dual objective.
    iterations : one record for each sweep.
    converged : whether the gap is within the tolerance.
    """

    coefficients: Float
    primal: float
    dual: float
    iterations: tuple[MarginIteration, ...]
    converged: bool

    @property
    def gap(self) -> float:
        """``primal - dual``: the objective is at most this far from the minimum."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the primal objective."""
        return self.gap / self.primal if self.primal > 0.0 else 0.0
