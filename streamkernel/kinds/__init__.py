"""Kinds of models: what can be fitted, saved, loaded and served, each one record of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.kinds._kind import Kind, Predictor, Transformer
    from streamkernel.kinds._loaded import (
        kind_of_class,
        predicting_class,
        predictor_of,
        title_of,
        transformer_class,
        transforming_class,
        updatable,
    )
    from streamkernel.kinds._options import OPTION_SETTINGS, check_options, settings_of, with_stores_opened
    from streamkernel.kinds._registry import KINDS, PREDICTORS, TRANSFORMERS
else:
    __getattr__ = on_demand(
        __name__,
        {
            "_kind": "Kind Predictor Transformer",
            "_loaded": (
                "kind_of_class predicting_class predictor_of title_of transformer_class transforming_class updatable"
            ),
            "_options": "OPTION_SETTINGS check_options settings_of with_stores_opened",
            "_registry": "KINDS PREDICTORS TRANSFORMERS",
        },
    )

__all__ = [
    "KINDS",
    "OPTION_SETTINGS",
    "PREDICTORS",
    "TRANSFORMERS",
    "Kind",
    "Predictor",
    "Transformer",
    "check_options",
    "kind_of_class",
    "predicting_class",
    "predictor_of",
    "settings_of",
    "title_of",
    "transformer_class",
    "transforming_class",
    "updatable",
    "with_stores_opened",
]
