"""Linear programming machines, whose columns and rows are generated between sweeps."""

from streamkernel.solvers.linear_programs._highs import require_highs
from streamkernel.solvers.linear_programs._linear_machine import LinearLimits, LinearMachine
from streamkernel.solvers.linear_programs.linear_programs import (
    drawn_numbers,
    linear_program_step,
    most_drawn,
    solve_linear_machines,
)

__all__ = [
    "LinearLimits",
    "LinearMachine",
    "drawn_numbers",
    "linear_program_step",
    "most_drawn",
    "require_highs",
    "solve_linear_machines",
]
