from .gaussian import CommitteeSettings as CommitteeSettings
from .gaussian import GaussianSettings as GaussianSettings
from .generalised import GeneralisedSettings as GeneralisedSettings
from .ridge import RidgeSettings as RidgeSettings
