from .calibration import calibrated as calibrated
from .generalised import (
    METHODS as METHODS,
)
from .generalised import (
    GeneralisedCosts as GeneralisedCosts,
)
from .generalised import (
    generalised_costs as generalised_costs,
)
from .generalised import (
    solve_generalised as solve_generalised,
)
from .laplace import LaplaceApproximation as LaplaceApproximation
from .latent_coordinates import Coordinates as Coordinates
from .latent_coordinates import GeneralisedFit as GeneralisedFit
from .latent_coordinates import Iteration as Iteration
from .newton import solve_newton as solve_newton
from .quasi_newton import solve_quasi_newton as solve_quasi_newton
