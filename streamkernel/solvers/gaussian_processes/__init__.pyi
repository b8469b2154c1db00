from .exact_gp import ExactGP as ExactGP
from .exact_gp import Posterior as Posterior
from .gaussian_process import (
    GaussianSolution as GaussianSolution,
)
from .gaussian_process import (
    GaussianSystem as GaussianSystem,
)
from .gaussian_process import (
    Variances as Variances,
)
from .online import OnlineGaussianProcess as OnlineGaussianProcess
from .projected_bayes import ProjectedBayes as ProjectedBayes
from .projected_bayes import ProjectedSolution as ProjectedSolution
