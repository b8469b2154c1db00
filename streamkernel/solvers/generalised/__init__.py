"""Generalised Gaussian process regression: classes and counts, by Newton's method or a quasi-Newton method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.solvers.generalised.calibration import calibrated
    from streamkernel.solvers.generalised.generalised import (
        METHODS,
        GeneralisedCosts,
        generalised_costs,
        solve_generalised,
    )
    from streamkernel.solvers.generalised.laplace import LaplaceApproximation
    from streamkernel.solvers.generalised.latent_coordinates import Coordinates, GeneralisedFit, Iteration
    from streamkernel.solvers.generalised.newton import solve_newton
    from streamkernel.solvers.generalised.quasi_newton import solve_quasi_newton
else:
    __getattr__ = on_demand(
        __name__,
        {
            "calibration": "calibrated",
            "generalised": "METHODS GeneralisedCosts generalised_costs solve_generalised",
            "laplace": "LaplaceApproximation",
            "latent_coordinates": "Coordinates GeneralisedFit Iteration",
            "newton": "solve_newton",
            "quasi_newton": "solve_quasi_newton",
        },
    )

__all__ = [
    "Coordinates",
    "GeneralisedCosts",
    "GeneralisedFit",
    "Iteration",
    "LaplaceApproximation",
    "METHODS",
    "calibrated",
    "generalised_costs",
    "solve_generalised",
    "solve_newton",
    "solve_quasi_newton",
]
