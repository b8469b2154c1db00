from .cross_gram import (
    CrossDisagreements as CrossDisagreements,
)
from .cross_gram import (
    CrossFeatureSums as CrossFeatureSums,
)
from .cross_gram import (
    CrossGram as CrossGram,
)
from .each_fold import EachFold as EachFold
from .each_fold import FoldParts as FoldParts
from .evidence_gradient import EvidenceGradient as EvidenceGradient
from .evidence_gradient import EvidenceSlopes as EvidenceSlopes
from .feature_maps import ColumnSquares as ColumnSquares
from .feature_maps import FeatureMap as FeatureMap
from .feature_maps import FeatureTimes as FeatureTimes
from .features import (
    FeatureGram as FeatureGram,
)
from .features import (
    Features as Features,
)
from .features import (
    FeatureSums as FeatureSums,
)
from .features import (
    FeatureTransposed as FeatureTransposed,
)
from .fold_equations import FoldEquations as FoldEquations
from .fold_equations import FoldSums as FoldSums
from .gaussian_equations import GaussianEquations as GaussianEquations
from .gaussian_equations import GaussianSums as GaussianSums
from .gradient_products import AverageGradientProduct as AverageGradientProduct
from .gradient_products import GradientProducts as GradientProducts
from .kernel_products import CrossProducts as CrossProducts
from .kernel_products import KernelProducts as KernelProducts
from .normal_equations import NormalEquations as NormalEquations
from .normal_equations import RidgeSums as RidgeSums
from .normal_products import NormalProduct as NormalProduct
from .normal_products import NormalTargets as NormalTargets
from .normal_products import TargetSums as TargetSums
from .pre_images import PreImages as PreImages
from .row_noise import (
    BlockNoise as BlockNoise,
)
from .row_noise import (
    ConstantNoise as ConstantNoise,
)
from .row_noise import (
    DiagonalNoise as DiagonalNoise,
)
from .row_noise import (
    RowNoise as RowNoise,
)
from .sparse_times import SparseTimes as SparseTimes
