from .families import (
    LIKELIHOODS as LIKELIHOODS,
)
from .families import (
    Bernoulli as Bernoulli,
)
from .families import (
    Poisson as Poisson,
)
from .families import (
    Softmax as Softmax,
)
from .families import (
    likelihood_of as likelihood_of,
)
from .gradient_step import GradientStep as GradientStep
from .gradient_step import GradientSums as GradientSums
from .likelihood import Likelihood as Likelihood
from .newton import (
    Latent as Latent,
)
from .newton import (
    NewtonStart as NewtonStart,
)
from .newton import (
    NewtonStep as NewtonStep,
)
from .newton import (
    NewtonSums as NewtonSums,
)
from .newton import (
    StartSums as StartSums,
)
from .newton import (
    add_weighted_gram as add_weighted_gram,
)
