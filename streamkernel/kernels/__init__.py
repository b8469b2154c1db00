"""k(X_b, Z): kernels, and blocks of kernel values filled by compiled loops.

::

    kernel = Gaussian(lengthscale=2.0)          a formula and its parameters
    prepared = kernel.prepare(Z)                n basis points, packed once
    K = prepared.block(X)                       (b, n), in the dtype of X

One class per formula, one file per class, with what is compiled for it alone. The loops that all have in common are in
``_loops.py``; they are serial and release the GIL.
"""

from __future__ import annotations

from streamkernel.kernels.arc_cosine import ArcCosine
from streamkernel.kernels.base import Composite, Fixed, Kernel, PreparedKernel, Product, Scaled, Sum
from streamkernel.kernels.cosine import Cosine
from streamkernel.kernels.formula_kernels import LengthscaleKernel, StationaryKernel
from streamkernel.kernels.function_gradients import (
    FunctionGradient,
    function_gradient_bytes,
    prepare_function_gradient,
)
from streamkernel.kernels.function_kernel import FunctionKernel
from streamkernel.kernels.gaussian import Gaussian
from streamkernel.kernels.gradients import (
    LengthscaleGradient,
    lengthscale_gradient,
    prepare_gradient,
)
from streamkernel.kernels.hamming import Hamming
from streamkernel.kernels.laplacian import Laplacian
from streamkernel.kernels.lengthscales import (
    free_parts,
    has_free_lengthscale,
    log_lengthscales,
    per_feature,
    with_lengthscales,
    with_log_lengthscales,
)
from streamkernel.kernels.linear import Linear
from streamkernel.kernels.matern import Matern
from streamkernel.kernels.names import KERNEL_NAMES, as_kernel, kernel_from_config, leaves_lengthscale, loops_of_kernels
from streamkernel.kernels.of_columns import OfColumns, located, sees_names
from streamkernel.kernels.periodic import Periodic
from streamkernel.kernels.polynomial import Polynomial
from streamkernel.kernels.precomputed import Precomputed, has_precomputed
from streamkernel.kernels.prepared import filling_bytes, packed_bytes, packing_bytes, workspace_bytes
from streamkernel.kernels.rational_quadratic import RationalQuadratic
from streamkernel.kernels.sigmoid import Sigmoid
from streamkernel.kernels.sparse import (
    SparseKernel,
    columns_of_pairs,
    is_kernel_of_pairs,
    sparse_distances,
    sparse_kernel,
)
from streamkernel.kernels.user_kernels import UserKernel, user_kernel_classes, with_kernel_classes

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
