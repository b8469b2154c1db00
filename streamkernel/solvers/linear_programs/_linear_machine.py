"""A linear programming machine as a fit finds it: its points, its bounds, and the program from which others start."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.reductions import Sample
from streamkernel.solvers.linear_programs._sifted_program import SiftedState
from streamkernel.solvers.margins.margin_solution import Certified, MarginIteration
from streamkernel.type_aliases import Float, Int


@dataclass(frozen=True)
class LinearRound(MarginIteration):
    """What a sweep has found: objectives and gap as in `MarginIteration`.

    Attributes
    ----------
    rows, columns : of the program.
    functions : number of coefficients that are not 0.
    price : the largest price of all columns.
    """

    rows: int
    columns: int
    functions: int
    price: float


@dataclass(frozen=True)
class LinearMachine(Certified):
    """A linear programming machine: ``f(x) = k(x, points) coefficients + offset``.

    Attributes
    ----------
    vectors : Sample of the n points with a coefficient, ascending by row.
    coefficients : (n,) a.
    offset : b.
    primal, dual : the least objective over all rows, which is that of the function, and the largest bound.
    iterations : one record for each sweep.
    converged : whether the gap is within the tolerance.
    C : that of the loss.
    trace, count : sum of w k(x, x), and number of rows of weight > 0.
    capped : whether the largest number of columns ended it.
    candidates : number of rows that were drawn as candidates for columns; None where all rows were.
    state : the last program, from which another C or other rows start.
    """

    vectors: Sample
    coefficients: Float
    offset: float
    primal: float
    dual: float
    iterations: tuple[LinearRound, ...]
    converged: bool
    C: float
    trace: float
    count: int
    capped: bool
    candidates: int | None
    state: LinearState

    @property
    def rows(self) -> Int:
        """(n,) row numbers of the points."""
        return self.vectors.rows


@dataclass(frozen=True)
class LinearState:
    """Rows and columns of a program, in its order, and its basis."""

    rows: Sample
    columns: Sample
    program: SiftedState


@dataclass(frozen=True)
class LinearLimits:
    """Limits of the programs of a fit.

    Attributes
    ----------
    columns : largest number of columns of one function.
    rows : largest number of rows of one function.
    candidates : number of rows that are drawn as candidates for columns; None for all rows, priced in the sweeps.
    """

    columns: int
    rows: int
    candidates: int | None = None
