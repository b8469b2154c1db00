from .counts import CountCalibration as CountCalibration
from .counts import CountScores as CountScores
from .counts import score_counts as score_counts
from .errors import ClassificationScores as ClassificationScores
from .errors import RegressionScores as RegressionScores
from .gaussian import (
    GaussianCalibration as GaussianCalibration,
)
from .gaussian import (
    GaussianScores as GaussianScores,
)
from .gaussian import (
    score_gaussian as score_gaussian,
)
from .labels import LabelScores as LabelScores
from .margins import (
    HeldOutErrors as HeldOutErrors,
)
from .margins import (
    MarginErrors as MarginErrors,
)
from .margins import (
    bin_edges as bin_edges,
)
from .margins import (
    residual_edges as residual_edges,
)
from .margins import (
    value_histogram as value_histogram,
)
from .of_folds import FoldScores as FoldScores
from .one_class import (
    CountDecisions as CountDecisions,
)
from .one_class import (
    DecisionValues as DecisionValues,
)
from .one_class import (
    LoweredThreshold as LoweredThreshold,
)
from .one_class import (
    OneClassScores as OneClassScores,
)
from .probabilities import (
    ProbabilityScores as ProbabilityScores,
)
from .probabilities import (
    Reliability as Reliability,
)
from .probabilities import (
    score_probabilities as score_probabilities,
)
from .quantiles import (
    QuantileCalibration as QuantileCalibration,
)
from .quantiles import (
    QuantileScores as QuantileScores,
)
from .quantiles import (
    pinball_explained as pinball_explained,
)
from .quantiles import (
    score_quantiles as score_quantiles,
)
from .staged import StagedScores as StagedScores
from .staged import StagedSums as StagedSums
