"""Gaussian processes with normal noise: sparse, exact, projected, and online."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.solvers.gaussian_processes.exact_gp import ExactGP, Posterior
    from streamkernel.solvers.gaussian_processes.gaussian_process import GaussianSolution, GaussianSystem, Variances
    from streamkernel.solvers.gaussian_processes.online import OnlineGaussianProcess
    from streamkernel.solvers.gaussian_processes.projected_bayes import ProjectedBayes, ProjectedSolution
else:
    __getattr__ = on_demand(
        __name__,
        {
            "exact_gp": "ExactGP Posterior",
            "gaussian_process": "GaussianSolution GaussianSystem Variances",
            "online": "OnlineGaussianProcess",
            "projected_bayes": "ProjectedBayes ProjectedSolution",
        },
    )

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
