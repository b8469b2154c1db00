from .canonical_variates import BothVariates as BothVariates
from .canonical_variates import ViewTimes as ViewTimes
from .class_probabilities import (
    ClassProbabilities as ClassProbabilities,
)
from .class_probabilities import (
    OddsProbabilities as OddsProbabilities,
)
from .class_probabilities import (
    PoissonPredictions as PoissonPredictions,
)
from .class_probabilities import (
    probabilities_of_indicators as probabilities_of_indicators,
)
from .curves import (
    CalibratedProbabilities as CalibratedProbabilities,
)
from .curves import (
    Curves as Curves,
)
from .curves import (
    Isotonic as Isotonic,
)
from .curves import (
    Sigmoids as Sigmoids,
)
from .curves import (
    calibrated as calibrated,
)
from .curves import (
    curves_of as curves_of,
)
from .decisions import Decisions as Decisions
from .gaussian import GaussianPredictions as GaussianPredictions
from .labels import LabelPredictions as LabelPredictions
from .latent import (
    FullCovariance as FullCovariance,
)
from .latent import (
    KroneckerCovariance as KroneckerCovariance,
)
from .latent import (
    LatentCovariance as LatentCovariance,
)
from .latent import (
    LatentPosterior as LatentPosterior,
)
from .latent import (
    covariance_of as covariance_of,
)
from .pairwise import (
    PairwisePredictions as PairwisePredictions,
)
from .pairwise import (
    PairwiseProbabilities as PairwiseProbabilities,
)
from .pairwise import (
    coupled as coupled,
)
from .pairwise import (
    pair_scores as pair_scores,
)
from .quantiles import QuantilePredictions as QuantilePredictions
