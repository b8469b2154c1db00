"""--weight COLUMN of fit, plan, evaluate: as if the table had been ingested with this column as its weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamkernel import Factor, KernelRidge, open_table
from streamkernel.jobs.specification import JobSpecification

pytestmark = pytest.mark.usefixtures("bare_pages")

M = 400
PLAIN = (
    *("--basis", 30, "--kernel", "gaussian", "--lengthscale", 1.5, "--alpha", 0.1, "--scale", "none"),
    *("--metric", "none", "--rule", "uniform", "--scheduler", "threads"),
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    rng = np.random.default_rng(4)
    X, n = rng.normal(size=(M, 2)), rng.integers(1, 5, M)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=M)
    for name, columns, header in (
        ("all", [X[:, 0], n, X[:, 1], y], "a,n,b,y"),
        ("bare", [X[:, 0], X[:, 1], y], "a,b,y"),
    ):
        np.savetxt(folder / f"{name}.csv", np.column_stack(columns), delimiter=",", header=header, comments="")
    return folder


@pytest.fixture
def stores(sources: Path, tmp_path: Path, cli: Callable) -> Path:
    for name, source, more in (
        ("all", "all", ()), ("weighted", "all", ("--weight", "n")), ("bare", "bare", ()),
    ):  # fmt: skip
        made = cli("ingest", sources / f"{source}.csv", tmp_path / name, "--target", "y", "--dtype", "float64", *more)
        assert made.status == 0, made.err
    return tmp_path


def test_a_fit_with_a_column_of_weights(stores: Path, cli: Callable) -> None:
    for model, store, weight in (
        ("of-column", "all", ("--weight", "n")),
        ("of-stored", "weighted", ()),
        ("of-none", "weighted", ("--weight", "none")),
        ("of-bare", "bare", ()),
    ):
        ran = cli("fit", stores / store, stores / model, *PLAIN, *weight, "--json")
        assert ran.status == 0, ran.err
    bare = open_table(stores / "bare")
    models = {name: KernelRidge.load(stores / name) for name in ("of-column", "of-stored", "of-none", "of-bare")}
    predicted = {name: np.asarray(model.predict(bare)) for name, model in models.items()}
    np.testing.assert_allclose(predicted["of-none"], predicted["of-bare"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(predicted["of-column"], predicted["of-stored"], rtol=0, atol=1e-10)
    assert np.abs(predicted["of-stored"] - predicted["of-bare"]).max() > 1e-3
    # Rows with the column and without it; the weights do not change a prediction.
    for store in ("all", "weighted", "bare"):
        out = stores / f"of-column-on-{store}"
        ran = cli("predict", stores / "of-column", stores / store, out, "--scheduler", "threads")
        assert ran.status == 0, ran.err
        found = open_table(np.zeros((M, 1)), out).read(0, M).Y[:, 0]
        np.testing.assert_allclose(found, predicted["of-column"], rtol=0, atol=1e-12)
    refused = cli("predict", stores / "of-bare", stores / "all", stores / "none", "--scheduler", "threads")
    assert refused.status == 1
    assert "extra 'n'" in refused.err


def test_plan_evaluate_and_update(stores: Path, cli: Callable) -> None:
    plans = [cli("plan", stores / "all", *PLAIN, *weight, "--json").result for weight in ((), ("--weight", "n"))]
    assert plans[0]["bytes_read"] > 0
    assert plans[1]["bytes_read"] > 0
    assert cli("fit", stores / "all", stores / "model", *PLAIN, "--weight", "n", "--rows", "0:300").status == 0
    scores = [
        cli("evaluate", stores / "model", stores / store, *weight, "--scheduler", "threads", "--json").result
        for store, weight in (("all", ("--weight", "n")), ("weighted", ()), ("all", ()), ("bare", ()))
    ]
    assert scores[0]["rmse"] == pytest.approx(scores[1]["rmse"], rel=1e-12)
    assert scores[2]["rmse"] == pytest.approx(scores[3]["rmse"], rel=1e-12)
    lacking = cli("update", stores / "model", stores / "bare", "--scheduler", "threads")
    assert lacking.status == 1
    assert "had the weights of column 'n'" in lacking.err
    updated = cli("update", stores / "model", stores / "all", "--scheduler", "threads", "--json").result
    assert (updated["rows_folded"], updated["rows"]) == (100, 400)
    weights = open_table(stores / "weighted").read(0, M).weights
    assert updated["trace"] == pytest.approx(weights.sum(), rel=1e-12)  # of a kernel with k(x, x) = 1


def test_wrong_columns_are_one_line(stores: Path, cli: Callable) -> None:
    for command in (("fit", stores / "all", stores / "model"), ("plan", stores / "all")):
        ran = cli(*command, *PLAIN, "--weight", "z")
        assert ran.status == 1
        assert "there is no column 'z' of row weights; choose one of a, n, b" in ran.err


def test_a_job_names_the_column(stores: Path) -> None:
    store = str(stores / "all")
    work = JobSpecification(estimator="ridge", settings={}, table=store, model="m", weight="n", rows=(5, 9))
    whole, table = JobSpecification.from_config(work.to_config()).tables()
    assert (whole.columns, table.n_rows, table.weight_column) == (("a", "b"), 4, "n")
    assert "weight" not in JobSpecification(estimator="ridge", settings={}, table="t", model="m").to_config()


def test_a_factor_with_a_column_of_weights(stores: Path, cli: Callable) -> None:
    """The choice is that of the ingested weights; G has all rows, and the column is no feature."""
    for factor, store, weight in (
        ("of-column", "all", ("--weight", "n")),
        ("of-stored", "weighted", ()),
        ("of-none", "weighted", ("--weight", "none")),
        ("of-bare", "bare", ()),
    ):
        ran = cli(
            *("factor", stores / store, stores / factor, "--basis", 12, "--lengthscale", 1.5, "--scale", "none"),
            *("--scheduler", "threads", *weight, "--json"),
        )
        assert ran.status == 0, ran.err
    factors = {name: Factor.load(stores / name) for name in ("of-column", "of-stored", "of-none", "of-bare")}
    indices = {name: factor.component_indices.tolist() for name, factor in factors.items()}
    assert indices["of-column"] == indices["of-stored"] != indices["of-none"] == indices["of-bare"]
    assert factors["of-column"].G.shape == (M, 12)
    assert factors["of-column"].record.certificate.trace == M  # of a kernel with k(x, x) = 1
    page = stores / "factors.html"
    ran = cli("report", stores / "of-column", page, "--data", stores / "all", "--weight", "n")
    assert ran.status == 0, ran.err
    lacking = cli("report", stores / "of-column", page, "--data", stores / "all", "--overwrite")
    assert lacking.status == 1
    assert "'n'" in lacking.err or "3 columns" in lacking.err


def test_a_report_of_weighted_rows(stores: Path, cli: Callable) -> None:
    assert cli("fit", stores / "all", stores / "model", *PLAIN, "--weight", "n", "--rows", "0:300").status == 0
    pages = {}
    for name, store, weight in (("column", "all", ("--weight", "n")), ("stored", "weighted", ()), ("bare", "bare", ())):
        page = stores / f"{name}.html"
        ran = cli("report", stores / "model", page, "--data", stores / store, "--rows", "300:400", *weight)
        assert ran.status == 0, ran.err
        pages[name] = page.read_text()
    assert "of equal weight" in pages["column"]
    assert "of equal weight" in pages["stored"]
    score = cli(
        "evaluate", stores / "model", stores / "weighted", "--rows", "300:400", "--scheduler", "threads", "--json"
    )
    for name, shown in (("column", True), ("stored", True), ("bare", False)):
        assert (f"RMSE {score.result['rmse']:.3g}" in pages[name]) == shown
    refused = cli("report", stores / "model", stores / "other.html", "--weight", "n")
    assert refused.status == 1
    assert "--weight says what the row weights of --data are; give --data" in refused.err


def test_updates_with_weights(stores: Path, cli: Callable) -> None:
    """The weights of a column, of the store, or none: what the fit has seen is known again in each."""
    for name, store, weight in (
        ("column", "all", ("--weight", "n")),
        ("none", "weighted", ("--weight", "none")),
        ("bare", "bare", ()),
    ):
        fitted = cli("fit", stores / store, stores / f"of-{name}", *PLAIN, *weight, "--rows", "0:300", "--json")
        assert fitted.status == 0, fitted.err
        ran = cli("update", stores / f"of-{name}", stores / store, "--scheduler", "threads", "--json")
        assert ran.status == 0, ran.err
        assert (ran.result["rows_folded"], ran.result["rows_seen_before"]) == (100, 300), name
    bare = open_table(stores / "bare")
    predicted = {name: np.asarray(KernelRidge.load(stores / f"of-{name}").predict(bare)) for name in ("none", "bare")}
    np.testing.assert_allclose(predicted["none"], predicted["bare"], rtol=0, atol=1e-9)
    # Asked for in words: no rows are new. Rows of the model without weights have weights in another store.
    again = cli("update", stores / "of-column", stores / "all", "--weight", "n", "--scheduler", "threads", "--json")
    assert again.result["rows_folded"] == 0
    more = cli("update", stores / "of-bare", stores / "all", "--weight", "n", "--scheduler", "threads", "--json")
    assert more.result["rows_folded"] == M
    none = cli(
        "update", stores / "of-none", stores / "weighted", "--weight", "none", "--scheduler", "threads", "--json"
    )
    assert none.result["rows_folded"] == 0
