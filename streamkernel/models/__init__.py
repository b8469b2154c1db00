"""Models: the saved result of a fit. One class for each kind: its fields and arrays, saving, loading, predicting."""

from streamkernel.models.gaussian import GaussianModel
from streamkernel.models.generalised import GeneralisedModel
from streamkernel.models.pursuit import PursuitModel
from streamkernel.models.ridge import RidgeModel

__all__ = [
    "GaussianModel",
    "GeneralisedModel",
    "PursuitModel",
    "RidgeModel",
]
