"""Models: the saved result of a fit. One class for each kind: its fields and arrays, saving, loading, predicting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.models.gaussian import GaussianModel
    from streamkernel.models.generalised import GeneralisedModel
    from streamkernel.models.pursuit import PursuitModel
    from streamkernel.models.ridge import RidgeModel
else:
    __getattr__ = on_demand(
        __name__,
        {
            "gaussian": "GaussianModel",
            "generalised": "GeneralisedModel",
            "pursuit": "PursuitModel",
            "ridge": "RidgeModel",
        },
    )

__all__ = [
    "GaussianModel",
    "GeneralisedModel",
    "PursuitModel",
    "RidgeModel",
]
