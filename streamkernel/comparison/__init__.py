"""Cross-validation out of core: estimators compared by their errors on folds that they were not fitted to.

::

    table, folds --splits--> parts of the rows --for each fold--> two views of the table: rows of weight 0 are left out
                                                                     |                     |
                                            candidates --fit--> model --scores--> error of the fold --> Comparison
"""

from streamkernel.comparison.candidates import Candidate, candidate, comparable, opened_for
from streamkernel.comparison.cross_validation import CrossValidation, cross_validate, cross_validation
from streamkernel.comparison.result import Compared, Comparison, Difference

__all__ = [
    "Candidate",
    "Compared",
    "Comparison",
    "CrossValidation",
    "Difference",
    "candidate",
    "comparable",
    "cross_validate",
    "cross_validation",
    "opened_for",
]
