"""Linear programming machines, whose columns and rows are generated between sweeps."""

from streamkernel.solvers.linear_programs._highs import require_highs
from streamkernel.solvers.linear_programs._linear_machine import LinearLimits, LinearMachine
from streamkernel.solvers.linear_programs.linear_programs import linear_program_steps, solve_linear_machines

__all__ = ["LinearLimits", "LinearMachine", "linear_program_steps", "require_highs", "solve_linear_machines"]
