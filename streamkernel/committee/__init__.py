"""Committees: members on partitions of the rows, and combinations of their predictions (Tresp 2001, section 3.1).

The Bayesian committee machine for regression, in its information form, is a Gaussian process with blocks of noise, and
the query points are its basis: `reductions.GaussianEquations` with `BlockNoise`. This package has the other parts.

::

    which rows are a member                 cell_centres, cells_of
    which query points, and how many        query_set, QuerySetRule, degrees_of_features, degrees_of_sample
    how little noise members can have       least_ratio
    members asked for each query            committee_predict: poe, gpoe, bcm, rbcm, grbcm; prediction_steps, its plan
    a member at a time                      OnlineCommittee
    classes and counts                      fit_generalised_committee
    support vector machines (experimental)  fit_svm_committee
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamkernel.committee.generalised import GeneralisedCommittee, fit_generalised_committee
from streamkernel.committee.online import OnlineCommittee
from streamkernel.committee.partition import PARTITIONS, cell_centres, cells_of
from streamkernel.committee.predict import CommitteePrediction, committee_predict, prediction_steps
from streamkernel.committee.query_set import QuerySetRule, degrees_of_features, degrees_of_sample, query_set
from streamkernel.committee.rounding import least_ratio

if TYPE_CHECKING:
    from streamkernel.committee.svm import SVMCommittee, fit_svm_committee

__all__ = [
    "PARTITIONS",
    "CommitteePrediction",
    "GeneralisedCommittee",
    "OnlineCommittee",
    "QuerySetRule",
    "SVMCommittee",
    "cell_centres",
    "cells_of",
    "committee_predict",
    "degrees_of_features",
    "degrees_of_sample",
    "fit_generalised_committee",
    "fit_svm_committee",
    "least_ratio",
    "prediction_steps",
    "query_set",
]


def __getattr__(name: str) -> Any:
    # On first access: scikit-learn's machines take long to import, and no other committee needs them.
    if name not in ("SVMCommittee", "fit_svm_committee"):
        raise AttributeError(f"module 'streamkernel.committee' has no attribute {name!r}")
    return getattr(import_module("streamkernel.committee.svm"), name)
