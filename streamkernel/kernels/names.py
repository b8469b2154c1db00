"""Kernels by name, including the names and parameters of scikit-learn, and from configurations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches

from streamkernel.compiled_loops import Compiled
from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kernels._expressions import is_expression, kernel_of_expression, without_fixed
from streamkernel.kernels.base import Composite, Fixed, Kernel, KernelConfig, Product, Scaled, Sum
from streamkernel.kernels.formulas.arc_cosine import ArcCosine
from streamkernel.kernels.formulas.cosine import Cosine
from streamkernel.kernels.formulas.formula_kernels import FormulaKernel, LengthscaleKernel
from streamkernel.kernels.formulas.gaussian import Gaussian
from streamkernel.kernels.formulas.hamming import Hamming
from streamkernel.kernels.formulas.laplacian import Laplacian
from streamkernel.kernels.formulas.linear import Linear
from streamkernel.kernels.formulas.matern import Matern
from streamkernel.kernels.formulas.polynomial import Polynomial
from streamkernel.kernels.formulas.rational_quadratic import RationalQuadratic
from streamkernel.kernels.formulas.sigmoid import Sigmoid
from streamkernel.kernels.function_kernel import FunctionKernel
from streamkernel.kernels.lengthscales import has_free_lengthscale
from streamkernel.kernels.loops.compiled import LOOPS, writer_of
from streamkernel.kernels.parameters import checked_number
from streamkernel.kernels.rows.of_columns import OfColumns
from streamkernel.kernels.rows.periodic import Periodic
from streamkernel.kernels.rows.precomputed import Precomputed
from streamkernel.kernels.rows.sparse import SparseKernel
from streamkernel.kernels.user_kernels import user_kernel_classes, with_kernel_classes
from streamkernel.type_aliases import Fields, FieldsView, Unchecked
from streamkernel.wording import option

# The registry: name: (class, parameters that the name fixes). All else is read from the classes.
NAMES: dict[str, tuple[type[Kernel], Fields]] = {
    "gaussian": (Gaussian, {}),
    "rbf": (Gaussian, {}),
    "laplacian": (Laplacian, {}),
    "matern": (Matern, {}),
    "matern12": (Matern, {"nu": 0.5}),
    "matern32": (Matern, {"nu": 1.5}),
    "matern52": (Matern, {"nu": 2.5}),
    "rational_quadratic": (RationalQuadratic, {}),
    "periodic": (Periodic, {}),
    "hamming": (Hamming, {}),
    "polynomial": (Polynomial, {}),
    "poly": (Polynomial, {}),
    "linear": (Linear, {}),
    "cosine": (Cosine, {}),
    "arc_cosine": (ArcCosine, {}),
    "arccosine": (ArcCosine, {}),
    "arc_cosine0": (ArcCosine, {"order": 0}),
    "arc_cosine1": (ArcCosine, {"order": 1}),
    "arc_cosine2": (ArcCosine, {"order": 2}),
    "sigmoid": (Sigmoid, {}),
}
KERNEL_NAMES = tuple(NAMES)

CLASSES: dict[str, type[Kernel]] = {kind.name: kind for kind, _ in NAMES.values()}
COMPOSITES: tuple[type[Composite], ...] = (Sum, Product, Scaled, Fixed, OfColumns, SparseKernel)
CLASSES |= {kind.name: kind for kind in COMPOSITES}
CLASSES[Precomputed.name] = Precomputed


def parameters_of_class(kind: type[Kernel]) -> tuple[str, ...]:
    """Parameters of `as_kernel` that a class takes: its fields, and gamma where it stands for a lengthscale."""
    names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
    return (*names, "gamma") if issubclass(kind, LengthscaleKernel) and kind.lengthscale_of_gamma(1.0) else names


PARAMETERS = {kind: parameters_of_class(kind) for kind, _ in NAMES.values()}

# Each transform once, though kernels share some.
COMPILED = [kind for kind in PARAMETERS if issubclass(kind, FormulaKernel)]
TRANSFORMS = tuple(dict.fromkeys(transform for kind in COMPILED for transform in kind.transforms))


def parameters_of(name: str) -> tuple[str, ...]:
    """Parameters of `as_kernel` that the kernel with this name takes; none for an unknown name."""
    return PARAMETERS[NAMES[name][0]] if name in NAMES else ()


def loops_of_kernels() -> tuple[Compiled, ...]:
    """All that Numba compiles for kernels: the loops, and the transforms of every kernel."""
    return (*LOOPS, *map(writer_of, TRANSFORMS))


def _hint(name: Unchecked) -> str:
    """The name that was meant, if one is near."""
    near = get_close_matches(name.lower(), KERNEL_NAMES, 1) if isinstance(name, str) else []
    return f"did you mean {near[0]}? Or " if near else ""


def as_kernel(
    kernel: str | Kernel | FieldsView | Callable[..., Unchecked],
    *,
    lengthscale: Unchecked = None,
    gamma: Unchecked = None,
    **parameters: Unchecked,
) -> Kernel:
    """A kernel from its name (names of scikit-learn included) or its configuration; a kernel object is returned.

    Parameters
    ----------
    kernel : str, Kernel, function or mapping
        A name of ``KERNEL_NAMES``, an expression of names (``"2*gaussian + linear"``), a kernel, a function of two
        blocks of rows (`FunctionKernel`), "precomputed" where the rows are those of a kernel matrix, or a configuration
        from ``Kernel.to_config``.
    lengthscale : float or one per feature, optional
        With a kernel object: ``kernel.with_lengthscale(lengthscale)``. With an expression: of the kernels that state
        none.
    gamma : float, optional
        As in scikit-learn: ``lengthscale = 1 / sqrt(2 gamma)`` for gaussian, ``1 / gamma`` for laplacian; the factor
        of the inner product for the polynomial and sigmoid kernels.
    degree, coef0, nu, shape, order, period : optional
        Parameters of the polynomial (`coef0` also of the sigmoid), Matern, rational quadratic, arc-cosine and periodic
        kernels. As in scikit-learn, parameters that the kernel does not have are ignored.

    Raises
    ------
    ParameterError
        The kernel is not known, or a parameter is invalid or does not fit it.
    TypeError
        No kernel has a parameter of such a name.
    """
    for name in parameters:
        if not any(name in names for names in PARAMETERS.values()):
            raise TypeError(f"as_kernel() got an unexpected keyword argument {name!r}")
    if gamma is not None and lengthscale is not None:
        raise ParameterError(
            f"{option('lengthscale')} = {lengthscale!r} and {option('gamma')} = {gamma!r} say the same "
            "twice; give one of them"
        )
    if callable(kernel) and not isinstance(kernel, Kernel | type):
        kernel = FunctionKernel(kernel)
    if isinstance(kernel, Mapping):
        kernel = kernel_from_config(kernel)
    if isinstance(kernel, Kernel):
        check_kernel(kernel)
        if gamma is not None:
            raise ParameterError(f"gamma = {gamma!r} cannot change a kernel object; give its lengthscale or a name")
        return kernel if lengthscale is None else kernel.with_lengthscale(lengthscale)
    if isinstance(kernel, str) and is_expression(kernel):
        given = {"gamma": gamma, **parameters}
        return _of_expression(kernel, lengthscale, [name for name, value in given.items() if value is not None])
    if kernel == Precomputed.name:
        return Precomputed()
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        name = kernel.__name__
        raise ParameterError(f"{option('kernel')} = {name} is a class; give a kernel of it, such as {name}()")
    if not isinstance(kernel, str) or kernel.lower() not in NAMES:
        raise ParameterError(
            f"{option('kernel')} = {kernel!r} is not known; {_hint(kernel)}give one of {', '.join(KERNEL_NAMES)}, an "
            "expression such as '2*gaussian + linear', or a Kernel"
        )
    kind, fixed = NAMES[kernel.lower()]
    if gamma is not None and issubclass(kind, LengthscaleKernel):
        lengthscale = kind.lengthscale_of_gamma(checked_number("gamma", gamma))
        if lengthscale is None:
            raise ParameterError(
                f"{option('gamma')} = {gamma!r} means nothing to the kernel {kernel!r}; give its lengthscale"
            )
    given = {**parameters, "lengthscale": lengthscale, "gamma": gamma}
    own = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: given[name] for name in own if given.get(name) is not None} | fixed)


def leaves_lengthscale(kernel: str) -> bool:
    """Whether the kernel of this name, or a part of this expression, has a lengthscale that is not stated."""
    if is_expression(kernel):
        return has_free_lengthscale(kernel_of_expression(kernel, _named))
    return kernel != Precomputed.name and issubclass(NAMES[kernel.lower()][0], LengthscaleKernel)


def _of_expression(text: str, lengthscale: Unchecked, others: list[str]) -> Kernel:
    """The kernel of an expression; `others` are further parameters that were given beside it."""
    if others:
        taker = next(name for name in NAMES if others[0] in parameters_of(name))
        raise ParameterError(
            f"{', '.join(map(option, others))} cannot be told apart in an expression; write them in it, as in "
            f"'{taker}({others[0]}=...) + cosine'"
        )
    kernel = kernel_of_expression(text, _named)
    if not has_free_lengthscale(kernel):
        if lengthscale is not None:
            raise ParameterError(
                f"{option('lengthscale')} = {lengthscale!r} is of no part of {text!r:.200}: each states its own, or "
                f"has none; leave {option('lengthscale')} out"
            )
        return without_fixed(kernel)
    return kernel if lengthscale is None else kernel.with_lengthscale(lengthscale)


def _named(name: str, given: Fields) -> Kernel:
    """The kernel with a name of an expression."""
    if name.lower() not in NAMES:
        raise ParameterError(f"{name!r} is not known; {_hint(name)}give one of {', '.join(KERNEL_NAMES)}")
    _, fixed = NAMES[name.lower()]
    takes = [*(each for each in parameters_of(name.lower()) if each not in fixed), "columns"]
    for each in given:
        if each not in takes:
            raise ParameterError(f"{name} has no parameter {each!r}; it has {', '.join(takes)}")
    kernel = as_kernel(name, **{each: value for each, value in given.items() if each != "columns"})
    return OfColumns(kernel, given["columns"]) if "columns" in given else kernel


def kernel_from_config(config: FieldsView) -> Kernel:
    """The kernel with this configuration, as written by ``to_config``.

    Raises
    ------
    ModelFormatError
        It is not a configuration of a known kernel.
    """
    if isinstance(config, KernelConfig) and config.function is not None:
        return FunctionKernel(config.function)
    own = config.kind if isinstance(config, KernelConfig) else None
    name = config.get("kernel") if isinstance(config, Mapping) else None
    if own is None and (not isinstance(name, str) or name not in CLASSES):
        raise ModelFormatError(f"kernel configuration {config!r} names no known kernel; known: {', '.join(CLASSES)}")
    kind = CLASSES[config["kernel"]] if own is None else own
    parameters = {name: value for name, value in config.items() if name != "kernel"}
    if issubclass(kind, COMPOSITES):
        parts = {name: kernel_from_config(value) for name, value in parameters.items() if name in kind.PARTS}
        parameters |= parts
    if own is not None and kind not in CLASSES.values():
        parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
    try:
        return kind(**parameters)
    except TypeError as error:
        raise ModelFormatError(f"kernel configuration {dict(config)!r} is not {kind.__name__}'s: {error}") from error


def check_kernel(kernel: Kernel) -> None:
    """Check that a user's kernel can be saved and loaded; raise `ParameterError` otherwise.

    A kernel class that is not of this package must be a dataclass whose fields are plain JSON.
    """
    classes = user_kernel_classes(kernel)
    if not classes:
        return
    for part in classes:
        if isinstance(part, type) and not is_dataclass(part):
            raise ParameterError(
                f"the kernel {part.__name__} is no dataclass, so that its parameters cannot be saved; write "
                "@dataclass(frozen=True) above the class"
            )
    try:
        config = kernel.to_config()
        again = kernel_from_config(with_kernel_classes(json.loads(json.dumps(config, allow_nan=False)), classes))
        same = again == kernel and hash(again) == hash(kernel)
    except (ModelFormatError, TypeError, ValueError, AttributeError, LookupError) as error:
        raise ParameterError(
            f"the kernel {kernel!r:.200} cannot be saved and made again ({error}); give a frozen dataclass whose "
            "fields are numbers, text, or tuples of these"
        ) from error
    if not same:
        raise ParameterError(
            f"the kernel {kernel!r:.200} is not what its configuration {dict(config)!r:.200} makes; give a frozen "
            "dataclass whose fields are numbers, text, or tuples of these"
        )
