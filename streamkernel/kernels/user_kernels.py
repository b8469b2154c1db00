"""Kernel classes of users: a configuration names them ``module:Class``, and the caller of a load supplies the class.

A configuration from a file never causes an import. A name in it that is not of this package must be among the classes
that the caller gave: ``load(path, kernels=[MyKernel])``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamkernel.errors import ModelFormatError, ParameterError
from streamkernel.kernels.base import Composite, Kernel, KernelConfig, kernel_path
from streamkernel.type_aliases import Unchecked

_REMEDY = "hand it over: load(path, kernels=[{}]); commands and the service cannot"


def user_kernel_classes(kernel: Kernel) -> list[type[Kernel]]:
    """Classes of a kernel and of its parts that are not of this package."""
    if isinstance(kernel, Composite):
        return [kind for part in kernel.parts for kind in user_kernel_classes(part)]
    return [type(kernel)] if ":" in kernel_path(type(kernel)) else []


def with_kernel_classes(config: Unchecked, kernels: Iterable[type[Kernel]]) -> KernelConfig:
    """The configuration of a kernel, each user's kernel in it with its class from `kernels`.

    Raises
    ------
    ParameterError
        `kernels` are not kernel classes.
    ModelFormatError
        The configuration names a class that is neither of this package nor in `kernels`.
    """
    given: list[Any] = list(kernels) if isinstance(kernels, Iterable) else [kernels]
    for kind in given:
        if not (isinstance(kind, type) and issubclass(kind, Kernel)):
            raise ParameterError(f"kernels must be classes of kernels, such as kernels=[MyKernel], not {kind!r}")
    if not isinstance(config, dict):
        return KernelConfig({})
    parts = {name: with_kernel_classes(part, given) for name, part in config.items() if _is_part(part)}
    name = config.get("kernel")
    found = KernelConfig({**config, **parts})
    if isinstance(name, str) and ":" in name:
        found.kind = next((kind for kind in given if kernel_path(kind) == name), None)
        if found.kind is None:
            others = f", {', '.join(map(kernel_path, given))} is not it" if given else ""
            raise ModelFormatError(
                f"its kernel is {name}, which is none of this package{others}; "
                + _REMEDY.format(name.rpartition(":")[2].rpartition(".")[2])
            )
    return found


def _is_part(value: Unchecked) -> bool:
    return isinstance(value, dict) and "kernel" in value
