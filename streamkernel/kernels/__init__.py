"""k(X_b, Z): kernels, and blocks of kernel values filled by compiled loops.

::

    kernel = Gaussian(lengthscale=2.0)          a formula and its parameters
    prepared = kernel.prepare(Z)                n basis points, packed once
    K = prepared.block(X)                       (b, n), in the dtype of X

Rooms::

    formulas/    one class per formula, one file per class, with what is compiled for it alone
    loops/       the compiled loops that all formulas have in common, and points packed for them
    rows/        kernels of rows in another form: some columns, circles, sparse rows, rows of a kernel matrix
    gradients/   slopes along the features of a row, and along the lengthscales

Beside them: what every kernel is (``base.py``), its parameters, names and expressions, and the kernels of users.
"""

from __future__ import annotations

from streamkernel.kernels.base import Composite, Fixed, Kernel, PreparedKernel, Product, Scaled, Sum
from streamkernel.kernels.formulas.arc_cosine import ArcCosine
from streamkernel.kernels.formulas.cosine import Cosine
from streamkernel.kernels.formulas.formula_kernels import LengthscaleKernel, StationaryKernel
from streamkernel.kernels.formulas.gaussian import Gaussian
from streamkernel.kernels.formulas.hamming import Hamming
from streamkernel.kernels.formulas.laplacian import Laplacian
from streamkernel.kernels.formulas.linear import Linear
from streamkernel.kernels.formulas.matern import Matern
from streamkernel.kernels.formulas.polynomial import Polynomial
from streamkernel.kernels.formulas.rational_quadratic import RationalQuadratic
from streamkernel.kernels.formulas.sigmoid import Sigmoid
from streamkernel.kernels.function_kernel import FunctionKernel
from streamkernel.kernels.gradients.function_gradients import (
    FunctionGradient,
    function_gradient_bytes,
    prepare_function_gradient,
)
from streamkernel.kernels.gradients.lengthscale_gradients import (
    LengthscaleGradient,
    lengthscale_gradient,
    prepare_gradient,
)
from streamkernel.kernels.lengthscales import (
    free_parts,
    has_free_lengthscale,
    log_lengthscales,
    per_feature,
    with_lengthscales,
    with_log_lengthscales,
)
from streamkernel.kernels.loops.prepared import filling_bytes, packed_bytes, packing_bytes, workspace_bytes
from streamkernel.kernels.names import KERNEL_NAMES, as_kernel, kernel_from_config, leaves_lengthscale, loops_of_kernels
from streamkernel.kernels.rows.of_columns import OfColumns, located, sees_names
from streamkernel.kernels.rows.periodic import Periodic
from streamkernel.kernels.rows.precomputed import Precomputed, has_precomputed
from streamkernel.kernels.rows.sparse import (
    SparseKernel,
    columns_of_pairs,
    is_kernel_of_pairs,
    sparse_distances,
    sparse_kernel,
)
from streamkernel.kernels.user_kernels import UserKernel, kernel_kinds, user_kernel_classes, with_kernel_classes

__all__ = [
    "KERNEL_NAMES",
    "ArcCosine",
    "Composite",
    "Cosine",
    "Fixed",
    "FunctionGradient",
    "FunctionKernel",
    "Gaussian",
    "Hamming",
    "Kernel",
    "Laplacian",
    "LengthscaleGradient",
    "LengthscaleKernel",
    "Linear",
    "Matern",
    "OfColumns",
    "Periodic",
    "Polynomial",
    "Precomputed",
    "PreparedKernel",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "SparseKernel",
    "StationaryKernel",
    "Sum",
    "UserKernel",
    "as_kernel",
    "columns_of_pairs",
    "filling_bytes",
    "free_parts",
    "function_gradient_bytes",
    "has_free_lengthscale",
    "has_precomputed",
    "is_kernel_of_pairs",
    "kernel_from_config",
    "kernel_kinds",
    "leaves_lengthscale",
    "lengthscale_gradient",
    "located",
    "log_lengthscales",
    "loops_of_kernels",
    "packed_bytes",
    "packing_bytes",
    "per_feature",
    "prepare_function_gradient",
    "sees_names",
    "sparse_distances",
    "sparse_kernel",
    "prepare_gradient",
    "user_kernel_classes",
    "with_kernel_classes",
    "with_lengthscales",
    "with_log_lengthscales",
    "workspace_bytes",
]
