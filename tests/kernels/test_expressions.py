"""Kernels as expressions of names: what they are, which lengthscales they leave, and where a wrong one is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.formulas import plain

from streamkernel.errors import ParameterError
from streamkernel.kernels import (
    Cosine,
    Fixed,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    OfColumns,
    Periodic,
    Polynomial,
    Scaled,
    Sigmoid,
    as_kernel,
    free_parts,
    kernel_from_config,
    leaves_lengthscale,
    with_lengthscales,
)

EXPRESSIONS = {
    "2*gaussian + linear": Gaussian() * 2 + Linear(),
    " ( RBF ) ": Gaussian(),
    "gaussian(lengthscale=2)": Gaussian(2.0),
    "gaussian(gamma=0.125)*0.5": Gaussian(2.0) * 0.5,
    "2 * 3 * linear": Scaled(Linear(), 6.0),
    "gaussian + linear * cosine": Gaussian() + Linear() * Cosine(),
    "(gaussian + linear) * cosine": (Gaussian() + Linear()) * Cosine(),
    "matern52(lengthscale=[1, 2.5])\n + polynomial(degree=2,\n\tcoef0=0)": Matern((1.0, 2.5), 2.5)
    + Polynomial(degree=2, coef0=0.0),
    "sigmoid(coef0=-.5) + linear": Sigmoid(coef0=-0.5) + Linear(),
    "laplacian(lengthscale=2) + gaussian": Fixed(Laplacian(2.0)) + Gaussian(),
    "gaussian(columns=[0, 2]) + linear(columns=1)": OfColumns(Gaussian(), (0, 2)) + OfColumns(Linear(), (1,)),
    "gaussian(columns=[age, 'a, b[c]', \"it's\"]) + linear(columns=\t'h é\tx')": OfColumns(
        Gaussian(), ("age", "a, b[c]", "it's")
    )
    + OfColumns(Linear(), ("h é\tx",)),
    r"gaussian(columns=['it\'s', 'C:\\', 1])": OfColumns(Gaussian(), ("it's", "C:\\", 1)),
    "gaussian(lengthscale=3, columns=[0]) * periodic(period=24)": Fixed(OfColumns(Gaussian(3.0), (0,)))
    * Periodic(1.0, 24.0),
    "0.5 * matern * gaussian(lengthscale=2)": Scaled(Matern(), 0.5) * Fixed(Gaussian(2.0)),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_its_kernel(text: str) -> None:
    kernel = as_kernel(text)
    assert kernel == EXPRESSIONS[text]
    assert kernel_from_config(json.loads(json.dumps(kernel.to_config()))) == kernel


def test_lengthscales_that_are_stated_stay() -> None:
    text = "gaussian + 3 * matern(lengthscale=5) * laplacian"
    assert leaves_lengthscale(text)
    kernel = as_kernel(text, lengthscale=2.0)
    assert kernel == Gaussian(2.0) + 3 * Fixed(Matern(5.0)) * Laplacian(2.0)
    assert [part.kernel for part in free_parts(kernel, 4)] == [Gaussian(2.0), Laplacian(2.0)]
    assert with_lengthscales(kernel, [7.0, 8.0]) == Gaussian(7.0) + 3 * Fixed(Matern(5.0)) * Laplacian(8.0)
    assert leaves_lengthscale("gaussian")
    for none in ("linear", "linear + cosine", "rbf(gamma=1) + linear"):
        assert not leaves_lengthscale(none), none


WRONG = {
    "2*": (3, "give names of kernels, numbers"),
    "* linear": (1, "give names of kernels, numbers"),
    "gaussian + 3": (12, "a number only multiplies a kernel"),
    "(2*3)": (2, "a number only multiplies a kernel"),
    "gaussian - linear": (10, r"only \+ and \* combine kernels"),
    "(gaussian) / (linear)": (12, r"only \+ and \* combine kernels"),
    "linear + gaussian**2": (18, r"only \+ and \* combine kernels"),
    "-2*gaussian": (1, "factor = -2 is out of range"),
    "linear + 0*gaussian": (10, "factor = 0 is out of range"),
    "1e999*gaussian": (1, "factor = inf is out of range"),
    "2*gausian": (3, r"'gausian' is not known; did you mean gaussian\? Or give one of gaussian, rbf, "),
    "auto + linear": (1, "'auto' is not known"),
    "gaussian(2)": (10, "give parameters by name"),
    "linear + gaussian(width=2)": (10, "gaussian has no parameter 'width'; it has lengthscale, gamma, columns"),
    "matern52(nu=0.5)": (1, "matern52 has no parameter 'nu'; it has lengthscale"),
    "linear(lengthscale=2)": (1, "linear has no parameter 'lengthscale'; it has columns"),
    "gaussian(lengthscale=-1)": (1, "lengthscale = -1 is out of range; give a finite number > 0"),
    "gaussian(lengthscale='median')": (22, "\"'median'\" is no number"),
    "gaussian(lengthscale=[1, x])": (26, "'x' is no number"),
    "gaussian(lengthscale=1, lengthscale=2)": (1, ""),
    "gaussian(gamma=1, lengthscale=2)": (1, "say the same twice"),
    "gaussian(**linear)": (12, "give each parameter once, by its name"),
    "gaussian(columns=[0, 0])": (1, r"columns = \[0, 0\] have one twice"),
    "gaussian(columns=[])": (1, "columns are empty"),
    "gaussian(columns=-1)": (1, r"columns\[0\] = -1 is out of range"),
    "linear + gaussian(columns=[0, a.b])": (31, "'a.b' is no column; give positions, or names such as"),
    "gaussian(columns=f'{age}')": (18, "is no column"),
    "gaussian(columns=r'age')": (18, "is no column"),
    "gaussian(columns=['a' 'b'])": (19, "\"'a' 'b'\" is no column"),
    "gaussian(columns='''age''')": (18, "is no column"),
    "gaussian(columns=[age=1])": (19, "give names of kernels"),
    "gaussian(columns='age)": (18, "give names of kernels"),
    "gaussian(columns=[age, age])": (1, r"columns = \['age', 'age'\] have one twice"),
    "gaussian(columns='é') + é": (25, "'é' is none of"),
    "gaussian(lengthscale='é')": (22, "is no number"),
    "gaussian(columns=[age, 1.5])": (1, r"columns\[1\] = 1.5 is not a whole number"),
    "periodic(period=0)": (1, "period = 0 is out of range"),
    "gaussian * é": (12, "'é' is none of"),
    "gaussian + True": (12, "'True' is none of"),
    "2j*gaussian": (1, "'2j' is none of"),
    "gaussian.prepare(1)": (1, "is none of"),
    "  +gaussian": (3, r"'\+gaussian' is none of"),
    "gaussian[0]": (1, "is none of"),
    "__import__('os')": (12, "give parameters by name"),
    "(lambda: linear)()": (8, "':' is none of"),
    "linear +\n gaussian(": (19, "give names of kernels"),
    "(" * 300 + "linear" + ")" * 300: (201, "give names of kernels"),
    "linear + " * 300 + "linear": (2001, "at most 2000 characters"),
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_a_wrong_expression_has_one_error_with_its_place(text: str) -> None:
    place, reason = WRONG[text]
    with pytest.raises(ParameterError, match=rf"^kernel = .* is wrong at character (\d+): .*{reason}") as caught:
        as_kernel(text)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    assert (caught.value.parameter, caught.value.value) == ("kernel", text)
    if reason:
        assert f"at character {place}: " in message


def test_parameters_beside_an_expression_are_refused() -> None:
    with pytest.raises(ParameterError, match="degree cannot be told apart in an expression; write them in it"):
        as_kernel("polynomial + linear", degree=2)
    with pytest.raises(ParameterError, match=r"write them in it, as in 'matern\(nu=...\) \+ cosine'"):
        as_kernel("matern + linear", nu=2.5)
    with pytest.raises(ParameterError, match="gamma cannot be told apart"):
        as_kernel("2*gaussian", gamma=2.0)
    with pytest.raises(ParameterError, match=r"lengthscale = 2 is of no part of 'matern\(lengthscale=3\) \+ linear'"):
        as_kernel("matern(lengthscale=3) + linear", lengthscale=2)


PARTS = {"gaussian": Gaussian(), "linear": Linear(), "matern52(lengthscale=3)": Matern(3.0, 2.5), "cosine": Cosine()}


@st.composite
def written(draw: st.DrawFn, depth: int = 3) -> tuple[str, Kernel]:
    """An expression with all its parentheses, and its kernel by Python's operators."""
    if depth == 0 or draw(st.booleans()):
        text = draw(st.sampled_from([*PARTS]))
        return text, PARTS[text]
    (left, one), (right, two) = draw(written(depth=depth - 1)), draw(written(depth=depth - 1))
    number = draw(st.integers(1, 9))
    combined = [
        (f"({left} + {right})", one + two),
        (f"({left})*({right})", one * two),
        (f"{number} * ({left})", number * one),
    ]
    return draw(st.sampled_from(combined))


@given(written())
def test_values_are_those_of_the_same_operators_in_python(case: tuple[str, Kernel]) -> None:
    text, kernel = case
    X = np.random.default_rng(0).standard_normal((6, 3))
    made = as_kernel(text)
    np.testing.assert_allclose(plain(made, X, X), plain(kernel, X, X), rtol=1e-12)
    assert made.positive_definite
