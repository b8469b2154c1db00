from .gaussian import GaussianModel as GaussianModel
from .generalised import GeneralisedModel as GeneralisedModel
from .pursuit import PursuitModel as PursuitModel
from .ridge import RidgeModel as RidgeModel
