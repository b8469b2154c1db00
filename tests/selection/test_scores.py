"""Every score on the 40-row example of ALGORITHMS, and the identities between them."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from problems import GivenDraw, basis_of, blocks, pool_columns, pool_sums, problem_of, root_sums, select

from streamkernel.kernels import Linear
from streamkernel.selection import Greedy, Selection, as_rule
from streamkernel.selection.greedy import Form, GramForm, RootForm
from streamkernel.selection.rounds import Fixed
from streamkernel.selection.scores import (
    ColumnNorm,
    Frobenius,
    FunctionSpace,
    Kronecker,
    Mixture,
    Pivot,
    Score,
    SparseFeatures,
)

CARD = naive.card()
ALL = tuple(range(40))
FORMS = [GramForm(), RootForm()]


def greedy(
    score: Score, subset: tuple[int, ...], n: int, form: Form, *, centred: bool = False, picks: int = 1, y: bool = False
) -> Selection:
    """n picks of the card's rows among those of `subset`, `picks` a sweep."""
    draw = GivenDraw(len(subset), all_rows=True, subsets=(subset,) * n)
    rule = Greedy("given", draw, score, Fixed(picks), form, centred=centred)
    Y = CARD.y - CARD.y.mean() if y and centred else CARD.y
    return select(rule, problem_of(CARD.X, Y if y else None, n=n))[0]


def traces(selection: Selection) -> list[float]:
    rows = selection.basis.rows.tolist()
    return [naive.residual_trace(CARD.K, rows[: t + 1]) for t in range(len(rows))]


@pytest.mark.parametrize("picks", [1, 3, 6])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("score", "rows", "trace"),
    [
        (FunctionSpace(), [17, 4, 27, 33, 29, 20], [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676]),
        (ColumnNorm(), [17, 4, 27, 33, 18, 9], [31.8666, 25.0118, 18.3675, 14.5094, 11.1202, 8.91865]),
        (Pivot(), [0, 34, 10, 3, 9, 8], [34.8364, 29.0728, 24.0337, 19.8675, 16.512, 12.3778]),
    ],
)
def test_all_rows_as_candidates(score: Score, rows: list[int], trace: list[float], form: Form, picks: int) -> None:
    found = greedy(score, ALL, 6, form, picks=picks)
    assert found.basis.rows.tolist() == rows
    np.testing.assert_allclose(traces(found), trace, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("score", "rows", "trace"),
    [
        (FunctionSpace(), [17, 12, 38, 3], [20.9244, 15.2620, 12.2872, 9.75942]),
        (ColumnNorm(), [17, 12, 3, 19], [20.9244, 15.2620, 12.7157, 9.80342]),
        (Pivot(), [10, 3, 12, 24], [23.8742, 19.7256, 14.0570, 11.2442]),
    ],
)
def test_a_shared_pool_beyond_three_functions(score: Score, rows: list[int], trace: list[float], form: Form) -> None:
    """ALGORITHMS 1.3: four picks from one pass, and what each takes off the trace."""
    basis = [0, 5, 9]
    pool = [i for i in CARD.pool if i not in basis]
    work = form.reduction(pool_columns(CARD.X, None, basis, pool))
    sums = work.finalize(work.map_block(next(blocks(CARD.X, None, [40]))))
    limits = {"scale": np.zeros(0), "diagonal": np.ones(len(pool)), "pivot_tolerance": 1e-12, "stop_after": 1e9}
    found = form.picks(sums, score, 4, **limits)
    assert [pool[i] for i in found.order] == rows
    start = basis_of(CARD.X, basis).residual(CARD.X).sum()
    np.testing.assert_allclose([start, *(start - np.cumsum(found.trace_gains))], [28.6946, *trace], rtol=6e-6)


def test_norms_of_the_residuals_of_the_six_of_sgma() -> None:
    """ALGORITHMS 2.5 and 2.6: |K - K~|_F^2 in function space, and in the Kronecker metric."""
    six = [17, 4, 27, 33, 29, 20]
    others = [i for i in ALL if i not in six]
    np.testing.assert_allclose(np.trace(pool_sums(CARD.X, None, six, ALL).C), 11.5548, rtol=6e-6)
    np.testing.assert_allclose(np.trace(pool_sums(CARD.X, None, [], others).C), 198.223, rtol=6e-6)
    # Whole columns projected leave less than that, and no six dimensions less than the largest eigenvalues'.
    projected = (root_sums(CARD.X, None, six, ALL).R_R ** 2).sum()
    assert (np.linalg.eigvalsh(CARD.K)[:-6] ** 2).sum() <= projected <= 11.5548


@pytest.mark.parametrize("form", FORMS)
def test_sparse_features_given_the_six_of_sgma(form: Form) -> None:
    """The seventh pick is row 3, of score .353118."""
    draw = GivenDraw(40, all_rows=True, subsets=((17,), (4,), (27,), (33,), (29,), (20,), ALL))
    found, _ = select(Greedy("given", draw, SparseFeatures(), Fixed(1), form), problem_of(CARD.X, n=7))
    assert found.basis.rows.tolist() == [17, 4, 27, 33, 29, 20, 3]
    np.testing.assert_allclose(found.gains[-1], 0.353118, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("picks", [1, 5])
def test_sparse_features_are_those_of_the_definition(form: Form, picks: int) -> None:
    found = greedy(SparseFeatures(), ALL, 10, form, picks=picks)
    chosen: list[int] = []
    for _ in range(10):
        T = CARD.K[:, chosen] @ np.linalg.inv(CARD.K[np.ix_(chosen, chosen)]) if chosen else np.zeros((40, 0))
        R = CARD.K - T @ CARD.K[chosen]
        score = (R**2).sum(axis=0) / (1.0 + np.abs(T).sum(axis=1)) ** 2
        score[chosen] = -1.0
        chosen.append(int(np.argmax(score)))
    assert found.basis.rows.tolist() == chosen


def test_frobenius_of_all_columns() -> None:
    found = greedy(Frobenius(), ALL, 6, RootForm())
    assert found.basis.rows.tolist() == [17, 15, 16, 33, 39, 37]
    left = (CARD.K**2).sum() - np.cumsum(found.gains)
    np.testing.assert_allclose(left, [151.788, 95.8552, 45.0753, 29.6919, 16.0003, 10.8762], rtol=1e-5)


def test_frobenius_of_sampled_columns() -> None:
    assert greedy(Frobenius(), tuple(CARD.pool), 4, RootForm(), picks=4).basis.rows.tolist() == [5, 17, 26, 33]


def test_frobenius_is_the_function_space_rule_of_the_squared_kernel() -> None:
    """ALGORITHMS 2.5: rows of K under the linear kernel have K^T K for a kernel matrix."""
    rule = Greedy("given", GivenDraw(40, all_rows=True, subsets=(ALL,) * 8), FunctionSpace(), Fixed(1), RootForm())
    squared, _ = select(rule, problem_of(CARD.K, n=8, kernel=Linear()))
    assert greedy(Frobenius(), ALL, 8, RootForm()).basis.rows.tolist() == squared.basis.rows.tolist()


def test_kronecker_takes_the_largest_columns_whatever_is_picked() -> None:
    norms = (CARD.K**2).sum(axis=0)
    found = greedy(Kronecker(), ALL, 6, GramForm(), picks=6)
    assert found.basis.rows.tolist() == np.argsort(-norms, kind="stable")[:6].tolist()
    np.testing.assert_allclose(found.gains, np.sort(norms)[::-1][:6], rtol=1e-12)


@pytest.mark.parametrize("picks", [1, 2, 6])
def test_csi_of_all_rows(picks: int) -> None:
    """Exact gains, targets centred."""
    rule = Greedy("given", GivenDraw(40, all_rows=True, subsets=(ALL,) * 6), Mixture(0.9), Fixed(picks), RootForm())
    found, _ = select(rule, problem_of(CARD.X, CARD.y - CARD.y.mean(), n=6))
    assert found.basis.rows.tolist() == [27, 29, 6, 22, 4, 9]
    np.testing.assert_allclose(
        found.gains, [0.523886, 0.353456, 0.0395004, 0.0189851, 0.0172702, 0.00835963], rtol=1e-5
    )


@pytest.mark.parametrize("picks", [1, 3])
def test_centring_projects_the_constant_out_of_the_columns_too(picks: int) -> None:
    found = greedy(Mixture(0.9), ALL, 6, RootForm(), centred=True, picks=picks, y=True)
    y = CARD.y - CARD.y.mean()
    Q, R, chosen, gains = np.full((40, 1), 1 / np.sqrt(40)), CARD.K.copy(), list[int](), list[float]()
    for _ in range(6):
        g = R / np.sqrt(np.maximum(np.diagonal(R), 1e-12))
        beyond = g - Q @ (Q.T @ g)
        left = np.maximum((beyond**2).sum(axis=0), 1e-300)
        score = 0.1 / 40 * (g**2).sum(axis=0) + 0.9 / (y @ y) * (y @ beyond) ** 2 / left
        score[chosen] = -1.0
        i = int(np.argmax(score))
        chosen.append(i)
        gains.append(float(score[i]))
        Q = np.column_stack([Q, beyond[:, i] / np.linalg.norm(beyond[:, i])])
        R = R - np.outer(g[:, i], g[:, i])
    assert found.basis.rows.tolist() == chosen
    np.testing.assert_allclose(found.gains, gains, rtol=1e-9)


def test_csi_of_prediction_alone_is_pre_fitting() -> None:
    """Kernel matching pursuit with pre-fitting, ALGORITHMS 4."""
    found = greedy(Mixture(1.0), ALL, 6, RootForm(), y=True)
    assert found.basis.rows.tolist() == [27, 29, 36, 0, 9, 30]
    left = CARD.y @ CARD.y * (1.0 - np.cumsum(found.gains))
    np.testing.assert_allclose(left, [19.5645, 2.63051, 1.60293, 0.987098, 0.795937, 0.591752], rtol=1e-5)


def test_csi_of_the_trace_alone_is_sgma() -> None:
    centred = greedy(Mixture(0.0), ALL, 6, RootForm(), centred=True, y=True)
    assert centred.basis.rows.tolist() == [17, 4, 27, 33, 29, 20]


def test_matching_pursuit_kpca_is_sgma_over_all_rows() -> None:
    """Hussain & Shawe-Taylor, Theorem 1."""
    kpca, session = select(as_rule("matching-pursuit-kpca"), problem_of(CARD.X, n=12))
    assert kpca.basis.rows.tolist() == greedy(FunctionSpace(), ALL, 12, GramForm()).basis.rows.tolist()
    assert len(session.records) == 2


def test_forms_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(ValueError, match="square-root form"):
        greedy(Frobenius(), ALL, 2, GramForm())
    with pytest.raises(ValueError, match="square-root form"):
        greedy(Mixture(0.5), ALL, 2, GramForm(), centred=True, y=True)
    with pytest.raises(ValueError, match="Gram form"):
        greedy(Mixture(0.5, rho=None), ALL, 2, RootForm(), y=True)
