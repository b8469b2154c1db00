"""Settings: the parameters of each fit, one dataclass for each kind, checked before any work."""

from streamkernel.settings.gaussian import CommitteeSettings, GaussianSettings
from streamkernel.settings.generalised import GeneralisedSettings
from streamkernel.settings.ridge import RidgeSettings

__all__ = [
    "CommitteeSettings",
    "GaussianSettings",
    "GeneralisedSettings",
    "RidgeSettings",
]
