from .active_set import ActiveSetStep as ActiveSetStep
from .active_set import ActiveSetSums as ActiveSetSums
from .band import Band as Band
from .band import BandRows as BandRows
from .band import largest_band as largest_band
from .interior_point import (
    InteriorPath as InteriorPath,
)
from .interior_point import (
    InteriorPointStep as InteriorPointStep,
)
from .interior_point import (
    InteriorPointSums as InteriorPointSums,
)
from .lagrangian import LagrangianStep as LagrangianStep
from .lagrangian import LagrangianSums as LagrangianSums
from .losses import (
    EpsilonInsensitive as EpsilonInsensitive,
)
from .losses import (
    Hinge as Hinge,
)
from .losses import (
    Huber as Huber,
)
from .losses import (
    Kink as Kink,
)
from .losses import (
    Logistic as Logistic,
)
from .losses import (
    Loss as Loss,
)
from .losses import (
    OneClass as OneClass,
)
from .losses import (
    PiecewiseLinear as PiecewiseLinear,
)
from .losses import (
    Pinball as Pinball,
)
from .losses import (
    Slopes as Slopes,
)
from .losses import (
    Smooth as Smooth,
)
from .losses import (
    SmoothedHinge as SmoothedHinge,
)
from .losses import (
    Squared as Squared,
)
from .losses import (
    SquaredEpsilonInsensitive as SquaredEpsilonInsensitive,
)
from .losses import (
    SquaredHinge as SquaredHinge,
)
from .newton import Line as Line
from .newton import SmoothStep as SmoothStep
from .newton import SmoothSums as SmoothSums
from .prices import PricedFunction as PricedFunction
from .prices import PriceRows as PriceRows
from .prices import Prices as Prices
from .prices import violations as violations
from .step_sums import StepSums as StepSums
from .step_sums import TraceSums as TraceSums
from .targets import PairTarget as PairTarget
from .targets import Target as Target
from .targets import class_pairs as class_pairs
from .violators import ViolatingRows as ViolatingRows
from .violators import Violators as Violators
