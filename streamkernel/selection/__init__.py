"""Selection of the rows of a basis: draws, scores, takes, and the rules that combine them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamkernel.on_demand import on_demand

if TYPE_CHECKING:
    from streamkernel.selection.columns import Columns
    from streamkernel.selection.greedy import Greedy
    from streamkernel.selection.problem import Problem, Rule, Selection
    from streamkernel.selection.row_cache import RowCache
    from streamkernel.selection.rpcholesky import RPCholesky
    from streamkernel.selection.rules import DENSE_RULES, RULES, SCORES, RuleOption, as_kappa, as_rule, options_of
    from streamkernel.selection.support_vectors import SupportVectors
    from streamkernel.selection.uniform import Uniform
else:
    __getattr__ = on_demand(
        __name__,
        {
            "columns": "Columns",
            "greedy": "Greedy",
            "problem": "Problem Rule Selection",
            "row_cache": "RowCache",
            "rpcholesky": "RPCholesky",
            "rules": "DENSE_RULES RULES SCORES RuleOption as_kappa as_rule options_of",
            "support_vectors": "SupportVectors",
            "uniform": "Uniform",
        },
    )

__all__ = [
    "DENSE_RULES",
    "RULES",
    "SCORES",
    "Columns",
    "Greedy",
    "Problem",
    "RPCholesky",
    "RowCache",
    "Rule",
    "RuleOption",
    "Selection",
    "SupportVectors",
    "Uniform",
    "as_kappa",
    "as_rule",
    "options_of",
]
