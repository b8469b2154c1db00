"""Selection of the rows of a basis: draws, scores, takes, and the rules that combine them."""

from streamkernel.selection.columns import Columns
from streamkernel.selection.greedy import Greedy
from streamkernel.selection.problem import Problem, Rule, Selection
from streamkernel.selection.row_cache import RowCache
from streamkernel.selection.rpcholesky import RPCholesky
from streamkernel.selection.rules import DENSE_RULES, RULES, SCORES, RuleOption, as_kappa, as_rule, options_of
from streamkernel.selection.support_vectors import SupportVectors
from streamkernel.selection.uniform import Uniform

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
