"""Fits: the steps from a table and settings to a model. One file for each kind, with its plan."""

from streamkernel.fits.gaussian import fit_gaussian, plan_gaussian
from streamkernel.fits.generalised import fit_generalised, plan_generalised
from streamkernel.fits.ridge import fit_ridge, plan_ridge

__all__ = [
    "fit_gaussian",
    "fit_generalised",
    "fit_ridge",
    "plan_gaussian",
    "plan_generalised",
    "plan_ridge",
]
