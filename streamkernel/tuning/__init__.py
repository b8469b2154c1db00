"""The search for hyper-parameters by evidence: on sampled rows in memory, then over the whole table."""

from streamkernel.tuning._search import Tuning, TuningPoint
from streamkernel.tuning.gaussian import Polished, polish, tune
from streamkernel.tuning.laplace_evidence import LaplaceEvidence, LaplaceValue
from streamkernel.tuning.likelihood import tune_likelihood
from streamkernel.tuning.metric import FORMS, MetricChoice, MetricForm, MetricSearch, metric_steps
from streamkernel.tuning.sample_evidence import Evidence, SparseEvidence, sparse_evidence, sweep_rows

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
