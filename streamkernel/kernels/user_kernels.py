"""Kernel classes of users, and functions that are kernels: a configuration names them ``module:Class`` or
``module:function``, and the caller of a load supplies them.

A configuration from a file never causes an import. A name in it that is not of this package must be among those
that the caller gave: ``load(path, kernels=[MyKernel])``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kernels.base import Composite, Kernel, KernelConfig, kernel_path
from streamkernel.kernels.function_kernel import FunctionKernel, function_path
from streamkernel.type_aliases import Unchecked

UserKernel = type[Kernel] | Callable[..., Any]

_REMEDY = "hand it over: load(path, kernels=[{}]); commands and the service cannot"


def user_kernel_classes(kernel: Kernel) -> list[UserKernel]:
    """Classes of a kernel and of its parts that are not of this package, and functions that are kernels."""
    if isinstance(kernel, Composite):
        return [kind for part in kernel.parts for kind in user_kernel_classes(part)]
    if isinstance(kernel, FunctionKernel):
        return [kernel.function]
    return [type(kernel)] if ":" in kernel_path(type(kernel)) else []


def kernel_kinds(kernels: Iterable[UserKernel]) -> list[UserKernel]:
    """The classes and functions of kernels that a user gives in a list; one alone is taken for the list of it.

    Raises
    ------
    ParameterError
        They are neither classes of kernels nor functions.
    """
    kinds: list[Any] = list(kernels) if isinstance(kernels, Iterable) else [kernels]
    for kind in kinds:
        if not (
            issubclass(kind, Kernel) if isinstance(kind, type) else callable(kind) and not isinstance(kind, Kernel)
        ):
            raise ParameterError(
                f"kernels must be classes of kernels, such as kernels=[MyKernel], or functions, not {kind!r}"
            )
    return kinds


def with_kernel_classes(config: Unchecked, kinds: Sequence[UserKernel]) -> KernelConfig:
    """The configuration of a kernel, each user's kernel in it with its class, or its function, from `kernel_kinds`.

    Raises
    ------
    ModelFormatError
        The configuration names a class that is neither of this package nor one of these.
    """
    if not isinstance(config, dict):
        return KernelConfig({})
    parts = {name: with_kernel_classes(part, kinds) for name, part in config.items() if _is_part(part)}
    name = config.get("kernel")
    found = KernelConfig({**config, **parts})
    if isinstance(name, str) and ":" in name:
        own = next((kind for kind in kinds if _path(kind) == name), None)
        if isinstance(own, type):
            found.kind = own
        else:
            found.function = own
        if own is None:
            others = f", {', '.join(map(_path, kinds))} is not it" if kinds else ""
            raise ModelFormatError(
                f"its kernel is {name}, which is none of this package{others}; "
                + _REMEDY.format(name.rpartition(":")[2].rpartition(".")[2])
            )
    return found


def _path(kind: UserKernel) -> str:
    return kernel_path(kind) if isinstance(kind, type) else function_path(kind)


def _is_part(value: Unchecked) -> bool:
    return isinstance(value, dict) and "kernel" in value
