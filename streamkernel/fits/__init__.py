"""Fits: the steps from a table and settings to a model.

Each family of kinds has a room, with its plans; `steps` has what all of them do.
"""

from streamkernel.fits.gaussian.gaussian import fit_gaussian, plan_gaussian
from streamkernel.fits.gaussian.generalised import fit_generalised, plan_generalised
from streamkernel.fits.ridge.ridge import fit_ridge, plan_ridge

__all__ = [
    "fit_gaussian",
    "fit_generalised",
    "fit_ridge",
    "plan_gaussian",
    "plan_generalised",
    "plan_ridge",
]
