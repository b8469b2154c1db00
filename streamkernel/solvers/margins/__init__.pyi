from .active_set import solve_active_set as solve_active_set
from .full_margins import (
    FULL_SWEEPS as FULL_SWEEPS,
)
from .full_margins import (
    SupportVectorSolution as SupportVectorSolution,
)
from .full_margins import (
    full_margin_steps as full_margin_steps,
)
from .full_margins import (
    plan_full_margins as plan_full_margins,
)
from .full_margins import (
    solve_full_margins as solve_full_margins,
)
from .interior_point import InteriorSolution as InteriorSolution
from .interior_point import solve_margins as solve_margins
from .lagrangian import solve_lagrangian as solve_lagrangian
from .margin_calibration import (
    isotonic_curves as isotonic_curves,
)
from .margin_calibration import (
    platt_curves as platt_curves,
)
from .margin_calibration import (
    quantile_shifts as quantile_shifts,
)
from .margin_solution import (
    Certified as Certified,
)
from .margin_solution import (
    MarginIteration as MarginIteration,
)
from .margin_solution import (
    MarginSolution as MarginSolution,
)
from .margin_solution import (
    MarginStart as MarginStart,
)
from .margin_solution import (
    warn_of_gap as warn_of_gap,
)
from .smo import SMOSolution as SMOSolution
from .smo import solve_smo as solve_smo
from .smooth_margins import solve_smooth_margins as solve_smooth_margins
