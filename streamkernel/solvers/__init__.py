"""Coefficients from sums: init once, solve many."""

from streamkernel.solvers.choice import SolverChoice, choose_solver, falkon_steps
from streamkernel.solvers.exact_gp import ExactGP, Posterior
from streamkernel.solvers.falkon import FalkonSolution, FalkonSystem, sampled_rows
from streamkernel.solvers.gaussian_process import GaussianSolution, GaussianSystem, Variances
from streamkernel.solvers.lengthscale import LengthscaleChoice, choose_lengthscale, median_lengthscale
from streamkernel.solvers.online import OnlineGaussianProcess
from streamkernel.solvers.projected_bayes import ProjectedBayes, ProjectedSolution
from streamkernel.solvers.ridge import RidgeSolution, RidgeSystem
from streamkernel.solvers.sample_evidence import Evidence, SparseEvidence, sparse_evidence, sweep_rows
from streamkernel.solvers.skilling import CGResult, FullSystem, InverseBelow
from streamkernel.solvers.skilling_plan import plan_full
from streamkernel.solvers.tuning import Polished, Tuning, TuningPoint, polish, tune

__all__ = [
    "CGResult",
    "Evidence",
    "ExactGP",
    "FalkonSolution",
    "FalkonSystem",
    "FullSystem",
    "GaussianSolution",
    "GaussianSystem",
    "InverseBelow",
    "LengthscaleChoice",
    "OnlineGaussianProcess",
    "Polished",
    "Posterior",
    "ProjectedBayes",
    "ProjectedSolution",
    "RidgeSolution",
    "RidgeSystem",
    "SolverChoice",
    "SparseEvidence",
    "Tuning",
    "TuningPoint",
    "Variances",
    "choose_lengthscale",
    "choose_solver",
    "falkon_steps",
    "median_lengthscale",
    "plan_full",
    "polish",
    "sampled_rows",
    "sparse_evidence",
    "sweep_rows",
    "tune",
]
