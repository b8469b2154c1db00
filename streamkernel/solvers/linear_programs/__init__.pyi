from ._highs import require_highs as require_highs
from ._linear_machine import LinearLimits as LinearLimits
from ._linear_machine import LinearMachine as LinearMachine
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
    solve_linear_machines as solve_linear_machines,
)
