"""Large margins: reduced machines, one sweep per iteration, and machines on the full kernel matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.solvers.margins.active_set import solve_active_set
    from streamkernel.solvers.margins.full_margins import (
        FULL_SWEEPS,
        SupportVectorSolution,
        full_margin_steps,
        plan_full_margins,
        solve_full_margins,
    )
    from streamkernel.solvers.margins.interior_point import InteriorSolution, solve_margins
    from streamkernel.solvers.margins.lagrangian import solve_lagrangian
    from streamkernel.solvers.margins.margin_calibration import isotonic_curves, platt_curves, quantile_shifts
    from streamkernel.solvers.margins.margin_solution import (
        Certified,
        MarginIteration,
        MarginSolution,
        MarginStart,
        warn_of_gap,
    )
    from streamkernel.solvers.margins.smo import SMOSolution, solve_smo
    from streamkernel.solvers.margins.smooth_margins import solve_smooth_margins
else:
    __getattr__ = on_demand(
        __name__,
        {
            "active_set": "solve_active_set",
            "full_margins": "FULL_SWEEPS SupportVectorSolution full_margin_steps plan_full_margins solve_full_margins",
            "interior_point": "InteriorSolution solve_margins",
            "lagrangian": "solve_lagrangian",
            "margin_calibration": "isotonic_curves platt_curves quantile_shifts",
            "margin_solution": "Certified MarginIteration MarginSolution MarginStart warn_of_gap",
            "smo": "SMOSolution solve_smo",
            "smooth_margins": "solve_smooth_margins",
        },
    )

__all__ = [
    "Certified",
    "FULL_SWEEPS",
    "InteriorSolution",
    "MarginIteration",
    "MarginSolution",
    "MarginStart",
    "SMOSolution",
    "SupportVectorSolution",
    "full_margin_steps",
    "isotonic_curves",
    "plan_full_margins",
    "platt_curves",
    "quantile_shifts",
    "solve_active_set",
    "solve_full_margins",
    "solve_lagrangian",
    "solve_margins",
    "solve_smo",
    "solve_smooth_margins",
    "warn_of_gap",
]
