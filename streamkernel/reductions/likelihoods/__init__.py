"""Likelihoods of classes and counts, and the sums of Newton's method for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.reductions.likelihoods.families import LIKELIHOODS, Bernoulli, Poisson, Softmax, likelihood_of
    from streamkernel.reductions.likelihoods.gradient_step import GradientStep, GradientSums
    from streamkernel.reductions.likelihoods.likelihood import Likelihood
    from streamkernel.reductions.likelihoods.newton import (
        Latent,
        NewtonStart,
        NewtonStep,
        NewtonSums,
        StartSums,
        add_weighted_gram,
    )
else:
    __getattr__ = on_demand(
        __name__,
        {
            "families": "LIKELIHOODS Bernoulli Poisson Softmax likelihood_of",
            "gradient_step": "GradientStep GradientSums",
            "likelihood": "Likelihood",
            "newton": "Latent NewtonStart NewtonStep NewtonSums StartSums add_weighted_gram",
        },
    )

__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "GradientStep",
    "GradientSums",
    "Latent",
    "Likelihood",
    "NewtonStart",
    "NewtonStep",
    "NewtonSums",
    "Poisson",
    "Softmax",
    "StartSums",
    "add_weighted_gram",
    "likelihood_of",
]
