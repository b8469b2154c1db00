"""k(X_b, Z): kernels, and blocks of kernel values filled by compiled loops.

::

    kernel = Gaussian(lengthscale=2.0)          a formula and its parameters
    prepared = kernel.prepare(Z)                n basis points, packed once
    K = prepared.block(X)                       (b, n), in the dtype of X

One class per formula, one file per class, with what is compiled for it alone. The loops that all have in common are in
``_loops.py``; they are serial and release the GIL.
"""

from __future__ import annotations

from streamkernel.kernels._compiled import cache_folder, is_compiled
from streamkernel.kernels.arc_cosine import ArcCosine
from streamkernel.kernels.base import Composite, Kernel, PreparedKernel, Product, Sum
from streamkernel.kernels.cosine import Cosine
from streamkernel.kernels.formula_kernels import StationaryKernel
from streamkernel.kernels.function_gradients import (
    FunctionGradient,
    function_gradient_bytes,
    prepare_function_gradient,
)
from streamkernel.kernels.gaussian import Gaussian
from streamkernel.kernels.gradients import (
    LengthscaleGradient,
    lengthscale_gradient,
    log_lengthscales,
    per_feature,
    prepare_gradient,
    with_log_lengthscales,
)
from streamkernel.kernels.laplacian import Laplacian
from streamkernel.kernels.linear import Linear
from streamkernel.kernels.matern import Matern
from streamkernel.kernels.names import KERNEL_NAMES, as_kernel, compile_all, kernel_from_config
from streamkernel.kernels.polynomial import Polynomial
from streamkernel.kernels.prepared import filling_bytes, packed_bytes, packing_bytes, workspace_bytes
from streamkernel.kernels.rational_quadratic import RationalQuadratic
from streamkernel.kernels.sigmoid import Sigmoid
from streamkernel.kernels.user_kernels import user_kernel_classes, with_kernel_classes

__all__ = [
    "KERNEL_NAMES",
    "ArcCosine",
    "Composite",
    "Cosine",
    "FunctionGradient",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "LengthscaleGradient",
    "Linear",
    "Matern",
    "Polynomial",
    "PreparedKernel",
    "Product",
    "RationalQuadratic",
    "Sigmoid",
    "StationaryKernel",
    "Sum",
    "as_kernel",
    "cache_folder",
    "compile_all",
    "filling_bytes",
    "function_gradient_bytes",
    "is_compiled",
    "kernel_from_config",
    "lengthscale_gradient",
    "log_lengthscales",
    "packed_bytes",
    "packing_bytes",
    "per_feature",
    "prepare_function_gradient",
    "prepare_gradient",
    "user_kernel_classes",
    "with_kernel_classes",
    "with_log_lengthscales",
    "workspace_bytes",
]
