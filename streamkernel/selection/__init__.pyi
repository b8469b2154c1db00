from .columns import Columns as Columns
from .greedy import Greedy as Greedy
from .problem import Problem as Problem
from .problem import Rule as Rule
from .problem import Selection as Selection
from .row_cache import RowCache as RowCache
from .rpcholesky import RPCholesky as RPCholesky
from .rules import (
    DENSE_RULES as DENSE_RULES,
)
from .rules import (
    RULES as RULES,
)
from .rules import (
    SCORES as SCORES,
)
from .rules import (
    RuleOption as RuleOption,
)
from .rules import (
    as_kappa as as_kappa,
)
from .rules import (
    as_rule as as_rule,
)
from .rules import (
    options_of as options_of,
)
from .support_vectors import SupportVectors as SupportVectors
from .uniform import Uniform as Uniform
