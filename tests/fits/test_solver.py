"""Ridge regression by conjugate gradients: the model of the direct solve, but for the sums."""

from __future__ import annotations

from functools import partialmethod
from itertools import product
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pytest
from problems import predicted, zarr_of_chunks
from scikit_learn_checks import with_checks
from slow_cases import slow_but
from thread_clients import thread_client

from streamkernel import KernelRidge, KernelRidgeClassifier, open_table
from streamkernel.engine import Machine, Session, Silent, ThreadExecutor
from streamkernel.engine.cluster import ClusterExecutor
from streamkernel.errors import ModelFormatError, ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.fits import fit_ridge, plan_ridge
from streamkernel.models import RidgeModel
from streamkernel.reductions.sums import NormalEquations
from streamkernel.settings import RidgeSettings
from streamkernel.solvers import FalkonSystem, RidgeSystem
from streamkernel.store import Checkpoints, write_bundle
from streamkernel.table import Table

M, N = 3000, 80
ROWS = data_sets.friedman(M, 5, seed=2)
X, Y = ROWS.X, ROWS.y
TARGETS = np.column_stack([Y, 100.0 - 3.0 * np.sin(X[:, 0])])
# Of a lengthscale that makes the functions as good as independent: what is compared is not the rounding of pivots.
OPTIONS: dict[str, Any] = {"n_components": N, "lengthscale": 1.0, "alpha": 0.3}


def one() -> Session:
    return Session(ThreadExecutor(1))


def fit(table: Table, solver: str, session: Session | None = None, **options: Any) -> RidgeModel:
    return fit_ridge(table, RidgeSettings(solver=solver, **{**OPTIONS, **options}), session or one())


# ----------------------------------------------------------------------------------------------------- the same numbers
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 1e-4},
        {"alpha": 50.0, "fit_intercept": False},
        {"rule": "uniform", "kernel": "matern32"},
        {"objective": "trace", "scale": "none", "lengthscale": 0.3},
    ],
    ids=str,
)
def test_predictions_are_those_of_the_direct_solve(options: dict[str, Any]) -> None:
    table = open_table(X, TARGETS)
    cg, direct = (fit(table, solver, **options) for solver in ("cg", "direct"))
    expected = predicted(direct, table)
    error = np.abs(predicted(cg, table) - expected).max(axis=0)
    assert (error <= 1e-6 * np.abs(expected - expected.mean(axis=0)).max(axis=0)).all()
    assert cg.config["certificate"] == pytest.approx(direct.config["certificate"], rel=1e-8)
    np.testing.assert_allclose(cg.arrays["residual_path"], direct.arrays["residual_path"], rtol=1e-8)
    np.testing.assert_array_equal(cg.arrays["components"], direct.arrays["components"])
    for name in ("totals", "alpha", "rows", "rounds", "lengthscale"):
        assert cg.config[name] == direct.config[name]
    found, known = cg.config["solution"], direct.config["solution"]
    np.testing.assert_allclose(found["training_rmse"], known["training_rmse"], rtol=1e-6)
    assert (found["solver"], known["solver"], found["ended"]) == ("cg", "direct", "tolerance")
    assert found["gcv"] is found["effective_df"] is None
    assert max(found["relative_residual"]) <= 1e-10
    # In place of the final sweep: right side, an iteration each, and the residual at the end.
    assert cg.config["sweep_count"] == direct.config["sweep_count"] - 1 + 1 + found["iterations"] + 1


def test_weights_and_float32() -> None:
    weights = np.random.default_rng(0).uniform(0.0, 2.0, M)
    table = open_table(X.astype(np.float32), Y, weights=weights)
    cg, direct = (fit(table, solver) for solver in ("cg", "direct"))
    np.testing.assert_allclose(predicted(cg, table), predicted(direct, table), rtol=1e-6, atol=1e-6)
    assert cg.config["totals"] == direct.config["totals"]


def test_classes() -> None:
    labels = np.array(["low", "mid", "high"])[np.digitize(Y, [10.0, 18.0])]
    cg, direct = (
        KernelRidgeClassifier(N, lengthscale=1.0, alpha=0.3, solver=solver).fit(X, labels)
        for solver in ("cg", "direct")
    )
    np.testing.assert_allclose(cg.decision_function(X), direct.decision_function(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(cg.predict(X), direct.predict(X))
    assert cg.alpha_ == 0.3


@pytest.mark.parametrize(
    "options", [{"n_components": 20, "tol": 1.0}, {"n_components": 60, "rule": "uniform"}], ids=str
)
def test_a_basis_of_one_function_and_of_all_rows(options: dict[str, Any]) -> None:
    table = open_table(X[:60], Y[:60])
    cg, direct = (fit(table, solver, **options) for solver in ("cg", "direct"))
    assert len(cg.basis) == (1 if "tol" in options else 60)
    np.testing.assert_allclose(predicted(cg, table), predicted(direct, table), rtol=1e-8)


# Rows that are few, constant or copies are what the checks fit; what we warn of there is wanted elsewhere.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::streamkernel.errors.StreamKernelWarning")
@with_checks(KernelRidge(10, alpha=1.0, solver="cg"), KernelRidgeClassifier(10, alpha=1.0, solver="cg"))
def test_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


# --------------------------------------------------------------------------------------------------------- the choice
def test_auto_is_the_solver_of_less_work_and_direct_where_alpha_needs_the_sums() -> None:
    def chosen(m: int, n: int, **options: Any) -> str:
        return RidgeSettings(**options).solver_for(open_table(np.zeros((m, 5)), np.zeros(m)), n)

    assert chosen(20_000, 200, alpha=1.0) == "direct"
    assert chosen(2000, 1500, alpha=1.0) == "cg"
    assert chosen(2000, 1000, alpha=1.0) == "direct"
    for alpha in ("gcv", 0.0):
        assert chosen(2000, 1000, alpha=alpha) == "direct"
    assert chosen(2000, 1000, alpha=1.0, solver="direct") == "direct"
    assert chosen(20_000, 200, alpha=1.0, solver="cg") == "cg"
    # With the search for alpha counted.
    assert chosen(20_000, 200, alpha="cv") == "direct"
    assert chosen(8_000, 5000, alpha="cv") == "cg"
    assert chosen(8_000, 5000, alpha="cv", solver="direct") == "direct"
    # More folds than one choose better, and cost little.
    assert chosen(3000, 3000, alpha=1.0) == "cg"
    assert chosen(3000, 3000, alpha="cv") == "direct"


def test_auto_fits_what_it_chooses() -> None:
    by_count, by_gcv = (KernelRidge(900, lengthscale=0.3, alpha=alpha).fit(X[:900], Y[:900]) for alpha in (1.0, "gcv"))
    assert by_count.model_.solver == "cg"
    assert by_gcv.model_.solver == "direct"
    assert by_count.model_.config["settings"]["solver"] == "auto"


@pytest.mark.parametrize("alpha", ["gcv", 0, 0.0])
@pytest.mark.parametrize("estimator", [KernelRidge, KernelRidgeClassifier])
def test_one_alpha_has_to_be_given(estimator: Any, alpha: Any) -> None:
    """Before anything is opened: there is no table at the path."""
    with pytest.raises(ParameterError, match=r"solver='cg' .* alpha is .*; give alpha 'cv' or a number > 0"):
        estimator(20, solver="cg", alpha=alpha).fit("no-such-table.zarr")


def test_other_solvers_are_refused() -> None:
    for solver in ("falkon", None, 1):
        with pytest.raises(ParameterError, match="solver must be one of auto, direct, cg"):
            RidgeSettings(solver=solver)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- what it says of itself
def test_iterations_that_do_not_suffice_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FalkonSystem, "solve", partialmethod(FalkonSystem.solve, most=2))
    with pytest.warns(StreamKernelWarning, match=r"ended by their number after 2 iterations, .* solver='direct'"):
        model = fit(open_table(X, Y), "cg")
    assert model.config["solution"]["ended"] == "iterations"


def test_so_is_what_rounding_leaves_of_a_solution_where_it_shows() -> None:
    table = open_table(X, Y)
    with pytest.warns(StreamKernelWarning, match=r"ended by (rounding|their number) .* deviations of the target"):
        fit(table, "cg", lengthscale=20.0, alpha=1e-7)
    harmless = fit(table, "cg", lengthscale=8.0, alpha=1.0)
    assert harmless.config["solution"]["ended"] == "rounding"
    np.testing.assert_allclose(
        predicted(harmless, table), predicted(fit(table, "direct", lengthscale=8.0, alpha=1.0), table), rtol=1e-6
    )


def test_the_plan_has_the_steps_of_the_iterations() -> None:
    table, session = open_table(X, Y), one()
    model = fit(table, "cg", session)
    settings = RidgeSettings(solver="cg", **OPTIONS)
    plan = plan_ridge(table, settings, Machine(0, 1))
    names = [step.name for step in plan.steps]
    assert names[-5:] == [
        "rows for the preconditioner",
        "right side of the normal equations",
        "sample for the preconditioner",
        "product with G^T G",
        "check",
    ]
    assert not {"final sweep", "solve"} & set(names)
    *_, copied, _, sample, products, _ = plan.steps
    assert (copied.where, sample.where, sample.rows) == ("driver", "sample", 8 * N)
    assert copied.held_bytes >= 8 * N * 5 * 8
    gather = next(step for step in plan.steps if step.name == "gather sampled rows")
    assert gather.state_bytes >= 8 * N * 5 * 8
    done = [record.name for record in session.records]
    iterations = model.config["solution"]["iterations"]
    assert done.count(products.name) == iterations + 1
    assert len(done) == plan.sweeps - products.times + iterations + 1
    direct = plan_ridge(table, RidgeSettings(solver="direct", **OPTIONS), Machine(0, 1))
    assert [step.name for step in direct.steps][-3:] == ["final sweep", "solve", "check"]


def test_many_workers_need_less_memory_and_the_refusal_says_so() -> None:
    table = open_table(np.zeros((20_000, 5), np.float32), np.zeros(20_000))
    settings = [RidgeSettings(4000, alpha=1.0, rule="uniform", solver=solver) for solver in ("direct", "cg")]
    direct, cg = (plan_ridge(table, each, Machine(8, 1)) for each in settings)
    assert direct.worker_bytes - cg.worker_bytes > 3.5 * 8 * 4000**2  # an open state, and five of half of it
    with pytest.raises(
        ResourceLimitError, match=r"n_components=\d+ would fit, or use solver='cg' with alpha='cv' or a number for it"
    ):
        fit_ridge(table, settings[0], one(), memory_limit=1 << 30)


# -------------------------------------------------------------------------------------------------------------- no sums
def test_a_model_without_sums_is_saved_and_not_updated(tmp_path: Path) -> None:
    estimator = KernelRidge(N, lengthscale=1.0, alpha=0.3, solver="cg").fit(X[:2000], Y[:2000])
    model = estimator.model_
    assert not {"sum_H", "sum_g", "sum_YY", "sum_G1", "sum_Y1", "centre", "gcv_alphas"} & model.arrays.keys()
    estimator.save(tmp_path / "m")
    loaded = KernelRidge.load(tmp_path / "m")
    assert loaded.model_.digest == model.digest
    np.testing.assert_array_equal(loaded.predict(X), estimator.predict(X))
    with pytest.raises(ParameterError, match=r"keeps no sums.*solver='direct'"):
        _ = loaded.model_.sums
    for choices in ({}, {"alpha": 1.0}):
        with pytest.raises(ParameterError, match=r"keeps no sums.*solver='direct'"):
            loaded.update(X[2000:], Y[2000:], **choices)
    assert loaded.model_.digest == model.digest


def test_a_direct_model_must_have_them(tmp_path: Path) -> None:
    model = fit(open_table(X, Y), "direct")
    arrays = {name: values for name, values in model.arrays.items() if name != "sum_g"}
    lacking = model.with_parts(model.record, arrays)
    with pytest.raises(ModelFormatError, match="lacks the array sum_g"):
        lacking.save(tmp_path / "m")
    write_bundle(tmp_path / "m", lacking.bundle())
    with pytest.raises(ModelFormatError, match="lacks the array sum_g"):
        RidgeModel.load(tmp_path / "m")


# ------------------------------------------------------------------------------------------------- wherever, and resume
@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = data_sets.friedman(6_000, 5, seed=1)
    return zarr_of_chunks(tmp_path_factory.mktemp("cg") / "X.zarr", rows.X.astype(np.float32), rows.y, 300)


@pytest.fixture(scope="module")
def digests(store: str) -> dict[float | str, str]:
    """By alpha, of one thread that is not interrupted."""
    return {alpha: fit(open_table(store), "cg", n_components=24, alpha=alpha).digest for alpha in (0.3, "cv")}


@pytest.mark.parametrize("alpha", [pytest.param(0.3, marks=pytest.mark.slow), "cv"])
def test_one_digest(store: str, digests: dict[float | str, str], alpha: float | str) -> None:
    options: dict[str, Any] = {"n_components": 24, "alpha": alpha}
    session = Session(ThreadExecutor(3, lambda leaves: leaves[::-1]))
    assert fit(open_table(store), "cg", session, **options).digest == digests[alpha]
    with thread_client() as client:
        assert fit(open_table(store), "cg", Session(ClusterExecutor(client)), **options).digest == digests[alpha]


class Interrupt(Silent):
    """Stops the run after some sweeps."""

    def __init__(self, sweeps: int) -> None:
        self.left = sweeps

    def end(self, seconds: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_alpha_by_folds_is_solved_for_as_directly() -> None:
    """Coefficients of the alpha that was found, from the search's solution: those of a direct solve for it."""
    table = open_table(X, TARGETS)
    cg = fit(table, "cg", alpha="cv")
    basis, rows = cg.basis, cg.prepare(table)
    sums = one().sweep(NormalEquations(basis, TARGETS.mean(axis=0)), rows, "sums")
    expected = RidgeSystem(basis, sums).solve(cg.record.alpha)
    block = basis.block(rows.read(0, M).X)
    error = np.abs(predicted(cg, table) - block @ expected.coefficients - expected.intercept).max(axis=0)
    assert (error <= 1e-6 * TARGETS.std(axis=0)).all()
    np.testing.assert_allclose(cg.record.certificate.residual_trace, sums.residual_trace, rtol=1e-8)
    assert cg.record.solution.ended == "tolerance"
    assert max(cg.record.solution.relative_residual) <= 1e-10


def test_the_plan_has_the_steps_of_the_search() -> None:
    table, session = open_table(X, Y), one()
    model = fit(table, "cg", session, alpha="cv")
    plan = plan_ridge(table, RidgeSettings(solver="cg", **OPTIONS | {"alpha": "cv"}), Machine(0, 1))
    assert [step.name for step in plan.steps][-6:] == [
        "rows for the preconditioner",
        "sample for the preconditioner",
        "right side of the normal equations",
        "products without held-out rows",
        "product with G^T G",
        "check",
    ]
    done = [record.name for record in session.records]
    assert done.count("product with G^T G") == (model.record.solution.iterations or 0) + 2
    assert 3 <= done.count("products without held-out rows") <= 2 * plan.steps[-3].times


@pytest.mark.parametrize(("sweeps", "alpha"), slow_but([(3, 0.3), (9, "cv")], product([3, 9], [0.3, "cv"])))
def test_a_resumed_run_is_the_uninterrupted_one(
    store: str, digests: dict[float | str, str], tmp_path: Path, sweeps: int, alpha: float | str
) -> None:
    options: dict[str, Any] = {"n_components": 24, "alpha": alpha}
    with Checkpoints(tmp_path / "run", {}) as checkpoints:
        session = Session(ThreadExecutor(1), progress=Interrupt(sweeps), checkpoints=checkpoints)
        with pytest.raises(KeyboardInterrupt):
            fit(open_table(store), "cg", session, **options)
    with Checkpoints(tmp_path / "run", {}) as checkpoints:
        session = Session(ThreadExecutor(2), checkpoints=checkpoints)
        assert fit(open_table(store), "cg", session, **options).digest == digests[alpha]
    assert [record.resumed for record in session.records].count(True) == sweeps
