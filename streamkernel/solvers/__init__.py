"""Solvers: coefficients from the sums of a sweep. A system is decomposed once and then solved many times."""

from streamkernel.records import LengthscaleChoice
from streamkernel.solvers._highs import require_highs
from streamkernel.solvers._linear_machine import LinearLimits, LinearMachine
from streamkernel.solvers.active_set import solve_active_set
from streamkernel.solvers.calibration import calibrated
from streamkernel.solvers.exact_gp import ExactGP, Posterior
from streamkernel.solvers.falkon import FalkonSolution, FalkonSystem, sampled_rows, uniform_sample
from streamkernel.solvers.falkon_folds import FalkonFolds, SampleChoice, alpha_of_sample, functions_of_sample
from streamkernel.solvers.full_margins import (
    FULL_SWEEPS,
    SupportVectorSolution,
    full_margin_steps,
    plan_full_margins,
    solve_full_margins,
)
from streamkernel.solvers.gaussian_process import GaussianSolution, GaussianSystem, Variances
from streamkernel.solvers.generalised import METHODS, GeneralisedCosts, generalised_costs, solve_generalised
from streamkernel.solvers.interior_point import InteriorSolution, solve_margins
from streamkernel.solvers.lagrangian import solve_lagrangian
from streamkernel.solvers.laplace import LaplaceApproximation
from streamkernel.solvers.latent_coordinates import Coordinates, GeneralisedFit, Iteration
from streamkernel.solvers.lengthscale import choice_bytes, choose_lengthscale, median_lengthscale, with_choice
from streamkernel.solvers.linear_programs import linear_program_steps, solve_linear_machines
from streamkernel.solvers.margin_calibration import isotonic_curves, platt_curves, quantile_shifts
from streamkernel.solvers.margin_solution import Certified, MarginIteration, MarginSolution, MarginStart, warn_of_gap
from streamkernel.solvers.newton import solve_newton
from streamkernel.solvers.online import OnlineGaussianProcess
from streamkernel.solvers.projected_bayes import ProjectedBayes, ProjectedSolution
from streamkernel.solvers.quasi_newton import solve_quasi_newton
from streamkernel.solvers.ridge import RidgeSolution, RidgeSystem
from streamkernel.solvers.skilling import CGResult, FullSystem, InverseBelow, plan_full
from streamkernel.solvers.smo import SMOSolution, solve_smo
from streamkernel.solvers.smooth_margins import solve_smooth_margins
from streamkernel.solvers.solver_choice import SolverChoice, choose_solver, falkon_steps, rows_for_search
from streamkernel.solvers.validation import FoldChoice, FoldSolution, FoldSystem, standard_error

__all__ = [
    "FULL_SWEEPS",
    "METHODS",
    "CGResult",
    "Certified",
    "Coordinates",
    "ExactGP",
    "FalkonFolds",
    "FalkonSolution",
    "FalkonSystem",
    "FoldChoice",
    "FoldSolution",
    "FoldSystem",
    "FullSystem",
    "GaussianSolution",
    "GaussianSystem",
    "GeneralisedCosts",
    "GeneralisedFit",
    "InteriorSolution",
    "InverseBelow",
    "Iteration",
    "LaplaceApproximation",
    "LengthscaleChoice",
    "LinearLimits",
    "LinearMachine",
    "MarginIteration",
    "MarginSolution",
    "MarginStart",
    "OnlineGaussianProcess",
    "Posterior",
    "ProjectedBayes",
    "ProjectedSolution",
    "RidgeSolution",
    "RidgeSystem",
    "SMOSolution",
    "SampleChoice",
    "SolverChoice",
    "SupportVectorSolution",
    "Variances",
    "alpha_of_sample",
    "calibrated",
    "choice_bytes",
    "choose_lengthscale",
    "choose_solver",
    "falkon_steps",
    "full_margin_steps",
    "functions_of_sample",
    "generalised_costs",
    "isotonic_curves",
    "linear_program_steps",
    "median_lengthscale",
    "plan_full",
    "plan_full_margins",
    "platt_curves",
    "quantile_shifts",
    "require_highs",
    "rows_for_search",
    "sampled_rows",
    "solve_active_set",
    "solve_full_margins",
    "solve_generalised",
    "solve_lagrangian",
    "solve_linear_machines",
    "solve_margins",
    "solve_newton",
    "solve_quasi_newton",
    "solve_smo",
    "solve_smooth_margins",
    "standard_error",
    "uniform_sample",
    "warn_of_gap",
    "with_choice",
]
