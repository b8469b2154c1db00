"""The oracles of naive against the numbers printed on the method card, and against the papers' identities."""

from __future__ import annotations

import math

import data_sets
import naive
import numpy as np
import pytest

C = naive.card()
SGMA = [17, 4, 27, 33, 29, 20]
START = [0, 5, 9]
POOL = [i for i in C.pool if i not in START]


def printed(values, expected):
    """Every value agrees with its printed form to the six digits printed."""
    np.testing.assert_allclose(values, expected, rtol=6e-6)


def random_problem(m=50, p=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, p))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 2] - X[:, 0]), X[:, 1] ** 2], axis=1)[:, :d]
    return naive.gaussian(X, X, 1.5), Y + 0.1 * rng.standard_normal((m, d)), rng


# ------------------------------------------------------------------------------------------------ the card's numbers
def test_card_data():
    printed(C.X[0], [0.59104, 1.99001])
    printed(C.y[:3], [1.65223, 0.260427, -0.968491])
    printed([C.K[0, 1], np.trace(C.K), (C.K**2).sum(), C.y @ C.y], [0.00116405, 40, 234.067, 47.2507])
    assert (C.t > 0).sum() == 13
    assert C.pool == [3, 10, 17, 24, 31, 38, 5, 12, 19, 26, 33, 0]


@pytest.mark.parametrize(
    ("score", "picks", "traces"),
    [
        (naive.function_space, [17, 12, 38, 3], [20.9244, 15.2620, 12.2872, 9.75942]),
        (naive.column_norm, [17, 12, 3, 19], [20.9244, 15.2620, 12.7157, 9.80342]),
        (naive.diagonal, [10, 3, 12, 24], [23.8742, 19.7256, 14.0570, 11.2442]),
    ],
)
def test_shared_pool(score, picks, traces):
    printed(naive.residual_trace(C.K, START), 28.6946)
    path = naive.greedy(C.K, [POOL] * 4, score, START)
    assert path.picks == picks
    printed(path.traces, traces)


def test_shared_pool_csi():
    parts = {"trace_part": 0.1 / np.trace(C.K), "target_part": 0.9 / (C.y @ C.y)}
    path = naive.greedy(C.K, [POOL] * 4, naive.csi, START, Y=C.y, **parts)
    assert path.picks == [10, 19, 12, 17]
    printed(path.scores, [0.238846, 0.0465247, 0.0159198, 0.0140632])


def test_shared_pool_greedy_ridge():
    path = naive.greedy(C.K, [POOL] * 4, naive.greedy_ridge, START, Y=C.y, rho=0.1)
    assert path.picks == [10, 19, 3, 31]
    printed(path.scores, [11.7421, 2.14361, 0.210015, 0.100486])
    printed(naive.ridge_objective(C.K, START, C.y, 0.1), 17.5874)
    printed(naive.ridge_objective(C.K, START + path.picks, C.y, 0.1), 3.39119)


def test_split_pool_is_algorithm_2_with_that_stream():
    subsets = naive.split_pool(C.pool, 4)
    literal, _ = naive.sgma(C.K, subsets)
    path = naive.greedy(C.K, subsets, naive.function_space)
    assert literal.picks == path.picks == [17, 38, 12, 33]
    np.testing.assert_allclose(literal.traces, path.traces, rtol=1e-12)


def test_candidates_per_pick():
    assert naive.candidates_per_pick(0.05, 0.95) == 59
    assert naive.candidates_per_pick(0.01, 0.98) == 228
    assert [naive.candidates_per_pick(0.05, 0.95, N) for N in (40, 100, 1000, 10000)] == [31, 45, 57, 59]
    assert naive.candidates_per_pick(0.05, 0.95, 10) == 10  # floor(.05 * 10) = 0 good rows: all must be looked at


def test_function_space():
    everything = [range(40)] * 6
    literal, T = naive.sgma(C.K, everything)
    path = naive.greedy(C.K, everything, naive.function_space)
    assert literal.picks == path.picks == SGMA
    for traces in (literal.traces, path.traces):
        printed(traces, [31.8666, 25.0118, 18.3675, 14.5094, 11.0949, 8.62676])
    np.testing.assert_allclose(T[SGMA], np.eye(6), atol=1e-12)
    np.testing.assert_allclose(C.K[:, SGMA] @ T.T, C.K - naive.residual(C.K, SGMA), atol=1e-12)


def test_column_norm_and_sparse_feature():
    path = naive.greedy(C.K, [range(40)] * 6, naive.column_norm)
    assert path.picks == [17, 4, 27, 33, 18, 9]
    printed(path.traces[-2:], [11.1202, 8.91865])
    skfa = naive.greedy(C.K, [range(40)], naive.sparse_feature, SGMA)
    assert skfa.picks == [3]
    printed(skfa.scores, [0.353118])


def test_column_space():
    path = naive.frobenius(C.K, 6)
    assert path.picks == [17, 15, 16, 33, 39, 37]
    printed(path.traces, [151.788, 95.8552, 45.0753, 29.6919, 16.0003, 10.8762])
    Q = np.linalg.qr(C.K[:, SGMA])[0]
    function_space_error = (naive.residual(C.K, SGMA) ** 2).sum()
    printed(function_space_error, 11.5548)
    assert ((C.K - Q @ Q.T @ C.K) ** 2).sum() <= function_space_error  # same rows, columns projected
    assert naive.frobenius(C.K, 4, C.pool).picks == [5, 17, 26, 33]
    printed((C.K**2).sum() - (C.K[:, SGMA] ** 2).sum(), 198.223)  # Kronecker metric, 2.6


def test_pca_bounds_every_basis():
    bound = naive.pca_traces(C.K, 6)
    printed(bound, [30.6156, 23.1394, 16.0181, 11.8993, 8.68757, 6.41652])
    assert np.all(np.array(naive.greedy(C.K, [range(40)] * 6, naive.function_space).traces) >= bound)


def reduced_risk(basis, rho=0.1):
    return naive.ridge_objective(C.K, basis, C.y, rho) / (2 * len(C.y))


def full_risk(rho=0.1):
    return rho / (2 * len(C.y)) * C.y @ naive.kernel_ridge(C.K, C.y, rho)[0][:, 0]


def test_reduced_risk():
    risks = [reduced_risk(SGMA[:n]) for n in range(1, 7)]
    printed(risks, [0.463582, 0.463464, 0.110619, 0.0952614, 0.0236048, 0.0223884])
    printed(full_risk(), 0.0122085)
    values, U = np.linalg.eigh(C.K)
    for n, expected in enumerate([0.534277, 0.529045, 0.0595116, 0.0423677, 0.0339397, 0.0325806], start=1):
        Kn = (U[:, -n:] * values[-n:]) @ U[:, -n:].T
        printed(0.1 / 80 * C.y @ np.linalg.solve(Kn + 0.1 * np.eye(40), C.y), expected)


def test_incomplete_cholesky():
    path, G = naive.incomplete_cholesky(C.K, 6)
    assert path.picks == [0, 34, 10, 3, 9, 8]
    printed(path.traces, [34.8364, 29.0728, 24.0337, 19.8675, 16.512, 12.3778])
    dense = naive.greedy(C.K, [range(40)] * 6, naive.diagonal)
    assert dense.picks == path.picks
    np.testing.assert_allclose(path.traces, dense.traces, rtol=1e-12)
    np.testing.assert_allclose(G[path.picks], np.linalg.cholesky(C.K[np.ix_(path.picks, path.picks)]), atol=1e-12)


def test_gaussian_process():
    K_qm = naive.gaussian(C.Xq, C.X)
    mean, variance, evidence = naive.gaussian_process(C.K, C.y, 0.1, K_qm, np.ones(6))
    printed(mean, [-0.463676, -0.475682, -0.138733, 0.260781, 0.440944, 0.358999])
    printed(variance, [0.0486935, 0.0509141, 0.0899311, 0.178532, 0.209779, 0.181893])
    printed(evidence, -16.5814)
    np.testing.assert_allclose(mean, K_qm @ naive.kernel_ridge(C.K, C.y, 0.1)[0][:, 0], rtol=1e-12)


def test_subset_of_regressors():
    """10.1: its mean is the reduced ridge; its log evidence that of the exact process with Ktilde for K."""
    K_II, K_qI = C.K[np.ix_(SGMA, SGMA)], naive.gaussian(C.Xq, C.X[SGMA])
    tilde, tilde_q = C.K - naive.residual(C.K, SGMA), K_qI @ np.linalg.solve(K_II, C.K[SGMA])
    k_qq = np.einsum("qi,iq->q", K_qI, np.linalg.solve(K_II, K_qI.T))
    mean, variance, evidence = naive.gaussian_process(tilde, C.y, 0.1, tilde_q, k_qq)
    np.testing.assert_allclose(mean, naive.reduced_ridge(C.K[:, SGMA], K_II, C.y, 0.1).predict(K_qI)[:, 0], rtol=1e-10)
    G, z = (naive.whitened_features(A, K_II) for A in (C.K[:, SGMA], K_qI))
    g, H = G.T @ C.y, G.T @ G
    np.testing.assert_allclose(variance, np.einsum("qi,iq->q", z, np.linalg.solve(np.eye(6) + H / 0.1, z.T)), rtol=1e-9)
    logdet, fit = np.linalg.slogdet(np.eye(6) + H / 0.1)[1], g @ np.linalg.solve(H + 0.1 * np.eye(6), g)
    expected = -0.5 * (40 * math.log(2 * math.pi * 0.1) + logdet + (C.y @ C.y - fit) / 0.1)
    np.testing.assert_allclose(evidence, expected, rtol=1e-12)


def test_rpcholesky_mean_trace():
    rng = np.random.default_rng(0)
    traces = [naive.residual_trace(C.K, naive.rpcholesky(C.K, rng.random(6))) for _ in range(200)]
    error = np.std(traces) / math.sqrt(200)
    assert abs(np.mean(traces) - 12.6734) < 4 * math.sqrt(2) * error  # 12.6734 is a mean of 200 runs itself


def test_leverage_is_the_hat_matrix_of_the_full_kernel():
    full = naive.reduced_ridge(C.K, C.K, C.y, 0.5, raw=False)
    printed(full.edf, 10.2801)
    hat = np.diag(C.K @ np.linalg.inv(C.K + 0.5 * np.eye(40)))
    printed(hat[:3], [0.319836, 0.283959, 0.212217])


def test_reduced_ridge_is_what_falkon_solves():
    ridge = naive.reduced_ridge(C.K[:, SGMA], C.K[np.ix_(SGMA, SGMA)], C.y, 40 * 1e-3)
    printed(ridge.alpha[:, 0], [-0.558346, -0.0781209, 1.92796, 0.346344, -1.54286, 0.254513])


# ------------------------------------------------------------------------------------------------ identities (15)
def test_residual_is_monotone_psd_and_zero_on_the_basis():
    """15.2."""
    K, _, _ = random_problem()
    path = naive.greedy(K, [range(50)] * 12, naive.function_space)
    traces = [float(np.trace(K)), *path.traces]
    assert np.all(np.diff(traces) < 0)
    np.testing.assert_allclose(-np.diff(traces), path.scores, rtol=1e-9)
    R = naive.residual(K, path.picks)
    assert np.linalg.eigvalsh(R).min() >= -1e-10 * np.trace(K)
    np.testing.assert_allclose(R[path.picks], 0, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_gains_are_the_drops_of_what_they_promise(weighted):
    """15.3: each score is the decrease of its objective, found by computing the objective with and without the row."""
    K, Y, rng = random_problem()
    rows = rng.integers(50, size=80) if weighted else None
    weights = rng.random(80) + 0.1 if weighted else None
    basis, pool, rho = [3, 7, 20], [1, 5, 9, 30, 41], 0.3
    sums = {"rows": rows, "weights": weights}
    before = naive.ridge_objective(K, basis, Y, rho, **sums)
    drops = [before - naive.ridge_objective(K, [*basis, i], Y, rho, **sums) for i in pool]
    np.testing.assert_allclose(naive.greedy_ridge(K, basis, pool, Y=Y, rho=rho, **sums), drops, rtol=1e-8)
    if not weighted:
        traces = [naive.residual_trace(K, basis) - naive.residual_trace(K, [*basis, i]) for i in pool]
        np.testing.assert_allclose(naive.function_space(K, basis, pool), traces, rtol=1e-8)


def test_prediction_objective_mixes_two_gains():
    K, Y, rng = random_problem()
    rows, weights = rng.integers(50, size=30), np.full(30, 50 / 30)
    basis, pool = [3, 7], [1, 5, 9, 30]
    both = {"Y": Y, "rho": 0.1, "rows": rows, "weights": weights}
    targets = naive.prediction(K, basis, pool, kappa=1.0, **both)
    trace = naive.prediction(K, basis, pool, kappa=0.0, **both)
    norm = 50 / 30 * (Y[rows] ** 2).sum()
    np.testing.assert_allclose(targets * norm, naive.greedy_ridge(K, basis, pool, **both), rtol=1e-12)
    np.testing.assert_allclose(trace * 50, naive.function_space(K, basis, pool, rows=rows, weights=weights), rtol=1e-12)
    np.testing.assert_allclose(naive.prediction(K, basis, pool, kappa=0.3, **both), 0.3 * targets + 0.7 * trace)
    given = naive.prediction(K, basis, pool, kappa=0.3, **both, target_norm=norm, kernel_trace=50.0)
    np.testing.assert_allclose(given, 0.3 * targets + 0.7 * trace)
    twice = both | {"rows": np.tile(rows, 2), "weights": np.tile(weights, 2) / 2}
    doubled = naive.prediction(K, basis, pool, **twice)
    np.testing.assert_allclose(doubled, targets, rtol=1e-9)  # a row twice at half the weight is the row


def test_pool_equals_one_at_a_time_with_weights():
    """15.3 with weighted scoring rows and several targets: a step's pick maximises the drop of the objective itself."""
    K, Y, rng = random_problem()
    rows, weights, pool = rng.integers(50, size=60), rng.random(60) + 0.5, list(range(0, 50, 3))
    path = naive.greedy(K, [pool] * 5, naive.greedy_ridge, Y=Y, rho=0.2, rows=rows, weights=weights)
    chosen: list[int] = []
    for pick in path.picks:
        left = [i for i in pool if i not in chosen]
        values = [naive.ridge_objective(K, [*chosen, i], Y, 0.2, rows, weights) for i in left]
        assert pick == left[int(np.argmin(values))]
        chosen.append(pick)


def test_split_equals_algorithm_2_on_random_streams():
    """15.4."""
    K, _, rng = random_problem()
    pool = rng.permutation(50)[:40]
    literal, _ = naive.sgma(K, naive.split_pool(pool, 8))
    path = naive.greedy(K, naive.split_pool(pool, 8), naive.function_space)
    assert literal.picks == path.picks
    np.testing.assert_allclose(literal.scores, path.scores, rtol=1e-8)


def test_duplicates_and_rank_exhaustion():
    X = np.repeat(np.arange(5.0)[:, None], 3, axis=0)
    K = naive.gaussian(X, X, 2.0)
    for score in (naive.function_space, naive.column_norm, naive.diagonal):
        path = naive.greedy(K, [range(15)] * 8, score)
        assert sorted(i // 3 for i in path.picks) == [0, 1, 2, 3, 4]
        assert path.traces[-1] < 1e-10
    assert len(naive.sgma(K, [range(15)] * 8)[0].picks) == 5


def test_frobenius_is_function_space_on_the_squared_kernel():
    """15.7."""
    for K in (C.K, random_problem()[0]):
        column = naive.frobenius(K, 6)
        function = naive.greedy(K.T @ K, [range(len(K))] * 6, naive.function_space)
        assert column.picks == function.picks
        np.testing.assert_allclose(column.traces, function.traces, rtol=1e-7)


@pytest.mark.parametrize("intercept", [False, True])
def test_reduced_ridge_on_all_rows_is_kernel_ridge(intercept):
    """15.10."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    K, Y = naive.gaussian(X, X, 0.5), rng.standard_normal((30, 2))
    alpha, b = naive.kernel_ridge(K, Y, 0.2, intercept=intercept)
    for raw in (True, False):
        ridge = naive.reduced_ridge(K, K, Y, 0.2, intercept=intercept, raw=raw)
        np.testing.assert_allclose(ridge.alpha, alpha, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ridge.intercept, b, rtol=1e-8, atol=1e-12)


def test_reduced_risk_and_duality_gap():
    """15.11: R_full <= R_n, falling; gap >= true excess >= 0, and 0 with I = J = all rows (2.8, 10.6)."""
    rho, m, full = 0.1, 40, full_risk()

    def gap(basis, J):
        u = naive.kernel_ridge(C.K[np.ix_(J, J)], C.y[J], rho)[0][:, 0]
        return m * reduced_risk(basis, rho) - 0.5 * rho * C.y[J] @ u

    risks = [reduced_risk(SGMA[:n], rho) for n in range(1, 7)]
    gaps = [gap(SGMA[:n], SGMA[:n]) for n in range(1, 7)]
    assert np.all(np.diff(risks) <= 0)
    assert risks[-1] >= full
    printed(gaps, [18.4952, 18.4904, 4.24389, 3.62219, 0.680624, 0.627489])
    printed(m * (np.array(risks) - full), [18.0549, 18.0502, 3.93643, 3.32212, 0.455851, 0.407197])
    assert np.all(np.array(gaps) >= m * (np.array(risks) - full))
    assert abs(gap(range(40), list(range(40)))) < 1e-10
    r = C.y - naive.reduced_ridge(C.K[:, SGMA], C.K[np.ix_(SGMA, SGMA)], C.y, rho).fitted[:, 0]
    middle, R = r @ naive.residual(C.K, SGMA) @ r, naive.residual_trace(C.K, SGMA)
    printed([middle / (2 * rho), R * (r @ r) / (2 * rho)], [3.69832, 47.2363])
    assert m * (risks[-1] - full) <= middle / (2 * rho) <= R * (r @ r) / (2 * rho)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_reduced_ridge_minimises_and_its_hat_matrix_fits(intercept, weighted):
    K, Y, rng = random_problem()
    weights, basis, rho = (rng.random(50) + 0.1 if weighted else None), [3, 7, 20, 31, 44], 0.3
    K_mI, K_II = K[:, basis], K[np.ix_(basis, basis)]
    w = np.ones(50) if weights is None else weights
    ridge = naive.reduced_ridge(K_mI, K_II, Y, rho, intercept=intercept, weights=weights)
    whitened = naive.reduced_ridge(K_mI, K_II, Y, rho, intercept=intercept, weights=weights, raw=False)
    np.testing.assert_allclose(ridge.fitted, ridge.predict(K_mI), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ridge.fitted, whitened.fitted, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose([ridge.edf, *ridge.gcv], [whitened.edf, *whitened.gcv], rtol=1e-9)
    np.testing.assert_allclose(ridge.rss, (w[:, None] * (Y - ridge.fitted) ** 2).sum(axis=0))
    left = w[:, None] * (Y - ridge.fitted)
    np.testing.assert_allclose(K_mI.T @ left, rho * K_II @ ridge.alpha, atol=1e-10)  # the gradient in alpha is 0
    if intercept:
        np.testing.assert_allclose(left.sum(axis=0), 0, atol=1e-11)  # and in b
    identity = naive.reduced_ridge(K_mI, K_II, np.eye(50), rho, intercept=intercept, weights=weights)
    assert identity.fitted.trace() == pytest.approx(ridge.edf)  # fitting unit vectors gives the hat matrix
    assert float(intercept) < ridge.edf < 5 + float(intercept)


def test_ridge_objective_is_the_reduced_ridge_value():
    K, Y, _ = random_problem()
    basis = [3, 7, 20, 31]
    ridge = naive.reduced_ridge(K[:, basis], K[np.ix_(basis, basis)], Y, 0.3)
    value = ridge.rss.sum() + 0.3 * np.trace(ridge.alpha.T @ K[np.ix_(basis, basis)] @ ridge.alpha)
    assert naive.ridge_objective(K, basis, Y, 0.3) == pytest.approx(value, rel=1e-10)


# --------------------------------------------------------------------------------------------- sampling
def small_kernel():
    X = np.array([[0.0], [0.3], [0.4], [1.5], [2.0], [4.0]])
    return naive.gaussian(X, X, 1.0) * np.outer(s := np.linspace(0.6, 1.4, 6), s)


def test_rpcholesky_plain_and_blocked_have_the_exact_distribution():
    """15.22."""
    K, rng = small_kernel(), np.random.default_rng(2)
    exact = naive.rpcholesky_distribution(K, 2)
    assert math.fsum(exact.values()) == pytest.approx(1, abs=1e-12)
    assert abs(naive.chi_square([naive.rpcholesky(K, rng.random(2)) for _ in range(4000)], exact)) < 4
    assert abs(naive.chi_square([naive.rpcholesky_blocked(K, 2, 4, rng) for _ in range(4000)], exact)) < 4
    uniform = [rng.permutation(6)[:2] for _ in range(4000)]
    assert naive.chi_square(uniform, exact) > 10  # and the check can fail


def test_weighted_keys_draw_in_proportion():
    rng, weights = np.random.default_rng(3), np.array([0.0, 1.0, 2.0, 5.0])
    first = [int(np.argmax(naive.a_res_keys(rng.random(4), weights))) for _ in range(4000)]
    np.testing.assert_allclose(np.bincount(first, minlength=4) / 4000, weights / 8, atol=0.03)
    assert first.count(0) == 0


def test_priority_estimates_are_unbiased():
    rng, weights = np.random.default_rng(4), np.array([0.01, 0.1, 0.0, 1.0, 2.0, 5.0, 0.5])
    draws = np.array([naive.priority_estimates(rng.random(7), weights, 3)[2] for _ in range(20000)])
    error = draws.std(axis=0) / math.sqrt(20000)
    assert np.all(np.abs(draws.mean(axis=0) - weights) <= 4.5 * error + 1e-12)
    sample, tau, estimates = naive.priority_estimates(rng.random(7), weights, 7)
    assert (sorted(sample), tau) == ([0, 1, 3, 4, 5, 6], 0.0)
    np.testing.assert_array_equal(estimates, weights)


# ------------------------------------------------------------------------------------------------ data_sets.py
@pytest.mark.parametrize(
    "table",
    [data_sets.friedman, data_sets.smooth_target_table, data_sets.gaussian_mixture, data_sets.rare_clusters],
)
def test_rows_of_a_table_depend_on_seed_and_row_alone(table):
    whole = table(data_sets.BLOCK + 1000, seed=3)
    across = table(1500, seed=3, start=data_sets.BLOCK - 700)  # both sides of a block's edge
    for column, cut in zip(whole, across, strict=True):
        np.testing.assert_array_equal(column[-1700:-200], cut)
    assert not np.isin(table(100, seed=4).f, whole.f).any()
    assert [len(column) for column in table(0)] == [0, 0, 0]
    if table is not data_sets.friedman:
        assert whole.f.std() == pytest.approx(1, abs=0.05)
        assert (whole.y - whole.f).std() == pytest.approx(0.1, rel=0.02)
