"""Regularised least squares: from the sums of one sweep, by conjugate gradients, and by errors on held-out rows."""

from streamkernel.solvers.least_squares.falkon import (
    FalkonSolution,
    FalkonSystem,
    features_in_memory,
    sampled_rows,
    uniform_draw,
    uniform_sample,
)
from streamkernel.solvers.least_squares.falkon_folds import (
    FalkonFolds,
    SampleChoice,
    alpha_of_sample,
    functions_of_sample,
)
from streamkernel.solvers.least_squares.ridge import RidgeSolution, RidgeSystem
from streamkernel.solvers.least_squares.skilling import CGResult, FullSystem, InverseBelow, plan_full
from streamkernel.solvers.least_squares.solver_choice import SolverChoice, choose_solver, falkon_steps, rows_for_search
from streamkernel.solvers.least_squares.validation import FoldChoice, FoldSolution, FoldSystem, standard_error

__all__ = [
    "CGResult",
    "FalkonFolds",
    "FalkonSolution",
    "FalkonSystem",
    "FoldChoice",
    "FoldSolution",
    "FoldSystem",
    "FullSystem",
    "InverseBelow",
    "RidgeSolution",
    "RidgeSystem",
    "SampleChoice",
    "SolverChoice",
    "alpha_of_sample",
    "choose_solver",
    "falkon_steps",
    "features_in_memory",
    "functions_of_sample",
    "plan_full",
    "rows_for_search",
    "sampled_rows",
    "standard_error",
    "uniform_draw",
    "uniform_sample",
]
