"""Small dense algebra on n x n matrices: in place, with one BLAS thread, and a check for NaN before factorisations."""

from streamkernel.compiled_loops import Compiled
from streamkernel.linalg._blas import add_product, factor_lower, pivoted_factor, subtract_gram, subtract_product, syrk
from streamkernel.linalg.block_memory import BlockMemory, block_array, reused_blocks
from streamkernel.linalg.box_program import box_maximum
from streamkernel.linalg.cholesky import (
    DEPENDENT_ROWS_LOOPS,
    RankRevealed,
    cholesky,
    independent_rows,
    inverse_norm,
    solve_lower,
    solve_lower_t,
    solve_shifted,
    whitened,
)
from streamkernel.linalg.duality import DualityPath, duality_path
from streamkernel.linalg.eigen import (
    SymmetricEigen,
    add_to_diagonal,
    from_upper_triangle,
    leading_square,
    mirror_upper,
    symmetric_eigen,
    upper_triangle,
)
from streamkernel.linalg.few_rows import FEW_ROWS_LOOPS, subtract_few
from streamkernel.linalg.finite import require_finite, within_range
from streamkernel.linalg.in_place import InPlaceCholesky
from streamkernel.linalg.metric import metric_factor
from streamkernel.linalg.pair_steps import PAIR_STEP_LOOPS
from streamkernel.linalg.ridge import RidgePath
from streamkernel.linalg.threads import single_threaded_blas
from streamkernel.linalg.tridiagonal import TRIDIAGONAL_LOOPS
from streamkernel.linalg.whitening import PANEL_ROWS, Whitener, even_panels

__all__ = [
    "BlockMemory",
    "PANEL_ROWS",
    "DualityPath",
    "InPlaceCholesky",
    "RankRevealed",
    "RidgePath",
    "SymmetricEigen",
    "Whitener",
    "add_product",
    "add_to_diagonal",
    "block_array",
    "box_maximum",
    "cholesky",
    "duality_path",
    "even_panels",
    "factor_lower",
    "from_upper_triangle",
    "independent_rows",
    "inverse_norm",
    "leading_square",
    "loops_of_algebra",
    "metric_factor",
    "mirror_upper",
    "pivoted_factor",
    "require_finite",
    "reused_blocks",
    "single_threaded_blas",
    "solve_lower",
    "solve_lower_t",
    "solve_shifted",
    "subtract_few",
    "subtract_gram",
    "subtract_product",
    "symmetric_eigen",
    "syrk",
    "upper_triangle",
    "whitened",
    "within_range",
]


def loops_of_algebra() -> tuple[Compiled, ...]:
    """All that Numba compiles for dense algebra."""
    return (*DEPENDENT_ROWS_LOOPS, *FEW_ROWS_LOOPS, *PAIR_STEP_LOOPS, *TRIDIAGONAL_LOOPS)
