"""`streamkernel compare`: folds and errors of `cross_validate`, settings as options of `fit`, a table of 80 columns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from streamkernel import KernelRidge, KernelSVC, cross_validate, open_table
from streamkernel.cli.candidate_options import estimator_names, named_candidates, setting
from streamkernel.cli.output import measured
from streamkernel.comparison import Compared, Comparison, CrossValidation
from streamkernel.engine import Session
from streamkernel.table.ingest import ingest

THREADS = ("--scheduler", "threads", "--quiet")
RNG = np.random.default_rng(4)
X = np.column_stack([RNG.standard_normal((200, 2)), np.arange(200) // 8, RNG.integers(0, 3, 200)])
Y = np.sin(X[:, 0]) + X[:, 1]
PLAIN = {"lengthscale": 1.0, "metric": "none"}
SET = ("--set", "lengthscale=1", "--set", "metric=none")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "numbers"
    ingest(open_table(X, Y), path, chunk_rows=70, dtype="float64")
    return path


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "labels"
    ingest(open_table(X, np.where(Y > 0.3, "high", "low"), classify=True), path)
    return path


@pytest.mark.parametrize(
    ("flags", "options"), [((), {}), (("--group", "x2"), {"groups": "x2"}), (("--time", "x2"), {"time": "x2"})]
)
def test_the_result_is_that_of_python(cli: Callable, numbers: Path, flags: Any, options: Any) -> None:
    given = ("--set", "basis=30", "--set", "few.basis=3", "--set", "few.intercept=no", "--set", "alpha=0.1")
    words = ("--estimators", "ridge,few=ridge", *SET, *given, "--folds", 2, *flags)
    found = cli("compare", numbers, *words, *THREADS, "--json").result
    ridge = KernelRidge(30, alpha=0.1, **PLAIN)
    few = KernelRidge(3, alpha=0.1, fit_intercept=False, **PLAIN)
    expected = cross_validate(numbers, {"ridge": ridge, "few": few}, 2, **options).to_config()
    for each in (*found["estimators"], *expected["estimators"]):
        assert each.pop("seconds") > 0.0
    assert found == expected
    assert (found["best"], found["error"]) == ("ridge", "rmse")


def test_targets_of_several_units(cli: Callable, tmp_path: Path) -> None:
    """They are compared in their standard deviations: none of them alone says which estimator is best."""
    length, mass = Y, 1e6 * (X[:, 1] ** 2 + X[:, 2])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "length": length, "mass": mass})
    frame.to_csv(tmp_path / "two.csv", index=False)
    names = ("--target", "length", "--target", "mass")
    words = ("compare", tmp_path / "two.csv", *names, "--estimators", "ridge", *SET, "--folds", 2, *THREADS, "--json")
    found = cli(*words, "--set", "basis=20", "--set", "alpha=0.1").result
    [each] = found["estimators"]
    assert found["error"] == "relative_rmse"
    assert 0.0 < each["mean"] < 1.0
    assert cli(*words, "--set", "basis=20", "--set", "alpha=0.1", "--error", "rmse").result["error"] == "rmse"

    cli("fit", tmp_path / "two.csv", tmp_path / "m", *names, "--basis", 20, "--alpha", 0.1, *THREADS)
    scores = cli("evaluate", tmp_path / "m", tmp_path / "two.csv", *THREADS, "--json").result
    assert scores["targets"] == ["length", "mass"]
    assert scores["rmse"][1] > 1e4 * scores["rmse"][0] > 0.0
    relative = np.array(scores["rmse"]) / frame[["length", "mass"]].std().to_numpy()
    assert scores["relative_rmse"] == pytest.approx(np.sqrt((relative**2).mean()), rel=0.01)
    printed = " ".join(cli("evaluate", tmp_path / "m", tmp_path / "two.csv", *THREADS).out.split())
    assert f"rmse of length {measured(scores['rmse'][0], scores['rmse_se'][0])} rmse of mass" in printed


def test_rows_and_weights(cli: Callable, numbers: Path) -> None:
    words = ("--estimators", "ridge", *SET, "--set", "basis=10", "--set", "alpha=1", "--folds", 2, "--json", *THREADS)
    found = cli("compare", numbers, *words, "--rows", "20:120", "--weight", "x3").result
    table = open_table(numbers).weighted_by("x3").slice(20, 120)
    expected = cross_validate(table, KernelRidge(10, alpha=1.0, **PLAIN), 2)
    assert found["estimators"][0]["errors"] == list(expected.estimators[0].errors)
    assert sum(found["left_out_rows"]) == np.count_nonzero(X[20:120, 3])


def test_classes(cli: Callable, labels: Path) -> None:
    words = ("--estimators", "svc,ridge-classifier", "--set", "svc.C=0.5,1", "--set", "basis=12", "--folds", 2)
    found = cli("compare", labels, *words, *SET, *THREADS, "--json").result
    svc = cross_validate(labels, KernelSVC(12, C=[0.5, 1.0], **PLAIN), 2)
    assert found["estimators"][0]["errors"] == list(svc.estimators[0].errors)
    assert found["error"] == "error"


def test_a_file_is_compared_as_its_table(cli: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of columns are those of ingest; the copy of the rows is gone afterwards."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    kinds = np.where(X[:, 3] > 1, "flat", "house")
    frame = pd.DataFrame({"a": X[:, 0], "kind": kinds, "day": X[:, 2], "b": X[:, 1], "w": X[:, 3] + 1.0, "y": Y})
    frame.to_csv(tmp_path / "rows.csv", index=False, sep=";", decimal=",")
    of_file = ("--target", "y", "--weight", "w", "--schema", "auto", "--decimal", ",")
    assert cli("ingest", tmp_path / "rows.csv", tmp_path / "table", *of_file, "--quiet").status == 0
    words = ("--estimators", "ridge", *SET, "--set", "basis=10", "--set", "alpha=1", "--folds", 2, "--json", *THREADS)
    for options in ((), ("--time", "day"), ("--rows", "20:150")):
        found = cli("compare", tmp_path / "rows.csv", *words, *of_file, *options).result
        wanted = cli("compare", tmp_path / "table", *words, *options).result
        assert found["estimators"][0]["errors"] == wanted["estimators"][0]["errors"]
    unweighted = cli("compare", tmp_path / "rows.csv", *words, *of_file[:2], *of_file[4:]).result
    assert unweighted["estimators"][0]["errors"] != wanted["estimators"][0]["errors"]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_groups_of_text_are_the_ids(cli: Callable, tmp_path: Path) -> None:
    """They had to be numbers, though an array of groups may be text."""
    names = np.array([f"pätient {each:.0f}" for each in X[:, 2]])
    frame = pd.DataFrame({"a": X[:, 0], "patient": names, "b": X[:, 1], "y": Y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    ingest(tmp_path / "rows.csv", tmp_path / "table", target="y", id="patient", dtype="float64", chunk_rows=70)
    words = ("--estimators", "ridge", *SET, "--set", "basis=10", "--set", "alpha=1", "--folds", 3, *THREADS)
    stored = cli("compare", tmp_path / "table", *words, "--group", "patient", "--json").result
    ridge = KernelRidge(10, alpha=1.0, **PLAIN)
    wanted = cross_validate(open_table(tmp_path / "table"), ridge, 3, groups=names).estimators[0]
    assert stored["by"] == "group"
    np.testing.assert_allclose(stored["estimators"][0]["errors"], wanted.errors, rtol=1e-12)
    of_file = ("--target", "y", "--id", "patient", "--group", "patient", "--rows", "30:170")
    part = cross_validate(tmp_path / "table", ridge, 3, groups="patient").estimators[0]
    np.testing.assert_allclose(part.errors, wanted.errors, rtol=1e-12)
    found = cli("compare", tmp_path / "rows.csv", *words, *of_file, "--json").result
    assert (found["by"], sum(found["left_out_rows"])) == ("group", 140)
    refused = cli("compare", tmp_path / "rows.csv", *words, *of_file[:2], "--drop", "patient", *of_file[4:]).error
    assert "there is no column 'patient' of groups" in refused


def test_folds_are_made_by_a_date_of_the_file(cli: Callable, tmp_path: Path) -> None:
    """`--time when` said that there is no column, but "when (elapsed)", whose other features would have stayed."""
    order = np.random.default_rng(0).permutation(len(X))
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(order, unit="D")
    frame = pd.DataFrame({"a": X[:, 0], "when": days.strftime("%d.%m.%Y"), "b": X[:, 1], "city": "Oslo", "y": Y})
    frame.loc[::2, "city"] = "Bergen"
    frame.to_csv(tmp_path / "rows.csv", index=False)
    ingest(frame[["a", "b", "y"]], tmp_path / "numbers", target="y")
    words = ("--estimators", "ridge", *SET, "--set", "basis=10", "--set", "alpha=1", "--folds", 3, *THREADS)
    of_file = ("--target", "y", "--dates", "when")
    found = cli("compare", tmp_path / "rows.csv", *words, *of_file, "--drop", "city", "--time", "when", "--json").result
    wanted = cross_validate(tmp_path / "numbers", KernelRidge(10, alpha=1.0, **PLAIN), 3, time=order).estimators[0]
    assert found["by"] == "time"
    np.testing.assert_allclose(found["estimators"][0]["errors"], wanted.errors, rtol=1e-12)
    only = cli("compare", tmp_path / "rows.csv", *words, *of_file, "--keep", "when", "--time", "when").error
    assert "'when' is the only column" in only
    group = (*of_file, "--categories", "city", "--group", "city")
    refused = cli("compare", tmp_path / "rows.csv", *words, *group).error
    assert "column 'city' has become the features city=Bergen, city=Oslo" in refused
    assert "--id city names" in refused
    frame.loc[3, "when"] = ""
    frame.to_csv(tmp_path / "gap.csv", index=False)
    gap = ("--target", "y", "--schema", "auto", "--time", "when")
    assert "column 'when' lacks some dates" in cli("compare", tmp_path / "gap.csv", *words, *gap).error


def test_a_file_that_cannot_be_compared_is_refused(cli: Callable, numbers: Path, tmp_path: Path) -> None:
    pd.DataFrame({"a": X[:, 0], "city": "Oslo", "y": Y}).to_csv(tmp_path / "rows.csv", index=False)
    words = ("--estimators", "ridge", *THREADS)
    assert "has no targets" in cli("compare", tmp_path / "rows.csv", *words, "--drop", "city").error
    assert "'Oslo' in column 'city' is not a number" in cli("compare", tmp_path / "rows.csv", *words).error
    assert "--target is for a file as STORE" in cli("compare", numbers, *words, "--target", "y").error
    elsewhere = ("--scheduler", "tcp://127.0.0.1:9", "--quiet", "--target", "y")
    assert "read by this process" in cli("compare", tmp_path / "rows.csv", "--estimators", "ridge", *elsewhere).error


def test_what_shares_no_sums_is_told(cli: Callable, numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--estimators", "ridge", *SET, "--set", "basis=10", "--set", "alpha=1", "--folds", 2, "--share", *THREADS)
    found = cli("compare", numbers, *words, "--json").result
    expected = cross_validate(numbers, KernelRidge(10, alpha=1.0, **PLAIN), 2, share=True)
    assert found["estimators"][0]["errors"] == list(expected.estimators[0].errors)
    assert found["estimators"][0]["shared"] is False

    def shared(self: CrossValidation, *args: object) -> Comparison:
        one = Compared("ridge", "ridge", (0.5, 0.6), 1.0, (9, 9), (99, 99), shared=True)
        return Comparison("rmse", "content", (90, 90), (30, 30), (one,))

    monkeypatch.setattr(CrossValidation, "run", shared)
    assert "all folds from one sweep, with one basis: ridge" in cli("compare", numbers, *words).out


def test_the_table_has_80_columns_at_most(cli: Callable, numbers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(self: CrossValidation, *args: object) -> Comparison:
        errors = tuple(1.2345e-05 * (1 + fold) for fold in range(60))
        found = [
            Compared(
                each.name, "ridge", tuple(k * error**k for error in errors), 123456.0, (1000,) * 60, (987_654_321,) * 60
            )
            for k, each in enumerate(self.candidates, 1)
        ]
        return Comparison("log_loss", "content", (8 * 10**8,) * 60, (10**8, *[10**9] * 59), tuple(found))

    monkeypatch.setattr(CrossValidation, "run", wide)
    words = ("--estimators", "ridge,a-name-of-more-than-thirty-letters=ridge,third=ridge", "--folds", 12)
    ran = cli("compare", numbers, *words, *THREADS)
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "third has the least log_loss, 60 folds by content"
    assert lines[1] == "fitted to 800,000,000 rows, left out 100,000,000 to 1,000,000,000"
    assert any(line.startswith("third ") and " - " in line for line in lines)


def test_settings_of_all_and_of_one() -> None:
    names = estimator_names("ridge, small=ridge,svc")
    assert names == [("ridge", "ridge"), ("small", "ridge"), ("svc", "svc")]
    texts = [setting(text) for text in ("svc.C=0.3,1", "alpha=0.5", "small.basis=4", "basis=9", "small.candidates=5")]
    ridge, small, svc = named_candidates(names, texts)
    assert (ridge.settings.n_components, small.settings.n_components, svc.settings.n_components) == (9, 4, 9)
    assert small.settings.to_run_config()["alpha"] == 0.5
    assert small.settings.rule_options == {"candidates": 5}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--estimators", "ridge", "--set", "basis"), "'basis' is not [NAME.]PARAMETER=VALUE"),
        (("--estimators", "ridge", "--set", ".basis=3"), "'.basis=3' is not [NAME.]PARAMETER=VALUE"),
        (("--estimators", "ridge", "--set", "basiss=3"), "basiss is no option of fit; did you mean basis?"),
        (("--estimators", "ridge", "--set", "help=yes"), "help is no option of fit"),
        (("--estimators", "ridge", "--set", "json=yes"), "json is no option of fit"),
        (("--estimators", "ridge", "--set", "svr.basis=3"), "--estimators names no svr, only ridge"),
        (("--estimators", "ridge", "--set", "C=3"), "C=3: no estimator that is compared has it"),
        (("--estimators", "ridge", "--set", "ridge.alpha=x"), "ridge: Invalid value for '--alpha': 'x' is neither"),
        (("--estimators", "ridge", "--set", "intercept=3"), "intercept=3: '3' is neither yes nor no"),
        (("--estimators", "a b=ridge"), "'a b=ridge' is neither NAME nor NAME=ESTIMATOR"),
        (("--estimators", ""), "'' is neither NAME nor NAME=ESTIMATOR"),
        (("--estimators", "ridge", "--folds", "x"), "'x' is not a valid integer"),
        ((), "Missing option '--estimators'"),
    ],
)
def test_wrong_usage(cli: Callable, numbers: Path, words: Any, message: str) -> None:
    ran = cli("compare", numbers, *words, *THREADS)
    assert ran.status == 2
    assert message in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--estimators", "rigde"), "error: --estimators: there is no estimator 'rigde'; did you mean ridge?"),
        (("--estimators", "nystroem"), "error: --estimators nystroem transforms rows, so that it has no error"),
        (("--estimators", "ridge,ridge"), "two are called 'ridge'; give each a name of its own"),
        (("--estimators", "ridge", "--set", "alpha=-1"), "error: ridge: --alpha must be finite and >= 0"),
        (("--estimators", "ridge", "--set", "ridge.C=1"), "ridge: --C means nothing to the estimator ridge"),
        (("--estimators", "ridge", "--folds", 1), "--folds must be a whole number from 2 to 100, not 1"),
        (("--estimators", "ridge", "--group", "z"), "no column 'z' of groups; choose one of x0"),
        (("--estimators", "ridge", "--group", "x3"), "--group: x3 has 3 groups, too few for 5 folds; give --folds 3"),
        (("--estimators", "ridge", "--group", "x3", "--time", "x2"), "--group and --time are two ways to make folds"),
        (("--estimators", "ridge,quantile"), "--error: they have no error in common"),
        (("--estimators", "ridge", "--error", "r2"), "--error: not all have the error 'r2' (ridge: rmse, mae)"),
        (("--estimators", "ridge", "--memory", "1MB"), "exceeds allowed memory"),
        (("--estimators", "ridge-classifier"), "not a class label"),
    ],
)
def test_bad_input_is_one_line_before_any_fit(
    cli: Callable, numbers: Path, words: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "sweep", lambda *args: pytest.fail("a sweep began"))
    assert message in cli("compare", numbers, *words, *THREADS).error


def test_a_report_is_drawn_and_refused_before_any_fit(
    cli: Callable, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    words = ("compare", numbers, "--estimators", "ridge", "--set", "basis=5", "--set", "alpha=1", "--folds", 2, *SET)
    assert cli(*words, *THREADS, "--report", page, "--json").result["best"] == "ridge"
    assert b"Comparison of estimators" in page.read_bytes()
    monkeypatch.setattr(Session, "sweep", lambda *args: pytest.fail("a sweep began"))
    assert "exists; choose another path or give --overwrite" in cli(*words, *THREADS, "--report", page).error
    assert "there is no folder" in cli(*words, *THREADS, "--report", tmp_path / "no" / "page.html").error
    assert "--overwrite is for the page of --report" in cli(*words, *THREADS, "--overwrite").error
