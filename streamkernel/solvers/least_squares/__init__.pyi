from .falkon import (
    FalkonSolution as FalkonSolution,
)
from .falkon import (
    FalkonSystem as FalkonSystem,
)
from .falkon import (
    features_in_memory as features_in_memory,
)
from .falkon import (
    sampled_rows as sampled_rows,
)
from .falkon import (
    uniform_draw as uniform_draw,
)
from .falkon import (
    uniform_sample as uniform_sample,
)
from .falkon_folds import (
    FalkonFolds as FalkonFolds,
)
from .falkon_folds import (
    SampleChoice as SampleChoice,
)
from .falkon_folds import (
    alpha_of_sample as alpha_of_sample,
)
from .falkon_folds import (
    functions_of_sample as functions_of_sample,
)
from .ridge import RidgeSolution as RidgeSolution
from .ridge import RidgeSystem as RidgeSystem
from .skilling import (
    CGResult as CGResult,
)
from .skilling import (
    FullSystem as FullSystem,
)
from .skilling import (
    InverseBelow as InverseBelow,
)
from .skilling import (
    plan_full as plan_full,
)
from .solver_choice import (
    SolverChoice as SolverChoice,
)
from .solver_choice import (
    choose_solver as choose_solver,
)
from .solver_choice import (
    falkon_steps as falkon_steps,
)
from .solver_choice import (
    rows_for_search as rows_for_search,
)
from .validation import (
    FoldChoice as FoldChoice,
)
from .validation import (
    FoldSolution as FoldSolution,
)
from .validation import (
    FoldSystem as FoldSystem,
)
from .validation import (
    standard_error as standard_error,
)
