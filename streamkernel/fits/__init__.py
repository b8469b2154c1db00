"""Fits: the steps from a table and settings to a model.

Each family of kinds has a room, with its plans; `steps` has what all of them do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.fits.gaussian.gaussian import fit_gaussian, plan_gaussian
    from streamkernel.fits.gaussian.generalised import fit_generalised, plan_generalised
    from streamkernel.fits.ridge.ridge import fit_ridge, plan_ridge
else:
    __getattr__ = on_demand(
        __name__,
        {
            "gaussian.gaussian": "fit_gaussian plan_gaussian",
            "gaussian.generalised": "fit_generalised plan_generalised",
            "ridge.ridge": "fit_ridge plan_ridge",
        },
    )

__all__ = [
    "fit_gaussian",
    "fit_generalised",
    "fit_ridge",
    "plan_gaussian",
    "plan_generalised",
    "plan_ridge",
]
