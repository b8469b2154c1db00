"""Independent oracles: straight, slow NumPy over dense m x m matrices, in float64.

Nothing here is clever and nothing imports the package: each number the package computes by sweeps, updates or
factorisations is computed here from its definition, afresh at every step. Sections are those of the method card.

    K (m, m) kernel matrix      I basis (list of rows)      M candidate rows      Y (m,) or (m, d) targets
    Ktilde = K[:,I] K[I,I]^-1 K[I,:]      R = K - Ktilde      rho ridge (added to the diagonal, never scaled)

Sums over rows (|R_i|^2, R_i'Y, ...) run over `rows` (default all; a repeated row counts again) times `weights`.
"""

from __future__ import annotations

from naive.approximation import (
    centred,
    code_bounds,
    conjugate_gradients,
    nearest,
    nearest_scan,
    nystroem,
    preconditioned_eigenvalues,
    squared_distances,
)
from naive.dense import (
    RANK_TOLERANCE,
    Array,
    Card,
    Rows,
    card,
    columns_of,
    gaussian,
    residual,
    residual_trace,
    sampled,
    whitened_features,
)
from naive.sampling import (
    a_res_keys,
    candidates_per_pick,
    chi_square,
    kmeans,
    kmeans_plus_plus,
    leverage_draw,
    leverage_scores,
    priority_estimates,
    residual_diagonal,
    rpcholesky,
    rpcholesky_block,
    rpcholesky_blocked,
    rpcholesky_distribution,
)
from naive.scores import (
    column_norm,
    column_space,
    csi,
    diagonal,
    first_norm,
    function_space,
    greedy_ridge,
    prediction,
    ridge_objective,
    sparse_feature,
)
from naive.selection import (
    Path,
    frobenius,
    greedy,
    incomplete_cholesky,
    incomplete_cholesky_by_looks,
    matching_pursuit_kpca,
    pca_traces,
    sgma,
    split_pool,
)
from naive.side_information import csi_exact, csi_look_ahead, csi_objective
from naive.solvers import Ridge, gaussian_process, kernel_ridge, reduced_ridge

__all__ = [
    "Array",
    "Card",
    "Path",
    "RANK_TOLERANCE",
    "Ridge",
    "Rows",
    "a_res_keys",
    "candidates_per_pick",
    "card",
    "centred",
    "chi_square",
    "code_bounds",
    "column_norm",
    "column_space",
    "columns_of",
    "conjugate_gradients",
    "csi",
    "csi_exact",
    "csi_look_ahead",
    "csi_objective",
    "diagonal",
    "first_norm",
    "frobenius",
    "function_space",
    "gaussian",
    "gaussian_process",
    "greedy",
    "greedy_ridge",
    "incomplete_cholesky",
    "incomplete_cholesky_by_looks",
    "kernel_ridge",
    "kmeans",
    "kmeans_plus_plus",
    "leverage_draw",
    "leverage_scores",
    "matching_pursuit_kpca",
    "nearest",
    "nearest_scan",
    "nystroem",
    "pca_traces",
    "preconditioned_eigenvalues",
    "prediction",
    "priority_estimates",
    "reduced_ridge",
    "residual",
    "residual_diagonal",
    "residual_trace",
    "ridge_objective",
    "rpcholesky",
    "rpcholesky_block",
    "rpcholesky_blocked",
    "rpcholesky_distribution",
    "sampled",
    "sgma",
    "sparse_feature",
    "split_pool",
    "squared_distances",
    "whitened_features",
]
