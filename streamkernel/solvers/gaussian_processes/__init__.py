"""Gaussian processes with normal noise: sparse, exact, projected, and online."""

from streamkernel.solvers.gaussian_processes.exact_gp import ExactGP, Posterior
from streamkernel.solvers.gaussian_processes.gaussian_process import GaussianSolution, GaussianSystem, Variances
from streamkernel.solvers.gaussian_processes.online import OnlineGaussianProcess
from streamkernel.solvers.gaussian_processes.projected_bayes import ProjectedBayes, ProjectedSolution

__all__ = [
    "ExactGP",
    "GaussianSolution",
    "GaussianSystem",
    "OnlineGaussianProcess",
    "Posterior",
    "ProjectedBayes",
    "ProjectedSolution",
    "Variances",
]
