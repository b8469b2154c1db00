"""What a sweep accumulates, one idea a file."""

from streamkernel.reductions.collect import Collect
from streamkernel.reductions.column_squares import ColumnSquares
from streamkernel.reductions.contract import Reduction, State
from streamkernel.reductions.counter import row_uniforms, stream_generator
from streamkernel.reductions.feature_maps import FeatureMap, FeatureTimes
from streamkernel.reductions.features import FeatureGram, Features, FeatureSums, FeatureTransposed
from streamkernel.reductions.gather import Gather, Sample
from streamkernel.reductions.look import Look, LookResult
from streamkernel.reductions.moments import Moments
from streamkernel.reductions.normal_equations import NormalEquations, RidgeSums
from streamkernel.reductions.pool import PoolColumns, PoolGram, PoolSums
from streamkernel.reductions.pool_root import PoolRoot, RootSums
from streamkernel.reductions.rows import Predictions, RowMap
from streamkernel.reductions.scores import ClassificationScores, RegressionScores

__all__ = [
    "ClassificationScores",
    "Collect",
    "ColumnSquares",
    "FeatureGram",
    "FeatureMap",
    "FeatureSums",
    "FeatureTimes",
    "FeatureTransposed",
    "Features",
    "Gather",
    "Look",
    "LookResult",
    "Moments",
    "NormalEquations",
    "PoolColumns",
    "PoolGram",
    "PoolRoot",
    "PoolSums",
    "Predictions",
    "Reduction",
    "RegressionScores",
    "RidgeSums",
    "RootSums",
    "RowMap",
    "Sample",
    "State",
    "row_uniforms",
    "stream_generator",
]
