"""The search for hyper-parameters by evidence: on sampled rows in memory, then over the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.tuning._search import Tuning, TuningPoint
    from streamkernel.tuning.gaussian import Polished, polish, tune
    from streamkernel.tuning.laplace_evidence import LaplaceEvidence, LaplaceValue
    from streamkernel.tuning.likelihood import tune_likelihood
    from streamkernel.tuning.metric import FORMS, MetricChoice, MetricForm, MetricSearch, metric_steps
    from streamkernel.tuning.sample_evidence import Evidence, SparseEvidence, sparse_evidence, sweep_rows
else:
    __getattr__ = on_demand(
        __name__,
        {
            "_search": "Tuning TuningPoint",
            "gaussian": "Polished polish tune",
            "laplace_evidence": "LaplaceEvidence LaplaceValue",
            "likelihood": "tune_likelihood",
            "metric": "FORMS MetricChoice MetricForm MetricSearch metric_steps",
            "sample_evidence": "Evidence SparseEvidence sparse_evidence sweep_rows",
        },
    )

__all__ = [
    "FORMS",
    "Evidence",
    "LaplaceEvidence",
    "LaplaceValue",
    "MetricChoice",
    "MetricForm",
    "MetricSearch",
    "Polished",
    "SparseEvidence",
    "Tuning",
    "TuningPoint",
    "metric_steps",
    "polish",
    "sparse_evidence",
    "sweep_rows",
    "tune",
    "tune_likelihood",
]
