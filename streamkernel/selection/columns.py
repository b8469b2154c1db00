"""The columns as basis: the unit vectors under the linear kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamkernel.basis import Basis
from streamkernel.engine import Session, Step
from streamkernel.errors import ParameterError
from streamkernel.kernels import Kernel, Linear
from streamkernel.records import RoundRecord
from streamkernel.selection.problem import Problem, Rule, Selection
from streamkernel.selection.row_cache import RowCache
from streamkernel.type_aliases import Int
from streamkernel.wording import option


@dataclass(frozen=True)
class Columns(Rule):
    """One function for each of the p columns, ``k(x, e_j) = x_j`` under the linear kernel ``k(x, z) = x.z``.

    ``k(Z, Z) = I``, so that the whitened features are the scaled columns themselves, and no row has a residual: the fit
    is that of a linear model, exactly. The functions are not rows of the table; their row numbers are -1. Nothing is
    read to choose them, and the tolerance is not used.
    """

    name = "columns"

    @property
    def fetches_picks(self) -> bool:
        return True

    @staticmethod
    def check_kernel(kernel: Kernel) -> None:
        """Raise ParameterError for a kernel whose features are not the columns."""
        if not isinstance(kernel, Linear):
            raise ParameterError(
                f"the rule 'columns' takes the columns as basis functions, which are features of the kernel 'linear' "
                f"only, not of {kernel.name!r}; give {option('kernel', 'linear')} or another {option('rule')}"
            )

    def prefetch(self, problem: Problem) -> Int:
        return np.zeros(0, np.int64)

    def steps(self, problem: Problem) -> list[Step]:
        return []

    def select(self, problem: Problem, session: Session, cache: RowCache) -> Selection:
        self.check_kernel(problem.kernel)
        p = problem.table.width
        basis = Basis(problem.kernel, np.eye(p, dtype=problem.table.dtype), np.full(p, -1, np.int64))
        return Selection(basis, np.zeros(0), (RoundRecord(0, p, None, p, 0),), "size")
