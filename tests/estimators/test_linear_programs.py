"""Linear programming machines as estimators: along C, resumed, saved, planned, through the commands."""

from __future__ import annotations

import importlib.util
import random
import warnings
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from interruptions import Interrupt
from memory import measured
from problems import zarr_of_chunks
from report.rendered import undrawn

from streamkernel import KernelLPClassifier, KernelLPRegressor, open_table
from streamkernel.cli import main
from streamkernel.engine import Machine, Session, ThreadExecutor, resident_bytes
from streamkernel.errors import DependencyError, ParameterError, ResourceLimitError, StreamKernelWarning
from streamkernel.kernels import Gaussian
from streamkernel.kinds import PREDICTORS
from streamkernel.settings.ridge import BUCKETS
from streamkernel.store import Checkpoints
from streamkernel.table import Folds

RNG = np.random.default_rng(3)
X = RNG.standard_normal((300, 3))
F = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
Y = 20.0 + 5.0 * (F + 0.2 * RNG.standard_normal(300))
TWO = np.where(F + 0.3 * RNG.standard_normal(300) > 0.2, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(F, [-0.5, 0.7])]
K = Gaussian(1.5)(X, X)
PLAIN: dict[str, Any] = {"kernel": "gaussian", "lengthscale": 1.5, "metric": "none", "scale": "none"}
EXACT: dict[str, Any] = {**PLAIN, "gap_tol": 1e-9}


def test_two_classes_are_the_whole_program() -> None:
    w = RNG.integers(0, 4, 300).astype(float)
    model = KernelLPClassifier(C=2.0, **EXACT).fit(X, TWO, sample_weight=w)
    t, seen = np.where(TWO == "yes", 1.0, -1.0), w > 0
    whole = naive.hinge_machine(K[:, seen], t, 2.0, w)
    assert model.objective_ == pytest.approx(whole.objective, rel=1e-8)
    assert model.bound_ == pytest.approx(whole.objective, rel=1e-8)
    f = model.decision_function(X)
    np.testing.assert_allclose(f, K[:, seen] @ whole.a + whole.b, atol=1e-6)
    np.testing.assert_array_equal(model.component_indices_, np.flatnonzero(seen)[np.abs(whole.a) > 1e-9])
    np.testing.assert_array_equal(model.components_, X[model.component_indices_])
    assert (model.predict(X) == np.where(f > 0, "yes", "no")).all()
    assert model.duality_gap_ <= 1e-9
    assert not hasattr(model, "predict_proba")


def test_three_classes_are_one_against_the_rest_with_their_weights() -> None:
    weights = {"a": 3.0, "b": 1.0, "c": 0.5}
    model = KernelLPClassifier(C=2.0, class_weight=weights, **EXACT).fit(X, THREE)
    w = np.array([weights[label] for label in THREE])
    for problem, label in zip(model.model_.record.solution.problems, "abc", strict=True):
        whole = naive.hinge_machine(K, np.where(label == THREE, 1.0, -1.0), 2.0, w)
        assert problem.primal == pytest.approx(whole.objective, rel=1e-8)
        assert len(problem.functions) == len(problem.rows) == len(problem.prices) == len(problem.gaps)


def test_numbers_are_in_deviations_of_the_target() -> None:
    both = np.column_stack([Y, -3.0 * X[:, 0] ** 2])
    model = KernelLPRegressor(C=2.0, epsilon=0.2, **EXACT).fit(X, both)
    for k, y in enumerate(both.T):
        z, box = (y - y.mean()) / y.std(), np.full(300, 2.0)
        low, high = np.concatenate([0 * box, -box]), np.concatenate([box, 0 * box])
        whole = naive.linear_machine(np.concatenate([K, K]), np.concatenate([z - 0.2, z + 0.2]), low, high)
        assert model.model_.record.solution.problems[k].primal == pytest.approx(whole.objective, rel=1e-8)
        np.testing.assert_allclose((model.predict(X)[:, k] - y.mean()) / y.std(), K @ whole.a + whole.b, atol=1e-6)


def test_the_path_of_costs_is_judged_by_the_fold() -> None:
    costs = [0.02, 1.0, 30.0]
    model = KernelLPClassifier(C=costs, **EXACT).fit(X, TWO)
    keys = open_table(X).with_keys().read(0, 300).keys
    assert keys is not None
    out = Folds(1, BUCKETS, 0).held_out(keys)
    path, t = model.model_.record.path, np.where(TWO == "yes", 1.0, -1.0)
    assert path is not None
    assert (path.C, path.rows) == (tuple(costs), np.count_nonzero(out))
    for C, error in zip(costs, path.errors, strict=True):
        # Rows of the fold are no candidates either.
        whole = naive.hinge_machine(K[np.ix_(~out, ~out)], t[~out], C)
        wrong = np.sign(K[np.ix_(out, ~out)] @ whole.a + whole.b) != t[out]
        assert error == pytest.approx(wrong.mean(), abs=1.5 / path.rows)
    whole = naive.hinge_machine(K, t, model.C_)
    assert model.objective_ == pytest.approx(whole.objective, rel=1e-8)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"C": "cv"}, "C must be a finite number > 0 or several of them, not 'cv'"),
        ({"C": 0.0}, "C must be"),
        ({"gap_tol": 0.0}, "gap_tol must be"),
        ({"working_rows": 1}, "working_rows must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"calibration": "some"}, "calibration must be"),
    ],
)
def test_what_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        KernelLPClassifier(**{"C": 1.0, **PLAIN, **change}).fit(X, TWO)


def test_without_highs_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "highspy" else find(name, *more)
    )
    monkeypatch.setattr(Session, "sweep", None)
    with pytest.raises(DependencyError, match=r"highspy .* is not installed; pip install streamkernel\[lp\]"):
        KernelLPClassifier(C=1.0).fit(X, TWO)


def test_rows_that_do_not_fit() -> None:
    noise = RNG.integers(0, 2, 300)
    with pytest.raises(ResourceLimitError, match=r"fill the 30 rows .* give a larger working_rows, or change C"):
        KernelLPClassifier(C=1.0, working_rows=30, **PLAIN).fit(X, noise)
    limit = resident_bytes() + 600_000_000  # what this process holds already counts
    with pytest.raises(ResourceLimitError, match=r"exceeds allowed memory .* n_components=.* would fit"):
        KernelLPClassifier(C=1.0, memory_limit=limit, **PLAIN).fit(np.ones((60_000, 20)), np.arange(60_000) % 2)


def test_few_functions_or_sweeps_are_told() -> None:
    t = np.where(TWO == "yes", 1.0, -1.0)
    with pytest.warns(StreamKernelWarning, match="of at most 5 functions is within .* give more .n_components."):
        model = KernelLPClassifier(5, C=5.0, **EXACT).fit(X, TWO)
    solution = model.model_.record.solution
    assert (solution.capped, solution.converged) == (True, False)
    assert len(model.components_) <= 5
    assert model.bound_ <= naive.hinge_machine(K, t, 5.0).objective <= model.objective_
    with pytest.warns(StreamKernelWarning, match="after 1 sweeps, not within 1e-09"):
        KernelLPClassifier(C=5.0, max_sweeps=1, **EXACT).fit(
            np.tile(X, (9, 1)) + 0.1 * RNG.standard_normal((2700, 3)), np.tile(TWO, 9)
        )


def test_drawn_candidates() -> None:
    model = KernelLPClassifier(C=5.0, candidates=40, **EXACT).fit(X, TWO)
    assert model.model_.record.solution.candidates == 40
    assert len(model.components_) <= 40
    assert model.bound_ >= naive.hinge_machine(K, np.where(TWO == "yes", 1.0, -1.0), 5.0).objective * (1 - 1e-9)


def fit(store: str, kind: str, executor: Any = None, **session: Any) -> Any:
    found: Any = PREDICTORS[kind]
    settings = found.settings(C=[0.3, 2.0], kernel="gaussian", lengthscale=1.5, metric="none", seed=3, gap_tol=1e-4)
    table = open_table(store, classify=found.classify)
    return found.fit(table, settings, Session(executor or ThreadExecutor(1), **session), estimator=kind)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = np.random.default_rng(1).standard_normal((500, 3))
    y = np.digitize(np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2], [-0.4, 0.6]).astype(float)
    return zarr_of_chunks(tmp_path_factory.mktemp("lp") / "rows.zarr", rows.astype(np.float32), y, 100)


@pytest.mark.parametrize("kind", [pytest.param("lp", marks=pytest.mark.slow), "lp-regressor"])
def test_equal_bits_for_any_workers_resumed_and_read_back(
    kind: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamkernel.solvers.linear_programs.linear_programs._FIRST_ROWS", 100)
    whole = fit(store, kind)
    shuffled = ThreadExecutor(3, lambda leaves: random.Random(0).sample(leaves, len(leaves)))
    assert fit(store, kind, shuffled).digest == whole.digest
    sweeps = whole.record.sweep_count
    assert sweeps == len(whole.record.run.sweeps) >= 6
    for after in (2, sweeps - 5):
        with Checkpoints(tmp_path / "run", {"kind": kind}) as checkpoints, pytest.raises(KeyboardInterrupt):
            fit(store, kind, progress=Interrupt(after), checkpoints=checkpoints)
    with Checkpoints(tmp_path / "run", {"kind": kind}) as checkpoints:
        again = fit(store, kind, checkpoints=checkpoints)
    assert again.digest == whole.digest
    again.save(tmp_path / "model")
    read = PREDICTORS[kind].model.load(tmp_path / "model")
    assert read.digest == whole.digest


@pytest.mark.parametrize("kind", ["lp", "lp-regressor"])
def test_the_page_says_what_there_is(kind: str, store: str) -> None:
    model = fit(store, kind)
    page = undrawn(model, but=["gap"] if kind == "lp" else ())  # the same figure
    for words in (
        "Functions",
        "each prices all candidates",
        "Candidates for functions",
        "linear programs of some rows",
    ):
        assert words in page
    assert "Support vectors" not in page
    assert "rows in memory at the end" in page


def test_through_the_commands(store: str, tmp_path: Path, capsys: Any) -> None:
    model, out = str(tmp_path / "model"), str(tmp_path / "out")
    options = ["--estimator", "lp", "--C", "2", "--lengthscale", "1.5", "--working-rows", "450"]
    common = ["--scheduler", "threads", "--quiet"]
    assert main(["plan", store, *options]) == 0
    assert "prices" in capsys.readouterr().out
    assert main(["fit", store, model, *options, *common, "--rows", "0:400", "--json"]) == 0
    told = capsys.readouterr().out
    # HiGHS prints nothing among it.
    assert told.startswith("{")
    assert '"solver": "linear-program"' in told
    assert '"capped": false' in told
    assert main(["predict", model, store, out, *common]) == 0
    assert main(["evaluate", model, store, "--rows", "400:500", *common, "--json"]) == 0
    assert '"accuracy": 0.' in capsys.readouterr().out
    assert main(["info", model]) == 0
    assert main(["fit", store, model, "--estimator", "lp", "--tol", "0.1", "--overwrite", *common]) == 1
    assert "--tol 0.1 means nothing to the estimator lp" in capsys.readouterr().err


def test_the_plan_does_not_grow_with_the_rows() -> None:
    kind: Any = PREDICTORS["lp"]
    settings = kind.settings(C=1.0, working_rows=5000, **PLAIN)

    def plan(rows: int, n: int = 300) -> Any:
        shaped = open_table(np.broadcast_to(np.float64(1.0), (rows, 20)), np.arange(rows) % 2, classify=True)
        return kind.plan(shaped, settings, Machine(0, 2), n)

    few, many = plan(20_000), plan(80_000)
    assert many.memory_bytes <= 1.02 * few.memory_bytes + 80_000 * 8 * 20
    assert plan(20_000, 50).memory_bytes < few.memory_bytes
    names = [step.name for step in few.steps if step.where == "sweep"]
    assert names == ["gather sampled rows", "prices"], "the rows of the first program are among those of the choice"


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "rows"), [("lp", 6000), ("lp-regressor", 6000)])
def test_measured_memory_keeps_the_promise(estimator: str, rows: int, tmp_path: Path) -> None:
    given = {"kernel": "gaussian", "lengthscale": 3.0, "metric": "none", "C": 0.3, "n_components": 300, "gap_tol": 0.05}
    planned, peak = measured(tmp_path, estimator, rows, classes=3 if estimator == "lp" else 0, **given)
    assert peak <= planned


@pytest.mark.parametrize("rows", [2, 3])
def test_few_rows(rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamKernelWarning)
        model = KernelLPClassifier(C=1e3).fit(X[:rows], np.arange(rows) % 2)
        assert model.predict(X[:rows]).tolist() == (np.arange(rows) % 2).tolist()
        constant = KernelLPRegressor().fit(X[:rows], np.full(rows, 3.0))
    assert constant.predict(X[:rows]) == pytest.approx(3.0)
    assert constant.duality_gap_ == 0.0
