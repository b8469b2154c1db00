"""Settings: the parameters of each fit, one dataclass for each kind, checked before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.settings.gaussian import CommitteeSettings, GaussianSettings
    from streamkernel.settings.generalised import GeneralisedSettings
    from streamkernel.settings.ridge import RidgeSettings
else:
    __getattr__ = on_demand(
        __name__,
        {
            "gaussian": "CommitteeSettings GaussianSettings",
            "generalised": "GeneralisedSettings",
            "ridge": "RidgeSettings",
        },
    )

__all__ = [
    "CommitteeSettings",
    "GaussianSettings",
    "GeneralisedSettings",
    "RidgeSettings",
]
