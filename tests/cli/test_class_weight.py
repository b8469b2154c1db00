"""Weights of classes on the command line and in a job: the same model as in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamkernel import KernelRidgeClassifier, ingest, open_table
from streamkernel.jobs.requests import requested
from streamkernel.jobs.specification import JobSpecification

FIT = ("--estimator", "ridge-classifier", "--basis", "15", "--lengthscale", "2", "--scheduler", "threads", "--quiet")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    rng = np.random.default_rng(0)
    labels = np.repeat(["no", "yes"], [250, 50])
    np.savez(folder / "rows.npz", X=rng.standard_normal((300, 3)) + (labels == "yes")[:, None], y=labels)
    ingest(str(folder / "rows.npz"), str(folder / "store"))
    return folder / "store"


@pytest.mark.parametrize(("option", "given"), [("balanced", "balanced"), ("yes=5,no=0.5", {"no": 0.5, "yes": 5.0})])
def test_the_model_is_that_of_python(cli: Callable, labelled: Path, tmp_path: Path, option: str, given: Any) -> None:
    assert cli("fit", labelled, tmp_path / "model", "--class-weight", option, *FIT).status == 0
    fitted = KernelRidgeClassifier(15, lengthscale=2.0, class_weight=given).fit(open_table(labelled))
    found = KernelRidgeClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(found.dual_coef_, fitted.dual_coef_)
    assert found.model_.record.class_weights == ((0.6, 3.0) if given == "balanced" else (0.5, 5.0))


def test_errors(cli: Callable, labelled: Path, tmp_path: Path) -> None:
    ran = cli("fit", labelled, tmp_path / "model", "--class-weight", "even", *FIT)
    assert ran.status == 2
    assert "'even' is neither balanced nor LABEL=NUMBER,LABEL=NUMBER,..." in ran.err.replace("\n", " ")
    assert "--class-weight" in cli("fit", labelled, tmp_path / "model", "--class-weight", "maybe=2", *FIT).error
    other = cli("fit", labelled, tmp_path / "model", "--estimator", "ridge", "--class-weight", "balanced")
    assert "it is an option of ridge-classifier, svc, boosting, lp, kmp-classifier, gp-classifier" in other.error
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("given", [None, "balanced", {"no": 1.0, "yes": 2.0}, {0: 1.0, 1: 2.0}])
def test_a_job_has_the_same_settings(given: Any) -> None:
    fit = requested(KernelRidgeClassifier(15, class_weight=given))
    work = JobSpecification(estimator=fit.estimator, settings=fit.plain, table="t", model="m")
    read = JobSpecification.from_config(json.loads(json.dumps(work.to_config())))
    assert read.opened_settings() == fit.settings
    assert read.opened_settings().to_config() == fit.settings.to_config()


def test_a_job_of_an_earlier_release_has_none() -> None:
    fit = requested(KernelRidgeClassifier(15))
    stored = {name: value for name, value in fit.plain.items() if name != "class_weight"}
    work = JobSpecification(estimator=fit.estimator, settings=stored, table="t", model="m")
    assert work.opened_settings() == fit.settings
    assert "class_weight" not in fit.settings.to_config()
