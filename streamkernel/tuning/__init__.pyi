from ._search import Tuning as Tuning
from ._search import TuningPoint as TuningPoint
from .gaussian import Polished as Polished
from .gaussian import polish as polish
from .gaussian import tune as tune
from .laplace_evidence import LaplaceEvidence as LaplaceEvidence
from .laplace_evidence import LaplaceValue as LaplaceValue
from .likelihood import tune_likelihood as tune_likelihood
from .metric import (
    FORMS as FORMS,
)
from .metric import (
    MetricChoice as MetricChoice,
)
from .metric import (
    MetricForm as MetricForm,
)
from .metric import (
    MetricSearch as MetricSearch,
)
from .metric import (
    metric_steps as metric_steps,
)
from .sample_evidence import (
    Evidence as Evidence,
)
from .sample_evidence import (
    SparseEvidence as SparseEvidence,
)
from .sample_evidence import (
    sparse_evidence as sparse_evidence,
)
from .sample_evidence import (
    sweep_rows as sweep_rows,
)
