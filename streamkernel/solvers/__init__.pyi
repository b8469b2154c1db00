from .gaussian_processes import (
    ExactGP as ExactGP,
)
from .gaussian_processes import (
    GaussianSolution as GaussianSolution,
)
from .gaussian_processes import (
    GaussianSystem as GaussianSystem,
)
from .gaussian_processes import (
    OnlineGaussianProcess as OnlineGaussianProcess,
)
from .gaussian_processes import (
    Posterior as Posterior,
)
from .gaussian_processes import (
    ProjectedBayes as ProjectedBayes,
)
from .gaussian_processes import (
    ProjectedSolution as ProjectedSolution,
)
from .gaussian_processes import (
    Variances as Variances,
)
from .generalised import (
    METHODS as METHODS,
)
from .generalised import (
    Coordinates as Coordinates,
)
from .generalised import (
    GeneralisedCosts as GeneralisedCosts,
)
from .generalised import (
    GeneralisedFit as GeneralisedFit,
)
from .generalised import (
    Iteration as Iteration,
)
from .generalised import (
    LaplaceApproximation as LaplaceApproximation,
)
from .generalised import (
    calibrated as calibrated,
)
from .generalised import (
    generalised_costs as generalised_costs,
)
from .generalised import (
    solve_generalised as solve_generalised,
)
from .generalised import (
    solve_newton as solve_newton,
)
from .generalised import (
    solve_quasi_newton as solve_quasi_newton,
)
from .least_squares import (
    CGResult as CGResult,
)
from .least_squares import (
    FalkonFolds as FalkonFolds,
)
from .least_squares import (
    FalkonSolution as FalkonSolution,
)
from .least_squares import (
    FalkonSystem as FalkonSystem,
)
from .least_squares import (
    FoldChoice as FoldChoice,
)
from .least_squares import (
    FoldSolution as FoldSolution,
)
from .least_squares import (
    FoldSystem as FoldSystem,
)
from .least_squares import (
    FullSystem as FullSystem,
)
from .least_squares import (
    InverseBelow as InverseBelow,
)
from .least_squares import (
    RidgeSolution as RidgeSolution,
)
from .least_squares import (
    RidgeSystem as RidgeSystem,
)
from .least_squares import (
    SampleChoice as SampleChoice,
)
from .least_squares import (
    SolverChoice as SolverChoice,
)
from .least_squares import (
    alpha_of_sample as alpha_of_sample,
)
from .least_squares import (
    choose_solver as choose_solver,
)
from .least_squares import (
    falkon_steps as falkon_steps,
)
from .least_squares import (
    features_in_memory as features_in_memory,
)
from .least_squares import (
    functions_of_sample as functions_of_sample,
)
from .least_squares import (
    plan_full as plan_full,
)
from .least_squares import (
    rows_for_search as rows_for_search,
)
from .least_squares import (
    sampled_rows as sampled_rows,
)
from .least_squares import (
    standard_error as standard_error,
)
from .least_squares import (
    uniform_draw as uniform_draw,
)
from .least_squares import (
    uniform_sample as uniform_sample,
)
from .lengthscale import (
    choice_bytes as choice_bytes,
)
from .lengthscale import (
    choose_lengthscale as choose_lengthscale,
)
from .lengthscale import (
    median_lengthscale as median_lengthscale,
)
from .lengthscale import (
    with_choice as with_choice,
)
from .linear_programs import (
    LinearLimits as LinearLimits,
)
from .linear_programs import (
    LinearMachine as LinearMachine,
)
from .linear_programs import (
    drawn_numbers as drawn_numbers,
)
from .linear_programs import (
    linear_program_step as linear_program_step,
)
from .linear_programs import (
    most_drawn as most_drawn,
)
from .linear_programs import (
    require_highs as require_highs,
)
from .linear_programs import (
    solve_linear_machines as solve_linear_machines,
)
from .margins import (
    FULL_SWEEPS as FULL_SWEEPS,
)
from .margins import (
    Certified as Certified,
)
from .margins import (
    InteriorSolution as InteriorSolution,
)
from .margins import (
    MarginIteration as MarginIteration,
)
from .margins import (
    MarginSolution as MarginSolution,
)
from .margins import (
    MarginStart as MarginStart,
)
from .margins import (
    SMOSolution as SMOSolution,
)
from .margins import (
    SupportVectorSolution as SupportVectorSolution,
)
from .margins import (
    full_margin_steps as full_margin_steps,
)
from .margins import (
    isotonic_curves as isotonic_curves,
)
from .margins import (
    plan_full_margins as plan_full_margins,
)
from .margins import (
    platt_curves as platt_curves,
)
from .margins import (
    quantile_shifts as quantile_shifts,
)
from .margins import (
    solve_active_set as solve_active_set,
)
from .margins import (
    solve_full_margins as solve_full_margins,
)
from .margins import (
    solve_lagrangian as solve_lagrangian,
)
from .margins import (
    solve_margins as solve_margins,
)
from .margins import (
    solve_smo as solve_smo,
)
from .margins import (
    solve_smooth_margins as solve_smooth_margins,
)
from .margins import (
    warn_of_gap as warn_of_gap,
)
