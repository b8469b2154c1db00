from .gaussian.gaussian import fit_gaussian as fit_gaussian
from .gaussian.gaussian import plan_gaussian as plan_gaussian
from .gaussian.generalised import fit_generalised as fit_generalised
from .gaussian.generalised import plan_generalised as plan_generalised
from .ridge.ridge import fit_ridge as fit_ridge
from .ridge.ridge import plan_ridge as plan_ridge
