"""Bad parameters and rows, each with its error; names and aliases."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernels.formulas import FORMULAS, examples

from streamkernel import kernels
from streamkernel.errors import DTypeError, ModelFormatError, ParameterError, ShapeError
from streamkernel.kernels import (
    KERNEL_NAMES,
    Fixed,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
    as_kernel,
    kernel_from_config,
)

BAD_NUMBERS = [float("nan"), float("inf"), -float("inf"), 0, 0.0, -1.0, True, np.True_, "1", None, [], (), 1j, object()]


BAD_LENGTHSCALES = [
    *BAD_NUMBERS, [1.0, 0.0], 1e-19, [1.0, 1e300], (1.0, float("nan")), [1.0, "2"], [[1.0]], np.ones((2, 2)),
]  # fmt: skip


# One function checks those of all kernels.
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((Gaussian, value) for value in BAD_LENGTHSCALES),
        *((kind, -1.0) for kind in (Laplacian, Matern, RationalQuadratic)),
    ],
)
def test_bad_lengthscale(kind: type, value: Any) -> None:
    with pytest.raises(ParameterError, match="lengthscale"):
        kind(value)
    with pytest.raises(ParameterError, match="lengthscale"):
        kind().with_lengthscale(value)


@pytest.mark.parametrize(
    ("make", "name", "values"),
    [
        (lambda v: Matern(1.0, v), "nu", BAD_NUMBERS),
        (lambda v: Polynomial(degree=v), "degree", BAD_NUMBERS),
        (lambda v: RationalQuadratic(1.0, v), "shape", [float("nan"), 0, None]),
        (lambda v: as_kernel("rbf", gamma=v), "gamma", [value for value in BAD_NUMBERS if value is not None]),
        (lambda v: as_kernel("laplacian", gamma=v), "gamma", [float("nan"), 0]),
        (lambda v: as_kernel("poly", gamma=v), "gamma", [float("nan"), 0]),
    ],
)
def test_bad_numbers(make: Callable[[Any], Any], name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ParameterError, match=name):
            make(value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Matern(1.0, 2.0),
        lambda: Polynomial(degree=2.5),
        lambda: Polynomial(degree=101),
        lambda: Polynomial(coef0=-1.0),
        lambda: as_kernel("rbf", lengthscale=1.0, gamma=0.5),
        lambda: as_kernel("linear", lengthscale=1.0, gamma=0.5),
        lambda: as_kernel(Gaussian(), gamma=0.5),
        lambda: as_kernel("tanh"),
        lambda: as_kernel(3),  # type: ignore[arg-type]
        lambda: as_kernel("matern", nu=3.5),
        lambda: Sum(Gaussian(), 2.0),  # type: ignore[arg-type]
        lambda: -2.0 * Gaussian(),
        lambda: Gaussian() * True,
    ],
)
def test_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_wrong_length_and_width() -> None:
    X = np.ones((4, 3))
    for kernel in (Gaussian((1.0, 2.0)), Gaussian((1.0, 2.0)) + Linear(), Linear() * Laplacian([1.0, 2.0])):
        with pytest.raises(ParameterError, match=r"2 entries for 3 features"):
            kernel.prepare(X)
        with pytest.raises(ParameterError, match=r"2 entries for 3 features"):
            kernel.diagonal(X)
    for kernel in (Gaussian(), Linear(), Gaussian() + Linear()):
        with pytest.raises(ShapeError, match="2 columns"):
            kernel.prepare(X).block(X[:, :2])
        with pytest.raises(ShapeError, match="dimension"):
            kernel.prepare(X).block(X[0])
        with pytest.raises(ShapeError, match="dimension"):
            kernel.prepare(X[0])
        with pytest.raises(ShapeError, match="out"):
            kernel.prepare(X).block(X, out=np.empty((4, 4), np.float32))
        with pytest.raises(ShapeError, match="out"):
            kernel.prepare(X).block(X, out=np.empty((4, 8))[:, ::2])


@pytest.mark.parametrize("dtype", ["c16", "O", "U3", "M8[s]"])
def test_dtypes_that_are_no_real_numbers(dtype: str) -> None:
    with pytest.raises(DTypeError):
        Gaussian()(np.zeros((3, 2)).astype(dtype))


def test_names_and_aliases() -> None:
    assert as_kernel("rbf", gamma=0.02) == Gaussian(5.0) == as_kernel("gaussian", lengthscale=5)
    assert as_kernel("laplacian", gamma=0.25) == Laplacian(4.0)
    assert as_kernel("poly", degree=2, gamma=0.5, coef0=0) == as_kernel("polynomial", degree=2, gamma=0.5, coef0=0)
    assert (
        as_kernel("matern32", lengthscale=[1, 2])
        == Matern((1.0, 2.0), 1.5)
        == as_kernel("matern", lengthscale=(1, 2), nu=1.5)
    )
    assert as_kernel("rational_quadratic", shape=2) == RationalQuadratic(1.0, 2.0)
    assert as_kernel("linear", gamma=0.1, degree=3) == Linear()
    assert as_kernel(Matern(), lengthscale=2.0) == Matern(2.0)
    assert as_kernel(Gaussian(3.0).to_config()) == Gaussian(3.0)
    for name in KERNEL_NAMES:
        assert kernel_from_config(as_kernel(name).to_config()) == as_kernel(name)


def test_every_kernel_has_a_name_an_oracle_and_examples() -> None:
    kinds = {type(as_kernel(name)) for name in KERNEL_NAMES}
    assert kinds <= FORMULAS.keys()
    assert kinds <= {type(kernel) for kernel in examples(3)}
    assert {kind.name for kind in kinds} <= set(KERNEL_NAMES)


def test_imports_have_no_circle_and_none_is_hidden() -> None:
    folder = Path(kernels.__file__).parent
    imports: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        assert all(node.col_offset == 0 for node in nodes), f"{path.name} imports inside a function or a condition"
        imports[path.stem] = {str(node.module).rpartition(".")[2] for node in nodes}
        imports[path.stem] |= {
            alias.name for node in nodes if node.module == kernels.__name__ for alias in node.names
        }  # fmt: skip
    while imports:
        free = {name for name, needed in imports.items() if not needed & imports.keys() - {name}}
        assert free, f"these import one another: {', '.join(imports)}"
        imports = {name: needed for name, needed in imports.items() if name not in free}


def test_the_documentation_has_a_row_for_every_kernel() -> None:
    text = (Path(kernels.__file__).parents[2] / "docs" / "methods.md").read_text()
    table = text[text.index("## Kernels") : text.index("Matern and rational quadratic:")]
    names = set(re.findall(r"`(\w+)`", "".join(line for line in table.splitlines() if line.startswith("| `"))))
    assert set(KERNEL_NAMES) <= names


def test_sums_and_products() -> None:
    kernel = Gaussian(1.0) + Linear() * Matern(2.0)
    assert kernel == Sum(Gaussian(1.0), Product(Linear(), Matern(2.0)))
    assert kernel.with_lengthscale(3.0) == Gaussian(3.0) + Linear() * Matern(3.0)
    assert (Gaussian() * Matern()).stationary
    assert not (Gaussian() + Matern()).stationary
    assert 2 * Gaussian() == Gaussian() * np.float64(2.0) == Scaled(Gaussian(), 2.0)
    assert not (2 * Gaussian()).stationary
    assert Fixed(Gaussian()).stationary
    assert (Fixed(Gaussian()) + 2 * Linear() * Matern()).with_lengthscale(3.0) == (
        Fixed(Gaussian()) + 2 * Linear() * Matern(3.0)
    )
    with pytest.raises(TypeError):
        Gaussian() + 1  # type: ignore[operator]


@pytest.mark.parametrize(
    "config",
    [
        *({}, {"kernel": "unknown"}, {"kernel": "gaussian", "width": 1.0}, [], None, {"kernel": "sum"}),
        *({"kernel": "scaled", "factor": 2.0}, {"kernel": "fixed", "part": {"kernel": "unknown"}}),
    ],
)
def test_bad_configurations(config: Any) -> None:
    with pytest.raises(ModelFormatError):
        kernel_from_config(config)
